import { parseMasterKeys, type Clock, type MasterKeys, type OperationKind } from '@callplane/core';
import { Database, type MigrationTarget, type WakeableDelivery, type WakeableOperation } from '@callplane/db';
import type { Notice } from '@callplane/queue';
import { parseEnvironment } from '@callplane/runtime';
import { CliConfig } from './config.js';
import { UsageError } from './failure.js';

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

/** Which migrations go where. */
export function targetOf({ DATABASE_URL, PRISMA_DIR }: CliConfig): MigrationTarget {
  return { databaseUrl: DATABASE_URL, ...(PRISMA_DIR === undefined ? {} : { prismaDir: PRISMA_DIR }) };
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

/** Wakes the cleanup workers for these rows; false when they cannot be told, and a sweep finds the rows. */
export async function wakeWorkers(
  { REDIS_URL }: CliConfig,
  operations: readonly { kind: OperationKind; row: WakeableOperation }[],
): Promise<boolean> {
  if (REDIS_URL === undefined) return false;
  const { QUEUE_OF_OPERATION, wakeOnce } = await import('@callplane/queue');
  return wakeOnce(
    REDIS_URL,
    operations.map(({ kind, row }) => ({ queue: QUEUE_OF_OPERATION[kind], row })),
  );
}

/** The same for webhook workers. */
export async function wakeDeliveries(
  { REDIS_URL }: CliConfig,
  deliveries: readonly WakeableDelivery[],
): Promise<boolean> {
  if (deliveries.length === 0) return true;
  if (REDIS_URL === undefined) return false;
  const { wakeOnce } = await import('@callplane/queue');
  return wakeOnce(
    REDIS_URL,
    deliveries.map((row) => ({ queue: 'webhook-delivery' as const, row })),
  );
}

/** @throws UsageError */
export function masterKeysOf({ ENCRYPTION_KEYS }: CliConfig): MasterKeys {
  if (ENCRYPTION_KEYS === undefined) throw new UsageError('Set ENCRYPTION_KEYS to the master keys that the API has.');
  try {
    return parseMasterKeys(ENCRYPTION_KEYS);
  } catch (error) {
    throw new UsageError(`ENCRYPTION_KEYS: ${(error as Error).message}.`);
  }
}
