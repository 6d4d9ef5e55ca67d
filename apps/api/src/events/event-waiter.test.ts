import { eventually } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { EventWaiter, FIRST_EVENT_ID, type Newest } from './event-waiter.js';

const NONE: Newest = { environments: new Map(), rooms: new Map() };
const position = (transactionId: string, id = FIRST_EVENT_ID) => ({ id, roomId: null, sequence: null, transactionId });
const LONG_MS = 3_600_000;

test('one read at a time serves all waiting requests, and none runs without one', async () => {
  const reads: (readonly string[])[][] = [];
  let newest = NONE;
  let answer: (() => void) | undefined;
  const waiter = new EventWaiter(
    (environments, rooms) => {
      reads.push([environments, rooms]);
      return new Promise((resolve) => (answer = () => resolve(newest)));
    },
    { everyMs: 1 },
  );
  const waits = ['env_a', 'env_a', 'env_b'].map((environmentId) => waiter.enter({ environmentId, roomId: null }));
  const room = waiter.enter({ environmentId: 'env_c', roomId: 'room_c' });
  expect(reads).toEqual([]);
  const results = [
    waits[0]!.next(null, LONG_MS),
    waits[1]!.next(position('10'), LONG_MS),
    waits[2]!.next(null, LONG_MS),
    room.next({ ...position('0'), roomId: 'room_c', sequence: 4 }, LONG_MS),
  ];
  await eventually(() => reads.length === 1);
  expect(reads[0]).toEqual([['env_a', 'env_b'], ['room_c']]);
  // 9 is before 10, although its text is after it.
  newest = { environments: new Map([['env_a', position('9')]]), rooms: new Map([['room_c', 4]]) };
  answer!();
  expect(await results[0]).toEqual(position('9'));
  await eventually(() => reads.length === 2);
  newest = { environments: new Map([['env_a', position('10', 'evt_1')]]), rooms: new Map([['room_c', 5]]) };
  answer!();
  expect(await Promise.all([results[1], results[3]])).toEqual([
    position('10', 'evt_1'),
    { ...position('0'), roomId: 'room_c', sequence: 5 },
  ]);
  await eventually(() => reads.length === 3);
  await waiter.close();
  expect(await results[2]).toBeNull();
  for (const wait of [...waits, room]) wait.leave();
  expect(waiter.count).toBe(0);
  answer!();
  expect(await waiter.enter({ environmentId: 'env_a', roomId: null }).next(null, LONG_MS)).toBeNull();
  expect(reads).toHaveLength(3);
});

test('a failed read fails the requests that wait for it, and the next request is served again', async () => {
  const failure = new Error('PostgreSQL is away');
  let reads = 0;
  const waiter = new EventWaiter(
    () => {
      reads += 1;
      if (reads === 1) return Promise.reject(failure);
      return Promise.resolve({ ...NONE, environments: new Map([['env_a', position('1')]]) });
    },
    { everyMs: 1 },
  );
  const wait = waiter.enter({ environmentId: 'env_a', roomId: null });
  await expect(wait.next(null, LONG_MS)).rejects.toBe(failure);
  expect(await wait.next(null, LONG_MS)).toEqual(position('1'));
  await waiter.close();
});

test('a request waits no longer than its time, and not after its caller has gone', async () => {
  const waiter = new EventWaiter(() => Promise.resolve(NONE), { everyMs: 1 });
  const wait = waiter.enter({ environmentId: 'env_a', roomId: null });
  expect(await wait.next(null, 5)).toBeNull();
  expect(await wait.next(null, 0)).toBeNull();
  const cancelled = wait.next(null, LONG_MS);
  wait.cancel();
  expect(await cancelled).toBeNull();
  expect(await wait.next(null, LONG_MS)).toBeNull();
  await waiter.close();
});

test('the number of requests that may wait is limited, for an environment and for all', () => {
  const waiter = new EventWaiter(() => Promise.resolve(NONE), { perEnvironmentMax: 2, max: 3 });
  const enter = (environmentId: string) => waiter.enter({ environmentId, roomId: null });
  const [first] = [enter('env_a'), enter('env_a')];
  expect(() => enter('env_a')).toThrow(
    expect.objectContaining({ code: 'RATE_LIMITED', headers: { 'retry-after': '1' } }),
  );
  enter('env_b');
  expect(() => enter('env_c')).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
  first.leave();
  first.leave();
  enter('env_c');
  expect(waiter.count).toBe(3);
});
