import { newId, newRoom, RECOVERY_PACE, roomCreated, type Tenant } from '@callplane/core';
import { Database, insertRooms, stepRecovery, writeEvents } from '@callplane/db';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  insertTestEndpoint,
  participantRow,
  sessionRow,
  stopAtEnd,
} from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { commandsWith } from './cli.testkit.js';

let url: string;
let database: Database;
let tenant: Tenant;
beforeAll(async () => {
  url = (await createTestDatabase()).url;
  database = new Database({ url, poolMax: 3 });
  stopAtEnd(() => database.close());
  tenant = await createTestTenant(database);
});

const { rtc, rtcWith, json, expectFailure } = commandsWith(() => ({ DATABASE_URL: url }));

describe('rtc deliveries retry and replay', () => {
  test('bring a pending delivery forward, and refuse a finished one and one in flight', async () => {
    const [pending, failed, held] = await deliveries(await endpoint(), 3);
    await set(pending!, { runAttempts: 4, dueAt: inAnHour() });
    await set(failed!, FAILED);
    const lease = { leaseToken: crypto.randomUUID(), leaseExpiresAt: inAnHour(), url: 'https://x.example/' };
    await set(held!, { status: 'delivering', runAttempts: 1, secretVersion: 1, ...lease });
    const retried = await json('deliveries', 'retry', pending!);
    expect(retried).toEqual({ id: pending, replayCount: 0, attempts: 4, workersNotified: false });
    expect((await row(pending!)).dueAt.getTime()).toBeLessThan(Date.now() + 60_000);
    await expectFailure(1, ['deliveries', 'retry', failed!], '"rtc deliveries replay" sends it again');
    await expectFailure(1, ['deliveries', 'retry', held!], 'it is being sent at this moment');
    await expectFailure(1, ['deliveries', 'replay', pending!], '"rtc deliveries retry" tries a pending one now');
    await expectFailure(2, ['deliveries', 'retry', 'dlv_x'], 'rtc deliveries list');
  });

  test('take all deliveries that the filters select, and only after a confirmation', async () => {
    const endpointId = await endpoint();
    const made = await deliveries(endpointId, 6);
    for (const id of made.slice(0, 2)) await set(id, FAILED);
    await set(made[2]!, { ...FAILED, failureReason: 'attempts_exhausted' });
    await set(made[3]!, { ...FAILED, replayCount: 100 });
    for (const id of made.slice(4)) await set(id, { dueAt: inAnHour() });
    const some = ['--endpoint', endpointId, '--reason', 'rejected'];
    await expectFailure(2, ['deliveries', 'replay', ...some], '3 deliveries would be replayed');
    expect((await row(made[0]!)).status).toBe('failed');
    expect(await json('deliveries', 'replay', ...some, '--yes')).toEqual({
      matched: 3,
      sent: 2,
      refused: [{ id: made[3], reason: 'it has reached the maximum number of replays' }],
      workersNotified: false,
    });
    expect(await row(made[0]!)).toMatchObject({ status: 'pending', replayCount: 1 });
    expect(await row(made[2]!)).toMatchObject({ status: 'failed' });
    const retried = await json('deliveries', 'retry', '--endpoint', endpointId, '--since', '1h', '--yes');
    expect(retried).toMatchObject({ matched: 4, sent: 4, refused: [] });
    for (const id of made.slice(4)) expect((await row(id)).dueAt.getTime()).toBeLessThan(Date.now() + 60_000);
    await expectFailure(2, ['deliveries', 'retry', '--yes'], '--endpoint, --env or --since');
    await expectFailure(2, ['deliveries', 'list', '--since', 'noon'], 'a duration such as 30m, 2h or 7d');
    const listed = await json('deliveries', 'list', '--endpoint', endpointId, '--reason', 'attempts_exhausted');
    expect(listed.data).toMatchObject([{ id: made[2] }]);
  });
});

describe('rtc webhooks recover and rtc recoveries', () => {
  test('create a recovery, wait for a worker, and show its result', async () => {
    const endpointId = await endpoint();
    const [failed, pending] = await deliveries(endpointId, 2);
    await set(failed!, FAILED);
    await set(pending!, { dueAt: inAnHour() });
    const recover = (...more: string[]) =>
      carriedOut(json('webhooks', 'recover', endpointId, '--since', '2h', ...more));
    expect(await recover('--dry-run')).toMatchObject({ status: 'completed', dryRun: true, matched: 2, woken: 0 });
    expect(await recover('--failed-only')).toMatchObject({ matched: 1, replayed: 1, woken: 0, includePending: false });
    const last = await recover();
    // The replayed delivery is pending by now.
    expect(last).toMatchObject({ status: 'completed', matched: 2, replayed: 0, woken: 2, skipped: 0 });
    const { data } = await json('recoveries', 'list', '--endpoint', endpointId, '--status', 'completed');
    expect(data).toHaveLength(3);
    expect(data[0]).toEqual(last);
    expect(await json('recoveries', 'show', last.id)).toEqual(last);
    const { stdout } = await rtc('recoveries', 'show', last.id);
    expect(stdout).toMatch(/^woken +2 pending ones$/m);
    await expectFailure(2, ['webhooks', 'recover', 'whep_x', '--since', '2h'], 'rtc webhooks list');
    await expectFailure(
      2,
      ['webhooks', 'recover', endpointId, '--since', '1h', '--until', '2h'],
      '--since must be before',
    );
    await expectFailure(2, ['recoveries', 'show', 'rcv_x'], 'rtc recoveries list');
  });

  test('cancel a recovery that waits for its endpoint', async () => {
    const endpointId = await endpoint();
    const data = { id: newId('recovery'), environmentId: tenant.environmentId, endpointId, dryRun: false };
    const window = { since: new Date(0), until: new Date(), createdAt: new Date() };
    await database.prisma.webhookRecovery.create({ data: { ...data, ...window, status: 'pending' } });
    expect(await json('recoveries', 'cancel', data.id)).toMatchObject({ id: data.id, status: 'cancelled' });
  });
});

