import { expect, test } from '@jest/globals';
import { EventWaiter, FIRST_EVENT_ID, type Newest } from './event-waiter.js';

const NONE: Newest = { environments: new Map(), rooms: new Map() };
const position = (transactionId: string, id = FIRST_EVENT_ID) => ({ id, roomId: null, sequence: null, transactionId });
const LONG_MS = 3_600_000;

test('a request gets a position that it has not seen, in the order of numbers, and a failed read fails only waiting requests', async () => {
  const failure = new Error('PostgreSQL is away');
  // 9 is before 10, although its text is after it.
  const reads = [() => Promise.reject(failure), ...['9', '10'].map((id) => () => Promise.resolve(atPosition(id)))];
  const atPosition = (id: string) => ({ ...NONE, environments: new Map([['env_a', position(id, `evt_${id}`)]]) });
  const waiter = new EventWaiter(() => (reads.shift() ?? (() => Promise.resolve(NONE)))(), { everyMs: 1 });
  const wait = waiter.enter({ environmentId: 'env_a', roomId: null });
  await expect(wait.next(null, LONG_MS)).rejects.toBe(failure);
  expect(await wait.next(position('10'), LONG_MS)).toEqual(position('10', 'evt_10'));
  expect(await wait.next(null, 5)).toBeNull();
  const late = wait.next(null, LONG_MS);
  await waiter.close();
  expect(await late).toBeNull();
});
