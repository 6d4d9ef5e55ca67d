import { bucketTimes, KeyedPace } from '@callplane/core';
import type { Room } from '../rooms/room.js';

const ENVIRONMENTS_MAX = 10_000;
const KIB = 1024;

/** Bounds the parts of streams that one environment sends to others through this instance. */
export class StreamRates {
  /** By environment, in KiB. */
  readonly #paces: KeyedPace;

  /** @param kibPerSecond 0 means no limit */
  constructor(kibPerSecond: number) {
    this.#paces = new KeyedPace(bucketTimes({ perSecond: kibPerSecond, burst: kibPerSecond }), ENVIRONMENTS_MAX);
  }

  /** @returns false, and counts nothing, if the environment sends too much */
  take({ state }: Pick<Room, 'state'>, bytes: number): boolean {
    const key = state?.tenant.environmentId ?? '';
    const nowMs = performance.now();
    if (this.#paces.waitMs(key, nowMs) > 0) return false;
    this.#paces.charge(key, nowMs, bytes / KIB);
    return true;
  }
}
