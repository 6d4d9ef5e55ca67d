import { eventually, insertTestEndpoint } from '@callplane/testing';
import { beforeEach, expect, test } from '@jest/globals';
import { listEvents } from '../events/events.repository.js';
import { Prisma } from '../generated/client.js';
import { NOON, startTestRooms, track, type TestRooms } from '../sessions/sessions.testkit.js';
import { publishTracks } from '../sessions/session-tracks.js';
import { countExpiredRooms, purgeExpiredRooms, type PurgeStep } from './room-retention.js';

let rooms: TestRooms;
beforeEach(async () => {
  rooms = await startTestRooms();
});
const DAY_SECONDS = 86_400;
const month = () => ({ olderThanSeconds: 30 * DAY_SECONDS, environmentId: null });

/**
 * Creates a room that ended `daysAgo` days ago, with one participant who joined, one who never joined, and one who was
 * removed.
 */
async function endedRoom(daysAgo: number): Promise<string> {
  const roomId = await rooms.newRoom();
  const { held } = await rooms.enter(roomId);
  await publishTracks(rooms.database, held, [track('a')], NOON);
  await rooms.invite(roomId);
  const removed = await rooms.invite(roomId);
  await rooms.remove(roomId, removed.participantId);
  await rooms.end(roomId);
  await end(roomId, daysAgo);
  return roomId;
}

/** Leaves the room as its clean-up does, except that a track stays. */
async function end(roomId: string, daysAgo: number): Promise<void> {
  await rooms.sql(`UPDATE participant_sessions SET ended_at = now(), end_reason = 'left' WHERE room_id = '${roomId}'`);
  await rooms.sql(
    `UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE room_id = '${roomId}'`,
  );
  await rooms.sql(
    `UPDATE rooms SET status = 'ended', ended_at = now() - interval '${daysAgo} days' WHERE id = '${roomId}'`,
  );
}

async function purgeAll(): Promise<PurgeStep[]> {
  const steps: PurgeStep[] = [];
  for (;;) {
    const step = await purgeExpiredRooms(rooms.database, month());
    if (Object.values(step).every((count: number) => count === 0)) return steps;
    steps.push(step);
  }
}

async function count(table: string): Promise<number> {
  const [row] = await rooms.database.sql.$queryRaw<[{ n: number }]>`
    SELECT count(*)::int AS n FROM ${Prisma.raw(table)}`;
  return row.n;
}

test('deletes rooms that ended long enough ago with everything that belongs to them, and nothing else', async () => {
  const old = await endedRoom(31);
  const young = await endedRoom(29);
  const live = await rooms.newRoom();
  await rooms.enter(live);
  const before = { events: await count('events'), participants: await count('participants') };
  expect(await countExpiredRooms(rooms.database.sql, month())).toBe(1);
  expect(await countExpiredRooms(rooms.database.sql, { ...month(), environmentId: 'env_other' })).toBe(0);
  expect(await purgeAll()).toEqual([{ rooms: 1, participants: 3, sessions: 1, tokens: 3, operations: 2 }]);
  const left = await rooms.database.prisma.room.findMany({ select: { id: true } });
  expect(new Set(left.map(({ id }) => id))).toEqual(new Set([young, live]));
  expect(await count('participants')).toBe(before.participants - 3);
  expect(await count(`events WHERE room_id = '${old}'`)).toBeGreaterThan(0);
  expect(await count('events')).toBe(before.events);
});

test('keeps deliveries and events of a purged room readable', async () => {
  await insertTestEndpoint(rooms.database, rooms.tenant, { createdAt: NOON, updatedAt: NOON });
  const roomId = await endedRoom(31);
  const deliveries = await count('webhook_deliveries');
  expect(deliveries).toBeGreaterThan(0);
  await purgeAll();
  expect(await count('rooms')).toBe(0);
  expect(await count('webhook_deliveries')).toBe(deliveries);
  // The list shows an event once every older transaction of the server has ended, also of other tests.
  const page = { type: null, since: null, after: null, limit: 100 };
  await eventually(async () => {
    const events = await listEvents(rooms.database.sql, rooms.tenant, page);
    return events.some((event) => event.roomId === roomId);
  });
});

test('keeps a room while one of its operations is pending', async () => {
  const roomId = await endedRoom(31);
  await rooms.sql(
    `UPDATE runtime_operations SET status = 'pending', completed_at = NULL WHERE kind = 'participant.remove'`,
  );
  expect(await purgeAll()).toEqual([]);
  await end(roomId, 31);
  expect(await purgeAll()).toHaveLength(1);
  expect(await count('rooms')).toBe(0);
});

test('lets several workers share the rooms without deleting one twice', async () => {
  for (let n = 0; n < 12; n += 1) await endedRoom(31 + n);
  const steps = (await Promise.all(Array.from({ length: 4 }, purgeAll))).flat();
  // A worker that met the others' locks may have stopped early; the next sweep deletes the rest.
  steps.push(...(await purgeAll()));
  const sum = (what: keyof PurgeStep) => steps.reduce((total, step) => total + step[what], 0);
  expect([sum('rooms'), sum('participants'), sum('tokens'), sum('sessions'), sum('operations')]).toEqual([
    12, 36, 36, 12, 24,
  ]);
  expect(await count('rooms')).toBe(0);
});

test('deletes a large room in bounded steps', async () => {
  const roomId = await endedRoom(31);
  const env = rooms.tenant.environmentId;
  await rooms.sql(`INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at)
    SELECT 'part_' || n, '${env}', '${roomId}', 'A', '{}', 'participant', now(), now() FROM generate_series(1, 2500) n`);
  await rooms.sql(`INSERT INTO participant_tokens (id, participant_id, permissions, created_at, expires_at)
    SELECT 'tok_' || n, 'part_' || n, '{}', now(), now() + interval '1 hour' FROM generate_series(1, 2500) n`);
  const steps = await purgeAll();
  expect(steps.map(({ tokens }) => tokens)).toEqual([1000, 1000, 503]);
  for (const step of steps) for (const rows of Object.values(step)) expect(rows).toBeLessThanOrEqual(1000);
  expect([await count('rooms'), await count('participants'), await count('participant_tokens')]).toEqual([0, 0, 0]);
});

test('does not wait for locks, and leaves locked rows for a later step', async () => {
  const roomId = await endedRoom(31);
  const other = await endedRoom(32);
  await rooms.database.transaction(async (tx) => {
    await tx.$queryRaw`SELECT 1 FROM participants WHERE room_id = ${roomId} ORDER BY id LIMIT 1 FOR NO KEY UPDATE`;
    await tx.$queryRaw`SELECT 1 FROM rooms WHERE id = ${other} FOR KEY SHARE`;
    expect(await purgeExpiredRooms(rooms.database, month())).toMatchObject({ rooms: 0, participants: 2 });
  });
  expect(await count('rooms')).toBe(2);
  await purgeAll();
  expect(await count('rooms')).toBe(0);
});
