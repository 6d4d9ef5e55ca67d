import type { ErrorDetail } from '@callplane/core';

/** The range of times that both ISO 8601 with four-digit years and PostgreSQL can represent. */
const EARLIEST = new Date('1970-01-01T00:00:00.000Z');
const LATEST = new Date('9999-12-31T23:59:59.999Z');

function isOutOfRange(time: Date): boolean {
  // An invalid date compares as false. The schema's format accepts a leap second (23:59:60), which `Date` cannot parse.
  return !(time >= EARLIEST && time <= LATEST);
}

/**
 * Checks that the times `since` and `until` exist. A schema cannot express this.
 * @param values not validated yet. The schema reports values that are not strings.
 */
export function timeFailures(part: 'body' | 'query', values: { since?: unknown; until?: unknown }): ErrorDetail[] {
  return (['since', 'until'] as const)
    .filter((name) => typeof values[name] === 'string' && isOutOfRange(new Date(values[name])))
    .map((name) => ({ path: `${part}.${name}`, message: 'must be a time from 1970 to 9999' }));
}
