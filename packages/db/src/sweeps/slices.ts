import { isOutOfTime } from '../client/unavailable.js';

/** Times from `from` on, before `until`. */
export interface TimeRange {
  readonly from: Date;
  readonly until: Date;
}

/** Before every time in the database. */
export const BEGINNING = new Date(0);
/** Width of the first slice, in milliseconds. */
const FIRST_WIDTH_MS = 60_000;
const WIDTH_MS_MIN = 1000;
/** A slice that takes less, in milliseconds, is followed by one of twice the width, any other by one of half of it. */
const QUICK_MS = 500;
/** By how much narrower a slice is that is read again, because PostgreSQL cancelled it. */
const NARROWER = 8;

/**
 * Reads a range of times in slices, from its end to its beginning. While a transaction holds an old snapshot, a range may
 * contain millions of dead index entries, which take longer to read than one statement may last
 * (docs/decisions/0039). Quick slices are followed by
 * wider ones, so that the time before the snapshot takes few.
 * @param read reads a slice. It may be called again for a part of a slice whose statement PostgreSQL cancelled.
 * @param signal ends the reading before the next slice.
 * @returns whether the whole range was read.
 */
export async function inSlices(
  { from, until }: TimeRange,
  read: (slice: TimeRange) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<boolean> {
  let widthMs = FIRST_WIDTH_MS;
  for (let end = until; end > from;) {
    if (signal?.aborted === true) return false;
    const begin = new Date(Math.max(end.getTime() - widthMs, from.getTime()));
    const startedAtMs = performance.now();
    try {
      await read({ from: begin, until: end });
    } catch (error) {
      if (!isOutOfTime(error) || widthMs === WIDTH_MS_MIN) throw error;
      widthMs = Math.max(widthMs / NARROWER, WIDTH_MS_MIN);
      continue;
    }
    end = begin;
    const isQuick = performance.now() - startedAtMs < QUICK_MS;
    widthMs = Math.max(isQuick ? widthMs * 2 : widthMs / 2, WIDTH_MS_MIN);
  }
  return true;
}
