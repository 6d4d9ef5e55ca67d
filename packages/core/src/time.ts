/** The source of the current time, injected so that tests can set it. */
export interface Clock {
  now(): Date;
}

/** ISO 8601, UTC, exactly three fractional digits, `Z`. */
export function formatTimestamp(date: Date): string {
  return date.toISOString();
}

const EARLIEST = new Date('1970-01-01T00:00:00.000Z');
const LATEST = new Date('9999-12-31T23:59:59.999Z');

/**
 * Whether a request may name a time: 1970 to 9999. ISO 8601 with four-digit years, PostgreSQL and ids that sort by time
 * can represent these. An invalid date is none of them.
 */
export function isAcceptedTime(time: Date): boolean {
  return time >= EARLIEST && time <= LATEST;
}
