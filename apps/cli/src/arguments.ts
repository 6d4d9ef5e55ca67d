import { codePointLength, SCOPES, trimUnicode, unstorableReason, type Scope } from '@callplane/core';
import { InvalidArgumentError } from 'commander';

const NAME_LENGTH_MAX = 120;
const SECONDS_PER_UNIT = { m: 60, h: 3600, d: 86_400 } as const;
/** Ten years: further off is a typing error. */
const DURATION_SECONDS_MAX = 3650 * SECONDS_PER_UNIT.d;
const PUBLISH_SECONDS_MAX = 86_400;
const LIST_LIMIT_MAX = 1000;
const REASON_LENGTH_MAX = 255;

/** How many rows a list shows unless told. */
export const LIST_LIMIT_DEFAULT = 20;

// Each throws InvalidArgumentError; commander puts the option and what was given in front of its message.

export function parseName(text: string): string {
  const name = trimUnicode(text);
  const length = codePointLength(name);
  if (length < 1 || length > NAME_LENGTH_MAX) {
    throw new InvalidArgumentError(`Give a name of 1 to ${NAME_LENGTH_MAX} characters.`);
  }
  const reason = unstorableReason(name);
  if (reason !== null) throw new InvalidArgumentError(`A name ${reason}.`);
  return name;
}

/** In seconds. */
export function parseDuration(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,6})([mhd])$/.exec(text) ?? [];
  const seconds = Number(count) * SECONDS_PER_UNIT[(unit ?? 'm') as keyof typeof SECONDS_PER_UNIT];
  if (count === undefined || seconds > DURATION_SECONDS_MAX) {
    throw new InvalidArgumentError('Give minutes, hours or days, such as 30m, 12h or 90d, and at most 3650d.');
  }
  return seconds;
}

export function parseScopes(text: string): Scope[] {
  const given = text.split(',').map((scope) => scope.trim());
  const known: readonly string[] = SCOPES;
  if (!given.every((scope) => known.includes(scope))) {
    throw new InvalidArgumentError(`Give scopes with commas between them, out of ${SCOPES.join(', ')}.`);
  }
  return SCOPES.filter((scope) => given.includes(scope));
}

export function parsePublishSeconds(text: string): number {
  const seconds = /^\d{1,5}$/.test(text) ? Number(text) : Infinity;
  if (seconds > PUBLISH_SECONDS_MAX)
    throw new InvalidArgumentError(`Give whole seconds from 0 to ${PUBLISH_SECONDS_MAX}.`);
  return seconds;
}

export function parseMigrationName(text: string): string {
  if (text.length > 80 || !/^[a-z0-9]+(_[a-z0-9]+)*$/.test(text)) {
    throw new InvalidArgumentError('Give lower-case words with underscores between them, such as add_webhooks.');
  }
  return text;
}

export function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > LIST_LIMIT_MAX)
    throw new InvalidArgumentError(`Give a whole number from 1 to ${LIST_LIMIT_MAX}.`);
  return limit;
}

/** A sentence that the owner of a resource will read. */
export function parseReason(text: string): string {
  const reason = trimUnicode(text);
  const length = codePointLength(reason);
  if (length < 1 || length > REASON_LENGTH_MAX) {
    throw new InvalidArgumentError(`Give a reason of 1 to ${REASON_LENGTH_MAX} characters.`);
  }
  const unstorable = unstorableReason(reason);
  if (unstorable !== null) throw new InvalidArgumentError(`A reason ${unstorable}.`);
  return reason;
}
