import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { connectRedis, disconnectRedis } from '../redis/redis.js';
import { QUEUE_PREFIX, QUEUES, type QueueName } from './catalogue.js';
import { JobProducer, type WakeUp } from './job-producer.js';

/** What Redis knows of one queue. */
export interface QueueDepth {
  queue: QueueName;
  /** Wake-ups that wait to be taken. */
  waiting: number;
  /** Wake-ups for later. */
  delayed: number;
  /** Wake-ups that a worker is busy with. */
  active: number;
  /** Worker processes that take from it. */
  workers: number;
}

const quiet = { onLost: () => undefined, onReady: () => undefined };
/** How long a command of a person waits for Redis, in milliseconds. */
const PATIENCE_MS = 3000;

/** Reads every queue over a connection of its own. @throws when Redis cannot be reached */
export async function readQueueDepths(redisUrl: string): Promise<QueueDepth[]> {
  const redis = connectRedis(redisUrl, 'command', quiet);
  try {
    await untilReady(redis);
    return await Promise.all(
      (Object.keys(QUEUES) as QueueName[]).map(async (name) => {
        const queue = new Queue(name, { connection: redis, prefix: QUEUE_PREFIX, skipVersionCheck: true });
        queue.on('error', () => undefined);
        const [counts, workers] = await Promise.all([
          queue.getJobCounts('waiting', 'prioritized', 'delayed', 'active'),
          queue.getWorkersCount(),
        ]);
        return {
          queue: name,
          waiting: (counts['waiting'] ?? 0) + (counts['prioritized'] ?? 0),
          delayed: counts['delayed'] ?? 0,
          active: counts['active'] ?? 0,
          workers,
        };
      }),
    );
  } finally {
    await disconnectRedis(redis);
  }
}

/** What `INFO` and `CONFIG` say that matters to us. @throws when Redis cannot be reached */
export interface RedisFacts {
  version: string;
  /** `noeviction`, or jobs vanish under memory pressure; null when the server does not tell. */
  maxmemoryPolicy: string | null;
  /** Whether jobs survive a restart of Redis; without it a sweep finds what was lost. */
  appendOnly: boolean;
}

export async function readRedisFacts(redisUrl: string): Promise<RedisFacts> {
  const redis = connectRedis(redisUrl, 'command', quiet);
  try {
    await untilReady(redis);
    const info = await redis.info();
    const field = (name: string): string | null => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? null;
    return {
      version: field('redis_version') ?? 'unknown',
      maxmemoryPolicy: field('maxmemory_policy'),
      appendOnly: field('aof_enabled') === '1',
    };
  } finally {
    await disconnectRedis(redis);
  }
}

/** Sends wake-ups over a connection of its own; false when Redis cannot be reached, and the sweeps find the rows. */
export async function wakeOnce(redisUrl: string, wakeUps: readonly WakeUp[]): Promise<boolean> {
  const producer = new JobProducer(redisUrl, quiet);
  try {
    await untilReady(producer.redis);
    return (await producer.wakeAll(wakeUps)).ok;
  } catch {
    return false;
  } finally {
    await producer.close();
  }
}

function untilReady(redis: Redis): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('Redis did not answer in time')), PATIENCE_MS);
    const settle = (finish: () => void) => () => {
      clearTimeout(timer);
      finish();
    };
    redis.once('ready', settle(resolve));
    redis.once(
      'error',
      settle(() => reject(new Error('Redis cannot be reached'))),
    );
  });
}
