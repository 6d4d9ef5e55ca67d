import {
  codePointLength,
  controlReason,
  DELIVERY_FAILURE_REASONS,
  EVENT_TYPES,
  isAcceptedTime,
  REGION_PATTERN,
  SCOPES,
  type Tenant,
  trimName,
  unstorableReason,
  USAGE_DAYS_MAX,
} from '@callplane/core';
import { listEnvironments, listProjects, tenantOfEnvironment, type ListFilter, type Db } from '@callplane/db';
import { InvalidArgumentError, Option } from 'commander';
import type { Cli } from './cli.js';
import { UsageError } from './failure.js';
import type { OutputOptions } from './output.js';
import { quoted } from './terminal.js';

const SECONDS_PER_UNIT = { m: 60, h: 3600, d: 86_400 } as const;
/** Ten years. A longer duration is probably a typing error. */
const DURATION_SECONDS_MAX = 3650 * SECONDS_PER_UNIT.d;
const PUBLISH_SECONDS_MAX = 86_400;
const LIST_LIMIT_MAX = 1000;
const LIST_LIMIT_DEFAULT = 20;
const NAMES_MAX = 5;

// Each parser throws InvalidArgumentError. Commander puts the option and its value in front of the message.

/** A parser of texts that the owners of resources read. */
function parseText(what: string, lengthMax: number): (text: string) => string {
  return (text) => {
    const trimmed = trimName(text);
    const length = codePointLength(trimmed);
    if (length < 1 || length > lengthMax) {
      throw new InvalidArgumentError(`Give a ${what} of 1 to ${lengthMax} characters.`);
    }
    const reason = unstorableReason(trimmed) ?? controlReason(trimmed);
    if (reason !== null) throw new InvalidArgumentError(`A ${what} ${reason}.`);
    return trimmed;
  };
}

export const parseName = parseText('name', 120);
export const parseReason = parseText('reason', 255);

export function parseSome<T extends string>(what: string, choices: readonly T[]): (text: string) => T[] {
  return (text) => {
    const given = text.split(',').map((value) => value.trim());
    if (!given.every((value) => choices.some((choice) => choice === value))) {
      throw new InvalidArgumentError(`Give comma-separated ${what} out of ${choices.join(', ')}.`);
    }
    return choices.filter((choice) => given.includes(choice));
  };
}

export function parseRegion(text: string): string {
  if (new RegExp(REGION_PATTERN).test(text)) return text;
  throw new InvalidArgumentError('Give 1 to 32 lower-case letters, digits and inner hyphens, such as eu-west.');
}

export const parseScopes = parseSome('scopes', SCOPES);

export function parseCount(what: string, min: number, max: number): (text: string) => number {
  return (text) => {
    const count = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    if (!(count >= min && count <= max)) throw new InvalidArgumentError(`Give ${what} from ${min} to ${max}.`);
    return count;
  };
}

export const parseDays = parseCount('a number of days', 1, USAGE_DAYS_MAX);
export const parsePublishSeconds = parseCount('whole seconds', 0, PUBLISH_SECONDS_MAX);

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

// Filters of lists. A command may share them.

export const ENV_FILTER = new Option('--env <id>', 'filter by environment (env_…)');
export const ROOM_FILTER = new Option('--room <id>', 'filter by room (room_…)');
export const ENDPOINT_FILTER = new Option('--endpoint <id>', 'filter by endpoint (whep_…)');
export const TYPE_FILTER = new Option('--type <type>', 'filter by type of event').choices(EVENT_TYPES);
export const LIMIT_FILTER = new Option('--limit <count>', 'maximum number of rows, 1 to 1000')
  .argParser(parseCount('a whole number', 1, LIST_LIMIT_MAX))
  .default(LIST_LIMIT_DEFAULT);

/** The filters of every list over all environments, newest first. */
export const NEWEST: readonly Option[] = [
  ENV_FILTER,
  new Option('--since <time>', 'only rows from then on: a duration such as 2h, or an ISO 8601 time').argParser(
    parseSince,
  ),
  LIMIT_FILTER,
];

/** The filters of a list of deliveries, and of commands for many of them. */
export const DELIVERY_FILTERS: readonly Option[] = [
  ...NEWEST,
  ENDPOINT_FILTER,
  ROOM_FILTER,
  new Option('--reason <reason>', 'filter by failure reason').choices(DELIVERY_FAILURE_REASONS),
  TYPE_FILTER,
];

export function oneOf(flags: string, choices: readonly string[], description = 'filter by this value'): Option {
  return new Option(flags, description).choices(choices);
}

export interface NewestOptions extends OutputOptions {
  env?: string;
  since?: Since;
  limit: number;
}

export function filterOf(cli: Cli, options: NewestOptions): ListFilter {
  return {
    environmentId: options.env ?? null,
    since: options.since === undefined ? null : timeOf(options.since, cli.clock.now()),
    limit: options.limit,
  };
}

export const PROJECT_OPTION = ['--project <id>', 'id of the project (proj_…); by default, the only one'] as const;
export const ENV_OPTION = ['--env <id>', 'id of the environment (env_…); by default, the only one'] as const;

export async function projectOf(db: Db, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const projects = await listProjects(db);
  const [only] = projects;
  if (only === undefined) throw new UsageError('There is no project yet: "rtc projects create --name <name>".');
  if (projects.length > 1) throw new UsageError(`Give --project, one of: ${namesOf(projects)}.`);
  return only.id;
}

export async function environmentOf(db: Db, given: string | undefined, how = '--env'): Promise<Tenant> {
  if (given !== undefined) {
    const tenant = await tenantOfEnvironment(db, given);
    if (tenant === null) throw notFound('Environment', given, 'environments list --project …');
    return tenant;
  }
  const projects = await listProjects(db);
  const environments = (await Promise.all(projects.map(({ id }) => listEnvironments(db, id)))).flatMap(
    (rows) => rows ?? [],
  );
  const [only] = environments;
  if (only === undefined) {
    throw new UsageError('There is no environment yet: "rtc environments create --project <id> --name <name>".');
  }
  if (environments.length > 1) throw new UsageError(`Give ${how}, one of: ${namesOf(environments)}.`);
  return { environmentId: only.id, projectId: only.projectId };
}

function namesOf(rows: readonly { id: string; name: string }[]): string {
  const shown = rows.slice(0, NAMES_MAX).map(({ id, name }) => `${id} ${quoted(name)}`);
  return [...shown, ...(rows.length > NAMES_MAX ? [`${rows.length - NAMES_MAX} more`] : [])].join(', ');
}

/** @param list the command that lists the objects, such as `rooms list`. */
export function notFound(what: string, id: string, list: string): UsageError {
  return new UsageError(`${what} ${quoted(id)} not found. See "rtc ${list}".`);
}
