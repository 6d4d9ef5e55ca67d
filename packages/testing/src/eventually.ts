import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '@callplane/core';

export interface Patience {
  /** Default 60000, so that only a defect exceeds it and not a slow machine. */
  timeoutMs?: number;
  /** Pause between two tries. By default it grows from 25 to 100 ms, because a long wait needs no fine steps. */
  intervalMs?: number;
}

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 100;
const PAUSE_GROWTH = 1.1;

/**
 * Calls `attempt` until it neither throws nor resolves to false, null or undefined, and returns its result. After
 * `timeoutMs` it throws the last error, or an error that the condition did not come true. An attempt made of `expect()`
 * lines must end with `return true`.
 */
export async function eventually<T>(
  attempt: () => T | Promise<T>,
  { timeoutMs = 60_000, intervalMs }: Patience = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const until = performance.now() + timeoutMs;
  let pauseMs = intervalMs ?? FIRST_PAUSE_MS;
  for (;;) {
    let failure: unknown = new Error('the condition did not come true');
    try {
      const result = await attempt();
      if (result !== false && result !== null && result !== undefined) return result as NonNullable<Exclude<T, false>>;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= until)
      throw new Error(`not within ${timeoutMs} ms: ${messageOf(failure)}`, { cause: failure });
    await delay(pauseMs);
    if (intervalMs === undefined) pauseMs = Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS);
  }
}

function messageOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}

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
