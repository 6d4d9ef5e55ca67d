import { Queue } from 'bullmq';
import { overRedis, untilReady } from '../redis/redis-facts.js';
import type { RedisLocation } from '../redis/redis-target.js';
import { KEY_PREFIX, type RedisClient } from '../redis/redis.js';
import { JobProducer } from './job-producer.js';
import { QUEUE_NAMES, QUEUE_OF_LANE, type QueueName } from './jobs.js';

export interface QueueDepth {
  queue: QueueName;
  /** Jobs that no worker has taken yet. */
  waiting: number;
  delayed: number;
  /** Jobs that a worker has taken: operations that it works on. */
  active: number;
  /** Worker processes that take jobs from the queue. */
  workers: number;
}

const quiet = { onLost: () => undefined, onReady: () => undefined };

/**
 * Reads the depths of all queues over its own connection.
 * @throws RedisUnusable if Redis cannot be reached.
 */
export function readQueueDepths(where: RedisLocation): Promise<QueueDepth[]> {
  return overRedis(where, async (redis) => {
    const depths = await Promise.all(QUEUE_NAMES.map((name) => depthOf(redis, name)));
    // Both lanes of deliveries count as one queue. Each worker takes turns of both.
    const { fast, slow } = QUEUE_OF_LANE;
    const slowDepth = depths.find(({ queue }) => queue === slow);
    return depths
      .filter(({ queue }) => queue !== slow)
      .map((depth) => (depth.queue === fast && slowDepth !== undefined ? sumOf(depth, slowDepth) : depth));
  });
}

async function depthOf(redis: RedisClient, name: QueueName): Promise<QueueDepth> {
  const queue = new Queue(name, { connection: redis, prefix: KEY_PREFIX, skipVersionCheck: true });
  queue.on('error', () => undefined);
  const [counts, workers] = await Promise.all([
    queue.getJobCounts('waiting', 'prioritized', 'delayed', 'active'),
    queue.getWorkersCount(),
  ]);
  const { waiting = 0, prioritized = 0, delayed = 0, active = 0 } = counts;
  return { queue: name, waiting: waiting + prioritized, delayed, active, workers };
}

const sumOf = (one: QueueDepth, other: QueueDepth): QueueDepth => ({
  ...one,
  waiting: one.waiting + other.waiting,
  delayed: one.delayed + other.delayed,
  active: one.active + other.active,
});

/** Sends wake-ups over its own connection. False if Redis cannot be reached; scans of the workers find the rows. */
export async function wakeOnce(
  where: RedisLocation,
  send: (producer: JobProducer) => Promise<boolean>,
): Promise<boolean> {
  const producer = new JobProducer(where, quiet);
  try {
    await untilReady(producer.redis);
    return await send(producer);
  } catch {
    return false;
  } finally {
    await producer.close();
  }
}
