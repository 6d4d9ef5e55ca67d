import type { Clock } from '@callplane/core';

/** The real time. Only `main.ts` uses it, so that tests can control the clock. */
export const systemClock: Clock = { now: () => new Date() };
