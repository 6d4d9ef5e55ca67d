import type { Clock } from '@callplane/core';

/** The real time; only `main.ts` uses it. */
export const systemClock: Clock = { now: () => new Date() };
