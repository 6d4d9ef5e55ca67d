import type { Clock } from '@callplane/core';
import { Database } from '@callplane/db';
import type { Notice } from '@callplane/queue';
import { parseEnvironment } from '@callplane/runtime';
import { CliConfig } from './config.js';

/** What every command gets. */
export interface Cli {
  readonly environment: NodeJS.ProcessEnv;
  readonly clock: Clock;
  /** To standard output. */
  readonly write: (text: string) => void;
}

/** @throws ConfigurationError */
export function configOf(cli: Cli): CliConfig {
  return parseEnvironment(CliConfig, cli.environment);
}

/** Runs `work` on a database connection that is closed afterwards. */
export async function withDatabase<T>(
  cli: Cli,
  work: (database: Database, config: CliConfig) => Promise<T>,
): Promise<T> {
  const config = configOf(cli);
  const database = new Database({ url: config.DATABASE_URL, poolMax: 1 });
  try {
    return await work(database, config);
  } finally {
    await database.close();
  }
}

/** Tells the running apps; false when nobody can be told, and they find out by themselves within seconds. */
export async function tellApps({ REDIS_URL }: CliConfig, notice: Notice, payload: string): Promise<boolean> {
  if (REDIS_URL === undefined) return false;
  // Loaded when needed: it takes longer than most commands do.
  const { publishNoticeOnce } = await import('@callplane/queue');
  return publishNoticeOnce(REDIS_URL, notice, payload);
}
