/** Bounds of the data that the console reads and keeps: docs/limits.md. */
export const CONSOLE_LIMITS = {
  /** Rows of one page of a list. */
  pageSize: 100,
  /** Pages of a list that the browser keeps. */
  pagesMax: 200,
  /** A list with more pages does not read itself again under the reader. */
  rereadPagesMax: 2,
  /** Sessions that the list of participants reads to find the newest one of each. */
  sessionsMax: 2_000,
  /** Interval between two reads of data that the stream of changes does not report, in milliseconds. */
  rereadEveryMs: 5_000,
  requestTimeoutMs: 30_000,
  /** Repetitions of a failed read. */
  retriesMax: 2,
  /** How long an answer stays in the cache after its page has closed. */
  cacheMs: 5 * 60_000,
  toastsMax: 4,
  streamPauseMaxMs: 30_000,
} as const;
