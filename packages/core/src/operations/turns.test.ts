import { expect, test } from '@jest/globals';
import { Turns } from './turns.js';

const BOUNDS = { perOwner: 3, total: 7 };
const fill = (turns: Turns, ownerId: string, count: number): boolean[] =>
  Array.from({ length: count }, (_, n) => turns.add(ownerId, `${ownerId}${n}`));

test('takes ids from the owners in turn, in the order of each owner', () => {
  const turns = new Turns(BOUNDS);
  fill(turns, 'a', 3);
  fill(turns, 'b', 2);
  const order = [];
  for (let taken = turns.take(); taken !== null; taken = turns.take()) {
    order.push(taken.id);
    turns.done(taken.ownerId);
  }
  expect(order).toEqual(['a0', 'b0', 'a1', 'b1', 'a2']);
});

test('prefers an owner with nothing running over one with running ids', () => {
  const turns = new Turns(BOUNDS);
  fill(turns, 'a', 3);
  expect([turns.take()?.id, turns.take()?.id]).toEqual(['a0', 'a1']);
  fill(turns, 'b', 1);
  expect(turns.take()?.id).toBe('b0');
  turns.done('b');
  expect(turns.take()?.id).toBe('a2');
});

test('limits the waiting ids per owner and in total', () => {
  const turns = new Turns(BOUNDS);
  expect(fill(turns, 'a', 4)).toEqual([true, true, true, false]);
  expect(fill(turns, 'b', 3)).toEqual([true, true, true]);
  expect(fill(turns, 'c', 2)).toEqual([true, false]);
  expect(turns.remainingCapacity).toBe(0);
});

test('does not add a waiting id twice, but lets a running id wait again', () => {
  const turns = new Turns(BOUNDS);
  expect([turns.add('a', 'x'), turns.add('a', 'x')]).toEqual([true, true]);
  expect(turns.waitingCount).toBe(1);
  turns.take();
  turns.add('a', 'x');
  expect(turns.take()?.id).toBe('x');
});

test('returns all waiting ids on clear, and keeps counting the running ones', () => {
  const turns = new Turns(BOUNDS);
  fill(turns, 'a', 2);
  turns.take();
  expect(turns.clear()).toEqual(['a1']);
  expect(turns.take()).toBeNull();
  turns.done('a');
  expect(turns.add('a', 'a9')).toBe(true);
});
