import { parseMasterKeys, type Clock, type MasterKeys } from '@callplane/core';
import { Database, type DueEndpoint, type WakeableOperation } from '@callplane/db';
import type { MigrationTarget } from '@callplane/migrations';
import type * as Queue from '@callplane/queue';
import type { Notice, QueueDepth } from '@callplane/queue';
import { readRedisTarget, RedisSettingsError, type RedisTarget } from '@callplane/queue/redis-target';
import { ConfigurationError, databaseConnection, parseEnvironment } from '@callplane/runtime';
import { CliConfig } from './config.js';
import { UsageError } from './failure.js';

export interface Cli {
  readonly environment: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly write: (text: string) => void;
  /** Writes the progress of a long command to standard error. */
  readonly note?: (text: string) => void;
}

/** @throws ConfigurationError */
export function configOf(cli: Cli): CliConfig {
  const config = parseEnvironment(CliConfig, cli.environment);
  // A command must not change the database first and fail on the settings of Redis then.
  redisOf(config);
  return config;
}

/**
 * Where Redis is; undefined if it is not configured.
 * @throws ConfigurationError
 */
export function redisOf({ REDIS_URL, ...settings }: CliConfig): RedisTarget | undefined {
  if (REDIS_URL === undefined) return undefined;
  try {
    return readRedisTarget({ REDIS_URL, ...settings });
  } catch (error) {
    if (!(error instanceof RedisSettingsError)) throw error;
    throw new ConfigurationError([`${error.setting} ${error.message}`]);
  }
}

export function targetOf(config: CliConfig): MigrationTarget {
  const { PRISMA_DIR, DATABASE_DIRECT_URL, DATABASE_POOLER } = config;
  if (DATABASE_POOLER === 'transaction' && DATABASE_DIRECT_URL === undefined) {
    throw new UsageError('Set DATABASE_DIRECT_URL: migrations need sessions of their own, without the pooler.');
  }
  const { url: databaseUrl, passwordFile, caFile } = directConnection(config);
  return {
    databaseUrl,
    ...(passwordFile === undefined ? {} : { passwordFile }),
    ...(caFile === undefined ? {} : { caFile }),
    ...(PRISMA_DIR === undefined ? {} : { prismaDir: PRISMA_DIR }),
  };
}

/** The connection to PostgreSQL itself, past a pooler. */
export function directConnection(config: CliConfig) {
  const { DATABASE_DIRECT_URL } = config;
  if (DATABASE_DIRECT_URL === undefined) return databaseConnection(config);
  return databaseConnection({ ...config, DATABASE_URL: DATABASE_DIRECT_URL, DATABASE_POOLER: 'none' });
}

export async function withDatabase<T>(
  cli: Cli,
  work: (database: Database, config: CliConfig) => Promise<T>,
): Promise<T> {
  const config = configOf(cli);
  const database = new Database({ ...databaseConnection(config), poolMax: 1 });
  try {
    return await work(database, config);
  } finally {
    await database.close();
  }
}

/**
 * Publishes notices to the running apps, one for each payload. Returns false if Redis is not configured or fails; the
 * apps then notice the change within seconds.
 */
export async function notifyApps(config: CliConfig, notice: Notice, ...payloads: readonly string[]): Promise<boolean> {
  if (payloads.length === 0) return true;
  const published = await overRedis(config, ({ publishNotice, publishOnce }, redis) =>
    publishOnce(redis, (client) => payloads.map((payload) => publishNotice(client, notice, payload))),
  );
  return published ?? false;
}

/** Tells the gateways that rooms have changed, such as moved. Without Redis they notice it within seconds. */
export async function notifyRooms(config: CliConfig, rooms: readonly { roomId: string; version: number | null }[]) {
  if (rooms.length === 0) return;
  await overRedis(config, ({ publishOnce, publishRoomChanged }, redis) =>
    publishOnce(redis, (client) => rooms.map(({ roomId, version }) => publishRoomChanged(client, roomId, version))),
  );
}

/**
 * Wakes the cleanup workers for these rows. Returns false if Redis is not configured or fails; a scan then finds the
 * rows.
 */
export async function wakeWorkers(config: CliConfig, operations: readonly WakeableOperation[]): Promise<boolean> {
  const woken = await overRedis(config, (queue, redis) =>
    queue.wakeOnce(redis, (jobs) => jobs.wakeOperations(operations)),
  );
  return woken ?? false;
}

/** Like {@link wakeWorkers}, for the webhook workers and their deliveries. */
export async function wakeDeliveries(config: CliConfig, deliveries: readonly DueEndpoint[]): Promise<boolean> {
  if (deliveries.length === 0) return true;
  const woken = await overRedis(config, (queue, redis) =>
    queue.wakeOnce(redis, (jobs) => jobs.wakeDeliveries(deliveries)),
  );
  return woken ?? false;
}

export function queueDepths(config: CliConfig): Promise<QueueDepth[] | null> {
  return overRedis(config, (queue, redis) => queue.readQueueDepths(redis).catch(() => null));
}

/** Null if Redis is not configured. */
async function overRedis<T>(
  config: CliConfig,
  work: (queue: typeof Queue, redis: RedisTarget) => Promise<T>,
): Promise<T | null> {
  const redis = redisOf(config);
  if (redis === undefined) return null;
  // Imported on demand: loading this package takes longer than most commands.
  return work(await import('@callplane/queue'), redis);
}

/** The end of a message if the workers were not woken. */
export function foundLater(workersNotified: boolean): string {
  return workersNotified ? '' : '; the workers notice it within 15 seconds';
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
