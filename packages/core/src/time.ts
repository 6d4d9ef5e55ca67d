/** The source of the current time, injected so that tests can set it. */
export interface Clock {
  now(): Date;
}

/** ISO 8601, UTC, exactly three fractional digits, `Z`. */
export function formatTimestamp(date: Date): string {
  return date.toISOString();
}