describe('rtc rooms show, participants and events', () => {
  test('show a room, its participants and its events', async () => {
    const roomId = await room();
    const connectedAt = new Date();
    const people = [
      participantRow(tenant, roomId, { externalId: 'user-1', connectedAt }),
      participantRow(tenant, roomId, { name: 'Bob', leftAt: new Date(), connectedAt }),
    ];
    await database.prisma.participant.createMany({ data: people });
    const [ada, bob] = people.map(({ id }) => id) as [string, string];
    const session = sessionRow(tenant, { roomId, participantId: ada });
    const { id: sessionId } = await database.prisma.participantSession.create({ data: session });
    expect(await json('rooms', 'show', roomId)).toMatchObject({
      id: roomId,
      participants: 1,
      mediaNodeId: null,
      media: { nodes: [], forwards: [], forwardCount: 0 },
      inCall: [{ id: ada, externalId: 'user-1', sessionId }],
    });
    const { stdout } = await rtc('rooms', 'show', roomId);
    expect(stdout).toMatch(
      /^participants +1 in the call\ncapacity +100 participants\nends while empty +as the deployment is set$/m,
    );
    await expectFailure(2, ['rooms', 'show', 'room_x'], 'rtc rooms list');

    const listed = async (...more: string[]) => {
      const { data } = await json('participants', 'list', '--room', roomId, ...more);
      return (data as { id: string }[]).map(({ id }) => id).sort();
    };
    expect(await listed()).toEqual([ada, bob].sort());
    expect(await listed('--status', 'active')).toEqual([ada]);
    expect(await listed('--status', 'left')).toEqual([bob]);

    const { data } = await json('events', 'list', '--room', roomId, '--type', 'room.created', '--since', '1h');
    expect(data).toMatchObject([{ type: 'room.created', roomId, sequence: 1 }]);
    expect(await json('events', 'show', data[0].id)).toMatchObject({ id: data[0].id, data: { room: { id: roomId } } });
    expect((await json('events', 'list', '--since', '2100-01-01T00:00:00Z')).data).toEqual([]);
    await expectFailure(2, ['events', 'show', 'evt_x'], 'rtc events list');
  });
});

describe('rtc', () => {
  test('takes the only project and the only environment, and asks when there are several', async () => {
    const { data } = await json('environments', 'list');
    expect(data).toMatchObject([{ id: tenant.environmentId }]);
    expect((await json('keys', 'list')).data).toHaveLength(1);
    expect(await json('keys', 'create', '--type', 'publishable')).toMatchObject({
      environmentId: tenant.environmentId,
    });
    expect((await json('environments', 'usage', '--days', '1')).data).toHaveLength(1);
    const second = await json('environments', 'create', '--name', 'second');
    await expectFailure(
      2,
      ['keys', 'list'],
      `Give --env, one of: ${tenant.environmentId} "test", ${second.id} "second".`,
    );
    await json('projects', 'create', '--name', 'Other');
    await expectFailure(2, ['environments', 'list'], 'Give --project, one of: ');
  });

  test('prints lists with headers', async () => {
    await room();
    const { stdout } = await rtc('rooms', 'list', '--limit', '1');
    const [headers, line] = stdout.split('\n') as [string, string];
    expect(headers).toMatch(/^ROOM +STATUS +IN CALL +ENVIRONMENT +CREATED +NAME$/);
    expect(line).toMatch(/^room_\S+ +created +0\/100 +env_\S+ +\S+Z +"Night"$/);
    expect(line.indexOf('created')).toBe(headers.indexOf('STATUS'));
  });

  test('says how to start the local start again if its PostgreSQL is gone', async () => {
    const gone = { DATABASE_URL: 'postgresql://callplane:x@127.0.0.1:1/callplane', RTC_LOCAL_START: 'true' };
    const { code, stderr } = await rtcWith(gone, 'rooms', 'list');
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('start it again with "npm start"') });
  });
});

const FAILED = { status: 'failed', failureReason: 'rejected', completedAt: new Date(), runAttempts: 1 };
const inAnHour = () => new Date(Date.now() + 3_600_000);
const row = (id: string) => database.prisma.webhookDelivery.findUniqueOrThrow({ where: { id } });
const set = (id: string, data: object) => database.prisma.webhookDelivery.update({ where: { id }, data });

/** Makes steps of recoveries, as a worker does, until the command has ended. */
async function carriedOut(command: Promise<any>): Promise<any> {
  let ended = false;
  const result = command.finally(() => (ended = true));
  await eventually(async () => {
    await stepRecovery(database, { ...RECOVERY_PACE, paceMs: 0 });
    return ended;
  });
  return result;
}

const endpoint = () =>
  insertTestEndpoint(database, tenant, { url: 'https://example.com/hook', events: ['webhook.test'] });

async function deliveries(endpointId: string, count: number): Promise<string[]> {
  const createdAt = new Date();
  const event = { type: 'webhook.test' as const, tenant, roomId: null, participantId: null, data: {}, createdAt };
  const events = Array.from({ length: count }, () => event);
  const written = await database.transaction((tx) => writeEvents(tx, events, { only: endpointId }));
  return written.deliveries.map(({ id }) => id).sort();
}

async function room(): Promise<string> {
  const made = newRoom({ id: newId('room'), name: 'Night', createdAt: new Date() });
  await insertRooms(database.sql, [{ tenant, room: made, created: roomCreated(tenant, made) }]);
  return made.id;
}
