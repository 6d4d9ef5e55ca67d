import {
  codePointLength,
  isAcceptedTime,
  SCOPES,
  trimName,
  unstorableReason,
  USAGE_DAYS_MAX,
  type Scope,
} from '@callplane/core';
import { InvalidArgumentError } from 'commander';

const NAME_LENGTH_MAX = 120;
const SECONDS_PER_UNIT = { m: 60, h: 3600, d: 86_400 } as const;
/** Ten years. A longer duration is probably a typing error. */
const DURATION_SECONDS_MAX = 3650 * SECONDS_PER_UNIT.d;
const PUBLISH_SECONDS_MAX = 86_400;
const LIST_LIMIT_MAX = 1000;
const REASON_LENGTH_MAX = 255;
const CHECKED_ROWS_MAX = 10_000;

/** Default number of rows in a list. */
export const LIST_LIMIT_DEFAULT = 20;

/** Default number of days of usage. */
export const USAGE_DAYS_DEFAULT = 30;

// Each parser throws InvalidArgumentError. Commander puts the option and its value in front of the message.

export function parseName(text: string): string {
  const name = trimName(text);
  const length = codePointLength(name);
  if (length < 1 || length > NAME_LENGTH_MAX) {
    throw new InvalidArgumentError(`Give a name of 1 to ${NAME_LENGTH_MAX} characters.`);
  }
  const reason = unstorableReason(name);
  if (reason !== null) throw new InvalidArgumentError(`A name ${reason}.`);
  return name;
}

export function parseDays(text: string): number {
  const days = Number(text);
  if (!/^\d{1,3}$/.test(text) || days < 1 || days > USAGE_DAYS_MAX) {
    throw new InvalidArgumentError(`Give a number of days from 1 to ${USAGE_DAYS_MAX}.`);
  }
  return days;
}

/** Number of rows that a check looks at. */
export function parseRows(text: string): number {
  const rows = Number(text);
  if (!/^\d{1,5}$/.test(text) || rows < 1 || rows > CHECKED_ROWS_MAX) {
    throw new InvalidArgumentError(`Give a number of rows from 1 to ${CHECKED_ROWS_MAX}.`);
  }
  return rows;
}

/** @returns seconds */
export function parseDuration(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,6})([mhd])$/.exec(text) ?? [];
  const seconds = Number(count) * SECONDS_PER_UNIT[(unit ?? 'm') as keyof typeof SECONDS_PER_UNIT];
  if (count === undefined || seconds > DURATION_SECONDS_MAX) {
    throw new InvalidArgumentError('Give minutes, hours or days, such as 30m, 12h or 90d, and at most 3650d.');
  }
  return seconds;
}

/** A time of the past: a duration before now, or a date. */
export type Since = { seconds: number } | { time: Date };

export function parseSince(text: string): Since {
  if (/^[1-9]\d{0,6}[mhd]$/.test(text)) return { seconds: parseDuration(text) };
  const time = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d.*(Z|[+-]\d\d:\d\d)$/.test(text) || !isAcceptedTime(time)) {
    throw new InvalidArgumentError('Give a duration such as 30m, 2h or 7d, or a time such as 2026-11-20T10:00:00Z.');
  }
  return { time };
}

export function timeOf(since: Since, now: Date): Date {
  return 'time' in since ? since.time : new Date(now.getTime() - since.seconds * 1000);
}

export function parseScopes(text: string): Scope[] {
  const given = text.split(',').map((scope) => scope.trim());
  const known: readonly string[] = SCOPES;
  if (!given.every((scope) => known.includes(scope))) {
    throw new InvalidArgumentError(`Give comma-separated scopes out of ${SCOPES.join(', ')}.`);
  }
  return SCOPES.filter((scope) => given.includes(scope));
}

export function parsePublishSeconds(text: string): number {
  const seconds = /^\d{1,5}$/.test(text) ? Number(text) : Infinity;
  if (seconds > PUBLISH_SECONDS_MAX)
    throw new InvalidArgumentError(`Give whole seconds from 0 to ${PUBLISH_SECONDS_MAX}.`);
  return seconds;
}

export function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > LIST_LIMIT_MAX)
    throw new InvalidArgumentError(`Give a whole number from 1 to ${LIST_LIMIT_MAX}.`);
  return limit;
}

/** Parses a sentence that the owner of the resource will read. */
export function parseReason(text: string): string {
  const reason = trimName(text);
  const length = codePointLength(reason);
  if (length < 1 || length > REASON_LENGTH_MAX) {
    throw new InvalidArgumentError(`Give a reason of 1 to ${REASON_LENGTH_MAX} characters.`);
  }
  const unstorable = unstorableReason(reason);
  if (unstorable !== null) throw new InvalidArgumentError(`A reason ${unstorable}.`);
  return reason;
}
