import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { requestErasure } from '@callplane/db';
import { endOne, eventually, insertTestEndpoint } from '@callplane/testing';
import { NOON, startTestWorker, type TestWorker } from '../worker.testkit.js';
import { sweepErasures, sweepRooms, sweepUsage } from './sweep.js';

let worker: TestWorker;
const { signal } = new AbortController();
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(async () => {
  await worker.sql(
    'TRUNCATE rooms, participants, participant_sessions, participant_tokens, runtime_operations CASCADE',
  );
});

async function endedRooms(count: number, daysAgo: number): Promise<void> {
  await worker.sql(`INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at, ended_at)
    SELECT 'room_${daysAgo}_' || n, '${worker.tenant.environmentId}', 'Room', '{}', 'ended', 1, now(),
      now() - interval '${daysAgo} days' FROM generate_series(1, ${count}) n`);
}
const roomsLeft = () => worker.deps.database.prisma.room.count();

/** Waits for a log line, because lines arrive a moment after they are written. */
const logged = (message: string, fields: object) =>
  eventually(() => {
    expect(worker.lines).toContainEqual(expect.objectContaining({ message, ...fields }));
    return true;
  });

test('rooms are deleted after their retention, with a log line and a count per step', async () => {
  await endedRooms(60, 91);
  await endedRooms(1, 89);
  await sweepRooms(worker.deps, 90, signal);
  expect(await roomsLeft()).toBe(1);
  await logged('rooms purged', { rooms: 50, retentionDays: 90 });
  await logged('rooms purged', { rooms: 10 });
  expect(await worker.metrics()).toContain('callplane_retention_rows_total{what="rooms",app="cleanup-worker"} 60');
});

test('usage is rolled up up to yesterday, once', async () => {
  await worker.sql('TRUNCATE usage_days, usage_rollups');
  await Promise.all([sweepUsage(worker.deps), sweepUsage(worker.deps)]);
  await logged('usage rolled up', { days: 1 });
  const rollups = await worker.deps.database.prisma.usageRollup.findMany();
  expect(rollups).toHaveLength(1);
  expect(rollups[0]!.day.getTime()).toBeLessThan(Date.now() - 24 * 60 * 60 * 1000);
});

test('a retention of 0 days keeps rooms forever', async () => {
  await endedRooms(1, 3000);
  await sweepRooms(worker.deps, 0, signal);
  expect(await roomsLeft()).toBe(1);
});

test('the room sweep starts no further step after the worker begins to stop', async () => {
  await endedRooms(60, 91);
  const stopping = new AbortController();
  const sweep = sweepRooms(worker.deps, 90, stopping.signal);
  stopping.abort();
  await sweep;
  expect(await roomsLeft()).toBe(10);
});

test('events are erased once their running deliveries have finished', async () => {
  const { database } = worker.deps;
  await insertTestEndpoint(database, worker.tenant, { createdAt: NOON, updatedAt: NOON });
  const { participantId, held } = await worker.enter(await worker.newRoom());
  await endOne(database, held, 'left', NOON);
  expect(await requestErasure(database, participantId, NOON)).toMatchObject({ recordings: [] });
  const erased = () => database.prisma.event.count({ where: { participantId, erasedAt: { not: null } } });
  await sweepErasures(worker.deps, signal);
  expect(await erased()).toBe(0);
  await worker.sql(`UPDATE webhook_deliveries SET status = 'succeeded', completed_at = now()`);
  await sweepErasures(worker.deps, signal);
  // The events are: joined, published, unpublished, left.
  expect(await erased()).toBe(4);
  await logged('events erased', { events: 4 });
  await worker.sql(`UPDATE participant_erasures SET requested_at = now() - interval '2 hours'`);
  await sweepErasures(worker.deps, signal);
  expect(await database.prisma.participantErasure.count()).toBe(0);
  await logged('erasures completed', { participants: 1 });
});
