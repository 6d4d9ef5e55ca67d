import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { disconnectOne, PATIENT_DEADLINES, stopAtEnd } from '@callplane/testing';
import { Database } from '../client/database.js';
import { readRoomChanges } from './room-changes.js';
import { releaseSession } from './session-connection.js';
import {
  sweepLostSessions,
  beat,
  deleteDeadInstances,
  isParticipantHeld,
  removeInstance,
  sessionsHeldBy,
} from './lost-sessions.js';
import { publishTracks } from './session-tracks.js';
import { NOON, startTestRooms, track, type TestRooms } from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});
// In this file sessions start long ago by PostgreSQL's clock.
const PAST = new Date('2020-01-01T00:00:00.000Z');
// Each age below is more than a minute away from its limit, because time passes during a test.
const LIMITS = { graceMs: 600_000, instanceDeadMs: 300_000, limit: 1000 };
const [WITHIN_GRACE_S, AFTER_GRACE_S] = [450, 750];
const sweep = (limits = {}) => sweepLostSessions(rooms.database, { ...LIMITS, ...limits }, NOON);
const age = (table: string, column: string, seconds: number, id: string) =>
  rooms.sql(`UPDATE ${table} SET ${column} = now() - interval '${seconds} seconds' WHERE id = '${id}'`);
const reasonsOf = async (roomId: string) => (await rooms.sessions(roomId)).map(({ endReason }) => endReason);
const enter = async (roomId: string, instanceId: string) => {
  const entered = await rooms.enter(roomId, { instanceId });
  await rooms.database.prisma.participantSession.update({
    where: { id: entered.sessionId },
    data: { startedAt: PAST },
  });
  return entered;
};

beforeEach(() => beat(rooms.database.sql, 'alive'));

describe('a lost session', () => {
  test('ends when its grace period is over, and not before', async () => {
    const roomId = await rooms.newRoom();
    const [here, young, old] = [
      await enter(roomId, 'alive'),
      await enter(roomId, 'alive'),
      await enter(roomId, 'alive'),
    ];
    await publishTracks(rooms.database, old.held, [track('a')], NOON);
    for (const { held } of [young, old]) await disconnectOne(rooms.database, held);
    await age('participant_sessions', 'disconnected_at', WITHIN_GRACE_S, young.sessionId);
    await age('participant_sessions', 'disconnected_at', AFTER_GRACE_S, old.sessionId);
    const swept = await sweep();
    const { version } = await rooms.snapshot(roomId);
    expect(swept).toEqual({
      ended: [{ sessionId: old.sessionId, roomId }],
      rooms: [{ roomId, version }],
      deliveries: [],
      failed: [],
    });
    expect(await sweep()).toMatchObject({ ended: [], rooms: [] });
    expect(await reasonsOf(roomId)).toEqual([null, null, 'connection_lost']);
    expect(here.sessionId < young.sessionId).toBe(true);
    expect((await rooms.events(roomId)).slice(-2)).toMatchObject([
      { type: 'track.unpublished' },
      { type: 'participant.left', data: { reason: 'connection_lost', sessionId: old.sessionId } },
    ]);
  });

  test('ends one grace period after the last heartbeat if its instance died', async () => {
    const roomId = await rooms.newRoom();
    await beat(rooms.database.sql, 'dying');
    const { participantId } = await enter(roomId, 'dying');
    await age('signaling_instances', 'heartbeat_at', WITHIN_GRACE_S, 'dying');
    expect(await isParticipantHeld(rooms.database.sql, participantId, LIMITS)).toBe(false);
    expect(await sweep()).toMatchObject({ ended: [] });
    // The instance was only frozen.
    await beat(rooms.database.sql, 'dying');
    expect(await isParticipantHeld(rooms.database.sql, participantId, LIMITS)).toBe(true);
    await age('signaling_instances', 'heartbeat_at', AFTER_GRACE_S, 'dying');
    expect(await deleteDeadInstances(rooms.database.sql, LIMITS.instanceDeadMs)).toEqual([]);
    expect((await sweep()).ended).toHaveLength(1);
    expect(await deleteDeadInstances(rooms.database.sql, LIMITS.instanceDeadMs)).toEqual(['dying']);
    expect(await reasonsOf(roomId)).toEqual(['connection_lost']);
  });

  test('ends even if it has no instance or an unknown one', async () => {
    const roomId = await rooms.newRoom();
    await enter(roomId, 'never heard of');
    const { sessionId } = await enter(roomId, 'alive');
    await rooms.sql(`UPDATE participant_sessions SET instance_id = NULL WHERE id = '${sessionId}'`);
    expect((await sweep()).ended).toHaveLength(2);
  });

  test('ends although another room cannot be written', async () => {
    const [locked, other] = [await rooms.newRoom(), await rooms.newRoom()];
    for (const roomId of [locked, other]) await disconnectOne(rooms.database, (await enter(roomId, 'alive')).held);
    const deadlines = { ...PATIENT_DEADLINES, statementMs: 2000 };
    const database = new Database({ url: rooms.databaseUrl, poolMax: 2, deadlines });
    stopAtEnd(() => database.close());
    const swept = await rooms.database.transaction(async (sql) => {
      await sql.$queryRaw`SELECT FROM rooms WHERE id = ${locked} FOR UPDATE`;
      return sweepLostSessions(database, { ...LIMITS, graceMs: 0 }, NOON);
    });
    expect(swept.failed).toMatchObject([{ roomId: locked }]);
    expect(swept.rooms.map(({ roomId }) => roomId)).toContain(other);
    expect([await reasonsOf(locked), await reasonsOf(other)]).toEqual([[null], ['connection_lost']]);
  });

  test('is left to its own clean-up when it is being removed or its room ends', async () => {
    const [one, other] = [await rooms.newRoom(), await rooms.newRoom()];
    const [removed, ending] = [await enter(one, 'gone'), await enter(other, 'gone')];
    await rooms.remove(one, removed.participantId);
    await rooms.end(other);
    expect(await releaseSession(rooms.database.sql, removed.held)).toBe(true);
    expect(await isParticipantHeld(rooms.database.sql, removed.participantId, LIMITS)).toBe(false);
    await sweep({ graceMs: 0 });
    expect([await reasonsOf(one), await reasonsOf(other)]).toEqual([[null], [null]]);
    expect(ending.outcome).toBe('joined');
  });
});

test('starts the grace period of the sessions of an instance that stops', async () => {
  const roomId = await rooms.newRoom();
  await beat(rooms.database.sql, 'stopping');
  const { sessionId } = await enter(roomId, 'stopping');
  expect(await sessionsHeldBy(rooms.database.sql, 'stopping')).toMatchObject([{ sessionId, connection: 1, roomId }]);
  const { version } = await rooms.snapshot(roomId);
  await removeInstance(rooms.database.sql, 'stopping');
  const changes = await readRoomChanges(rooms.database.sql, [{ roomId, after: version }]);
  expect(changes.get(roomId)?.sessions.map(([id]) => id)).toEqual([sessionId]);
  expect(await sessionsHeldBy(rooms.database.sql, 'stopping')).toEqual([]);
  expect(await rooms.database.prisma.signalingInstance.count({ where: { id: 'stopping' } })).toBe(0);
  expect(await sweep()).toMatchObject({ ended: [] });
  await age('participant_sessions', 'disconnected_at', AFTER_GRACE_S, sessionId);
  expect((await sweep()).ended).toHaveLength(1);
});
