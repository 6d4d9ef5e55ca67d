import type { Clock } from '@callplane/core';

/** A clock that moves only when a test moves it. */
export interface TestClock extends Clock {
  advance(milliseconds: number): void;
  set(time: Date | string): void;
}

export function testClock(start: Date | string = '2030-01-01T00:00:00.000Z'): TestClock {
  let now = new Date(start).getTime();
  return {
    now: () => new Date(now),
    advance: (milliseconds) => {
      now += milliseconds;
    },
    set: (time) => {
      now = new Date(time).getTime();
    },
  };
}
