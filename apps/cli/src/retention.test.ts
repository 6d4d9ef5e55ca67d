import { Database, writeEvents } from '@callplane/db';
import {
  createTestDatabase,
  createTestTenant,
  participantRow,
  roomRow,
  sessionRow,
  type TestDatabase,
  type TestTenant,
} from '@callplane/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { commandsWith } from './cli.testkit.js';

/** The commands with which operators delete old or personal data. */

let target: TestDatabase;
let database: Database;
let tenant: TestTenant;

beforeAll(async () => {
  target = await createTestDatabase();
  database = new Database({ url: target.url, poolMax: 2 });
});
beforeEach(async () => {
  tenant = await createTestTenant(database);
});
afterAll(() => database.close());

const { rtc, json, expectFailure } = commandsWith(() => ({ DATABASE_URL: target.url }));

/** Creates a room that ended `daysAgo` days ago, with one participant and an event about that participant. */
async function endedRoom(daysAgo: number): Promise<{ roomId: string; participantId: string }> {
  const endedAt = new Date(Date.now() - daysAgo * 86_400_000);
  const common = { metadata: { phone: '+49 30' }, createdAt: endedAt };
  const { id: roomId } = await database.prisma.room.create({
    data: roomRow(tenant, { ...common, status: 'ended', endedAt }),
  });
  const participant = participantRow(tenant, roomId, { ...common, externalId: 'user-7', tokenExpiresAt: endedAt });
  const { id: participantId } = await database.prisma.participant.create({ data: participant });
  const event = { type: 'participant.left' as const, tenant, roomId, participantId, data: { participant } };
  await database.transaction((tx) => writeEvents(tx, [{ ...event, createdAt: endedAt }]));
  return { roomId, participantId };
}

describe('rtc rooms purge', () => {
  test('counts rooms, requires --yes, and deletes rooms that are old enough', async () => {
    const { roomId } = await endedRoom(31);
    const kept = await endedRoom(29);
    const purge = ['rooms', 'purge', '--older-than', '30d', '--env', tenant.environmentId];
    expect(await json(...purge, '--dry-run')).toEqual({ dryRun: true, rooms: 1 });
    await expectFailure(2, purge, 'This deletes 1 rooms permanently. Repeat the command with --yes');
    expect(await database.prisma.room.count({ where: { id: roomId } })).toBe(1);
    expect(await json(...purge, '--yes')).toEqual({
      dryRun: false,
      rooms: 1,
      participants: 1,
      sessions: 0,
      tokens: 0,
      operations: 0,
    });
    expect(await database.prisma.room.findMany({ where: { environmentId: tenant.environmentId } })).toMatchObject([
      { id: kept.roomId },
    ]);
    expect((await rtc(...purge, '--yes')).stdout).toBe(
      'Deleted 0 rooms, 0 participants, 0 sessions, 0 tokens, 0 operations.\n',
    );
  });

  test('defaults to 90 days, and rejects an invalid duration', async () => {
    await endedRoom(89);
    expect(await json('rooms', 'purge', '--env', tenant.environmentId, '--dry-run')).toEqual({
      dryRun: true,
      rooms: 0,
    });
    await expectFailure(2, ['rooms', 'purge', '--older-than', '0d'], 'such as 30m, 12h or 90d');
    await expectFailure(2, ['rooms', 'purge', '--older-than', '23h'], 'Give at least 1d');
  });
});

describe('rtc participants erase', () => {
  test('erases the row and the events, also after a purge, and is idempotent', async () => {
    const { participantId } = await endedRoom(31);
    const result = {
      ...{ participantId, eventsErased: 1, eventsPending: 0 },
      ...{ recordings: [], files: [], later: [], workersNotified: expect.any(Boolean) },
    };
    expect(await json('participants', 'erase', participantId)).toEqual(result);
    expect(await json('participants', 'erase', participantId)).toEqual({ ...result, eventsErased: 0 });
    expect(await database.prisma.participant.findUniqueOrThrow({ where: { id: participantId } })).toMatchObject({
      name: 'Erased',
      externalId: null,
      metadata: {},
    });
    const purged = await endedRoom(31);
    await rtc('rooms', 'purge', '--older-than', '30d', '--yes');
    expect((await rtc('participants', 'erase', purged.participantId)).stdout).toBe(
      `${purged.participantId} is erased, also from 1 events.\n`,
    );
    const events = await database.prisma.event.findMany({ where: { environmentId: tenant.environmentId } });
    expect(events).toHaveLength(2);
    for (const { body } of events) expect(body).not.toMatch(/user-7|\+49|"Ada"/);
  });

  test('rejects an unknown participant and a participant in a call', async () => {
    const erase = ['participants', 'erase'];
    await expectFailure(2, [...erase, 'part_0'], 'Participant "part_0" not found. See "rtc participants list".');
    const { roomId, participantId } = await endedRoom(1);
    await database.prisma.participantSession.create({ data: sessionRow(tenant, { roomId, participantId }) });
    await expectFailure(1, [...erase, participantId], 'is in a call');
  });
});
