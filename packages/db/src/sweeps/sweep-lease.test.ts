import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { releaseSweep, takeSweep } from './sweep-lease.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});
beforeEach(() => rooms.sql('TRUNCATE sweeps'));

const take = (holder: string, more: { finishedMsAgo?: number } = {}) =>
  takeSweep(rooms.database.sql, { name: 'deliveries', holder, leaseMs: 60_000, finishedMsAgo: null, ...more });
const heldUntil = (when: string) => rooms.sql(`UPDATE sweeps SET held_until = ${when}`);

test('exactly one of several concurrent processes gets a sweep, and keeps it', async () => {
  const taken = await Promise.all(Array.from({ length: 8 }, (_, n) => take(`process ${n}`)));
  const holders = taken.flatMap(({ isHolder }, n) => (isHolder ? [n] : []));
  expect(holders).toHaveLength(1);
  for (let n = 0; n < 8; n += 1) expect((await take(`process ${n}`)).isHolder).toBe(n === holders[0]);
});

test('another process takes over a sweep whose lease has expired, and the former holder loses it', async () => {
  await take('dead');
  await heldUntil("now() - interval '1 millisecond'");
  expect(await take('new')).toMatchObject({ isHolder: true, previous: 'dead' });
  expect(await take('dead')).toMatchObject({ isHolder: false, previous: 'new' });
});

test('a released sweep is free at once, and only its holder can release it', async () => {
  await take('first');
  await releaseSweep(rooms.database.sql, { name: 'deliveries', holder: 'second' });
  expect((await take('second')).isHolder).toBe(false);
  await releaseSweep(rooms.database.sql, { name: 'deliveries', holder: 'first' });
  expect((await take('second')).isHolder).toBe(true);
});

test('a lease from before the clock was set back counts as expired', async () => {
  await take('past');
  await heldUntil(`now() + interval '1 day'`);
  expect((await take('present')).isHolder).toBe(true);
});

test('every process learns when the sweep was last completed', async () => {
  expect(await take('first')).toMatchObject({ finishedMsAgo: null });
  await take('first', { finishedMsAgo: 5000 });
  await take('first');
  const { finishedMsAgo } = await take('second');
  expect(finishedMsAgo).toBeGreaterThanOrEqual(5000);
});
