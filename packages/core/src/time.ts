/** The time, passed in wherever it matters, so that a test can set it. */
export interface Clock {
  now(): Date;
}

/** ISO 8601, UTC, exactly three fractional digits, `Z`. */
export function formatTimestamp(date: Date): string {
  return date.toISOString();
}
