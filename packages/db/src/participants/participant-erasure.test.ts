import { beforeEach, describe, expect, test } from '@jest/globals';
import { newId, RECOVERY_PACE } from '@callplane/core';
import { endOne, insertTestEndpoint } from '@callplane/testing';
import { NOON, startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { replayDelivery } from '../webhooks/deliveries.repository.js';
import { stepRecovery } from '../webhooks/recovery-runner.js';
import { completeErasures, countEventsToErase, eraseEvents, requestErasure } from './participant-erasure.js';

let rooms: TestRooms;
beforeEach(async () => {
  rooms = await startTestRooms();
});

/** Adds an endpoint, so that events have deliveries. */
const newEndpoint = () => insertTestEndpoint(rooms.database, rooms.tenant, { createdAt: NOON, updatedAt: NOON });

/** Creates a participant who joined a room and left it, with the events `participant.joined` and `participant.left`. */
async function leftParticipant(roomId: string): Promise<string> {
  const { participantId, tokenId } = await rooms.invite(roomId);
  await rooms.database.prisma.participant.update({
    where: { id: participantId },
    data: { name: 'Ada Lovelace', externalId: 'user-7', metadata: { phone: '+49 30 1' } },
  });
  const joined = await rooms.join(roomId, { participantId, tokenId });
  if (joined.outcome !== 'joined') throw new Error(joined.outcome);
  await endOne(rooms.database, { sessionId: joined.sessionId, connection: 1 }, 'left', NOON);
  return participantId;
}

const finish = (condition = 'true') =>
  rooms.sql(`UPDATE webhook_deliveries SET status = 'failed', failure_reason = 'rejected', completed_at = now()
    WHERE status = 'pending' AND ${condition}`);
const erase = (participantId: string) => requestErasure(rooms.database, participantId, NOON);
const eraseAll = (participantId: string | null) => eraseEvents(rooms.database, participantId, NOON);
const bodies = async () =>
  (await rooms.database.prisma.event.findMany({ orderBy: { sequence: 'asc' } })).map(({ body }) => body).join('\n');
const PERSONAL = /Ada Lovelace|user-7|\+49/;

describe('erasing a participant', () => {
  test('blanks its row and its events, revokes its tokens, and changes no other participant', async () => {
    const roomId = await rooms.newRoom();
    const participantId = await leftParticipant(roomId);
    const other = await leftParticipant(roomId);
    await rooms.sql(`UPDATE participants SET name = 'Grace' WHERE id = '${other}'`);
    expect(await erase(participantId)).toEqual({ recordings: [], operations: [], files: [], later: [] });
    expect(await eraseAll(participantId)).toBe(2);
    const { prisma } = rooms.database;
    expect(await prisma.participant.findUniqueOrThrow({ where: { id: participantId } })).toMatchObject({
      name: 'Erased',
      externalId: null,
      metadata: {},
    });
    expect(await prisma.participantToken.findFirstOrThrow({ where: { participantId } })).toMatchObject({
      revokedAt: NOON,
    });
    const events = await prisma.event.findMany({ where: { participantId }, orderBy: { sequence: 'asc' } });
    expect(events.map(({ type, erasedAt }) => [type, erasedAt])).toEqual([
      ['participant.joined', NOON],
      ['participant.left', NOON],
    ]);
    for (const { body } of events) {
      expect(body).not.toMatch(PERSONAL);
      expect(JSON.parse(body)).toMatchObject({
        data: { participant: { id: participantId, name: 'Erased', externalId: null, metadata: {} } },
        erasedAt: NOON.toISOString(),
      });
    }
    for (const { body } of await prisma.event.findMany({ where: { participantId: other } })) {
      expect(body).toMatch(PERSONAL);
    }
    expect(
      await rooms.join(roomId, {
        participantId,
        tokenId: (await prisma.participantToken.findFirstOrThrow({ where: { participantId } })).id,
      }),
    ).toEqual({ outcome: 'token_revoked' });
  });

  test('deletes the request after an hour, but not while an event still holds the data', async () => {
    const endpointId = await newEndpoint();
    const participantId = await leftParticipant(await rooms.newRoom());
    await erase(participantId);
    await rooms.sql(`UPDATE participant_erasures SET requested_at = now() - interval '2 hours'`);
    expect(await completeErasures(rooms.database)).toBe(0);
    await finish(`endpoint_id = '${endpointId}'`);
    expect(await eraseAll(null)).toBe(2);
    expect(await completeErasures(rooms.database)).toBe(1);
    await erase(participantId);
    expect(await completeErasures(rooms.database)).toBe(0);
  });
});

describe('deliveries of an erased event', () => {
  test('keep the bytes until they are finished, and are then erased without another request', async () => {
    const [first, second] = [await newEndpoint(), await newEndpoint()];
    const participantId = await leftParticipant(await rooms.newRoom());
    await finish(`endpoint_id = '${first}'`);
    await rooms.sql(`INSERT INTO webhook_attempts (id, delivery_id, endpoint_id, replay_count, attempt, url, signing_key_version,
      started_at, duration_ms, outcome, response_body, exchange) SELECT 'att_' || id, id, endpoint_id, 0, 1, 'https://x', 1, now(), 1,
      'response', 'thanks, Ada Lovelace', '{"request":{"signedAt":1},"responseHeaders":{"location":"/ada"}}' FROM webhook_deliveries WHERE endpoint_id = '${first}'`);
    await erase(participantId);
    expect(await eraseAll(participantId)).toBe(0);
    expect(await countEventsToErase(rooms.database, participantId)).toBe(2);
    expect(await bodies()).toMatch(PERSONAL);
    await finish(`endpoint_id = '${second}'`);
    expect(await eraseAll(null)).toBe(2);
    expect(await countEventsToErase(rooms.database, participantId)).toBe(0);
    expect(await bodies()).not.toMatch(PERSONAL);
    const echoes = await rooms.database.sql.$queryRaw`
      SELECT a.id FROM webhook_attempts a JOIN webhook_deliveries d ON d.id = a.delivery_id
      WHERE d.event_type LIKE 'participant.%' AND (a.response_body IS NOT NULL OR a.exchange -> 'responseHeaders' IS NOT NULL)`;
    expect(echoes).toEqual([]);
  });

  test('cannot be replayed once the erasure is requested', async () => {
    const [first, second] = [await newEndpoint(), await newEndpoint()];
    const participantId = await leftParticipant(await rooms.newRoom());
    const { id } = await rooms.database.prisma.webhookDelivery.findFirstOrThrow({
      where: { endpointId: first, eventType: 'participant.joined' },
    });
    const replay = () => rooms.database.transaction((tx) => replayDelivery(tx, rooms.tenant, first, id, 0));
    await finish(`endpoint_id = '${first}'`);
    await erase(participantId);
    expect(await replay()).toMatchObject({ ok: false, conflict: 'EVENT_ERASED' });
    await finish(`endpoint_id = '${second}'`);
    await eraseAll(null);
    await rooms.sql('DELETE FROM participant_erasures');
    expect(await replay()).toMatchObject({ ok: false, conflict: 'EVENT_ERASED' });
  });

  test('are skipped and counted by a recovery', async () => {
    const endpointId = await newEndpoint();
    const participantId = await leftParticipant(await rooms.newRoom());
    await finish();
    const matched = await rooms.database.prisma.webhookDelivery.count();
    await erase(participantId);
    await eraseAll(null);
    for (const dryRun of [true, false]) {
      await rooms.database.prisma.webhookRecovery.create({
        data: {
          id: newId('recovery'),
          environmentId: rooms.tenant.environmentId,
          endpointId,
          dryRun,
          since: new Date(0),
          until: new Date('2040-01-01'),
          status: 'pending',
          createdAt: NOON,
        },
      });
      expect(await stepRecovery(rooms.database, RECOVERY_PACE)).toMatchObject({
        matched,
        skipped: 2,
        ended: 'completed',
        replayed: dryRun ? 0 : matched - 2,
      });
    }
  });

  test('keep their event while a replay is being accepted', async () => {
    const endpointId = await newEndpoint();
    const participantId = await leftParticipant(await rooms.newRoom());
    await finish();
    const { id } = await rooms.database.prisma.webhookDelivery.findFirstOrThrow({
      where: { endpointId, eventType: 'participant.joined' },
    });
    await rooms.database.transaction(async (tx) => {
      expect(await replayDelivery(tx, rooms.tenant, endpointId, id, 0)).toMatchObject({ ok: true });
      await erase(participantId);
      // The other one of the two events.
      expect(await eraseAll(participantId)).toBe(1);
    });
    expect(await eraseAll(participantId)).toBe(0);
    expect(await countEventsToErase(rooms.database, participantId)).toBe(1);
  });
});
