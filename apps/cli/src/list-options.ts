import type { ListFilter } from '@callplane/db';
import type { Command } from 'commander';
import { LIST_LIMIT_DEFAULT, parseLimit, parseSince, timeOf, type Since } from './arguments.js';
import type { Cli } from './cli.js';
import type { OutputOptions } from './output.js';

/** The options that every list over all environments has. */
export interface ListOptions extends OutputOptions {
  env?: string;
  since?: Since;
  limit: number;
}

export function addListOptions(command: Command): Command {
  return command
    .option('--env <id>', 'filter by environment (env_…)')
    .option('--since <time>', 'only rows from then on: a duration such as 2h, or an ISO 8601 time', parseSince)
    .option('--limit <count>', 'maximum number of rows, 1 to 1000', parseLimit, LIST_LIMIT_DEFAULT);
}

export function filterOf(cli: Cli, options: ListOptions): ListFilter {
  return {
    environmentId: options.env ?? null,
    since: options.since === undefined ? null : timeOf(options.since, cli.clock.now()),
    limit: options.limit,
  };
}
