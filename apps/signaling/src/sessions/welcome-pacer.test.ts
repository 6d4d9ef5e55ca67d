import { expect, test } from '@jest/globals';
import { WelcomePacer } from './welcome-pacer.js';

const turn = () => new Promise(setImmediate);

/** Sends welcomes of 10 bytes with at most 25 bytes in flight. */
function setUp() {
  const pacer = new WelcomePacer(25);
  const begun: number[] = [];
  const left: (() => void)[] = [];
  const send = (n: number) =>
    pacer.inTurn((reserve) => {
      begun.push(n);
      left.push(reserve(10));
      return n;
    });
  return { pacer, begun, left, send };
}

test('sends welcomes in order while fewer bytes than the maximum are unsent', async () => {
  const { pacer, begun, left, send } = setUp();
  const all = [1, 2, 3, 4, 5, 6].map(send);
  await turn();
  expect(begun).toEqual([1, 2, 3]);
  expect(pacer.bytesInFlight).toBe(30);
  left[0]!();
  await turn();
  expect(begun).toEqual([1, 2, 3, 4]);
  for (const one of left.splice(1)) one();
  await turn();
  expect(begun).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await Promise.all(all)).toEqual([1, 2, 3, 4, 5, 6]);
});

test('gives the turn on when a client has gone or its welcome fails', async () => {
  const { pacer, begun, left, send } = setUp();
  for (const n of [1, 2, 3]) void send(n);
  const gone = pacer.inTurn(() => 'gone');
  const failed = pacer.inTurn(() => {
    throw new Error('no welcome');
  });
  const last = send(4);
  await turn();
  expect(begun).toEqual([1, 2, 3]);
  left[0]!();
  expect(await gone).toBe('gone');
  await expect(failed).rejects.toThrow('no welcome');
  expect(await last).toBe(4);
});

test('counts a stalled welcome for a limited time, so that clients that read nothing do not block others', async () => {
  const pacer = new WelcomePacer(10, 20);
  const held = await pacer.inTurn((reserve) => reserve(10));
  expect(await pacer.inTurn(() => 'next')).toBe('next');
  expect(pacer.bytesInFlight).toBe(0);
  // The write ends later: its bytes are not given back twice.
  held();
  expect(pacer.bytesInFlight).toBe(0);
});
