import { describe, expect, test } from '@jest/globals';
import { QualityClock, worstLevel } from './session.js';

const seconds = (more: object) => ({ good: 0, fair: 0, poor: 0, lost: 0, relayed: 0, ...more });

describe('the quality clock', () => {
  test('counts nothing before the first report, even if the connection is lost', () => {
    const clock = new QualityClock();
    clock.lose(5000);
    expect(clock.take(9000)).toBeNull();
  });

  test('counts the seconds of each level and of relaying, and keeps fractions for the next call', () => {
    const clock = new QualityClock();
    clock.set('good', false, 1000);
    clock.set('poor', true, 3600);
    expect(clock.take(5000)).toEqual(seconds({ good: 2, poor: 1, relayed: 1 }));
    expect(clock.take(5100)).toBeNull();
    expect(clock.take(5700)).toEqual(seconds({ poor: 1, relayed: 1 }));
    clock.set('good', false, 5700);
    expect(clock.take(6100)).toEqual(seconds({ good: 1 }));
  });

  test('counts the time without a connection as lost until the next report', () => {
    const clock = new QualityClock();
    clock.set('good', false, 0);
    clock.lose(2000);
    clock.set('fair', false, 5000);
    expect(clock.take(6000)).toEqual(seconds({ good: 2, lost: 3, fair: 1 }));
  });
});

test('the worst level is the worst one that lasted a second', () => {
  expect(worstLevel(seconds({ good: 9, poor: 1 }))).toBe('poor');
  expect(worstLevel(seconds({ lost: 1, good: 2 }))).toBe('lost');
  expect(worstLevel(seconds({}))).toBeNull();
});
