import { inTime, QUEUE_OF_OPERATION, type OperationKind } from '@callplane/core';
import { Queue } from 'bullmq';
import { LRUCache } from 'lru-cache';
import { RedisHealth, RedisUnusable } from '../redis/redis-health.js';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectRedis, disconnectRedis, KEY_PREFIX, type RedisClient, type RedisEvents } from '../redis/redis.js';
import {
  operationJobId,
  QUEUE_NAMES,
  turnJob,
  type NewJob,
  type OperationJob,
  type QueueName,
  type Turn,
  QUEUE_OF_LANE,
} from './jobs.js';
import { overRedis, untilReady } from '../redis/redis-facts.js';

export interface NotSent {
  queue: QueueName;
  count: number;
  error: Error;
}

export interface ProducerEvents extends RedisEvents {
  /** Called for every failed wake-up, so that callers need not report it. Scans of the workers find the rows. */
  onNotSent?(notSent: NotSent): void;
}

/** Total time for sending wake-ups, in milliseconds. It is short because a DELETE waits for it. */
const ENQUEUE_DEADLINE_MS = 250;

export interface OperationWakeUp {
  kind: OperationKind;
  environmentId: string;
  id: string;
  run: number;
  runAttempts: number;
}

/**
 * Jobs that one process sends for one environment within {@link SENT_LATELY_MS}. A scan of the workers adds the rest,
 * in its turn. This bounds the jobs that one tenant can put into Redis.
 */
export const JOBS_PER_ENVIRONMENT = 1000;
/**
 * BullMQ takes jobs without a priority first, and then those with the lowest number. So the hundredth operation of a
 * tenant overtakes the thousandth of another one.
 */
const PRIORITY_MAX = JOBS_PER_ENVIRONMENT;
const SENT_LATELY_MS = 10_000;
const ENVIRONMENTS_MAX = 10_000;
/** Jobs that are added with one round trip, so that each is short enough for the deadline of a command. */
const JOBS_PER_COMMAND = 100;

/**
 * Sends wake-ups, fast and best effort. If it cannot send one, a scan of a worker finds the row later. It owns the
 * process's connection to Redis and watches its health, so other users of Redis take a producer, too.
 */
export class JobProducer {
  /** The `command` connection of this producer. The process may use it for other short commands. */
  readonly redis: RedisClient;
  readonly health: RedisHealth;
  /** Jobs of operations that this process sent lately, by environment. */
  readonly #sent = new LRUCache<string, number>({ max: ENVIRONMENTS_MAX, ttl: SENT_LATELY_MS, noUpdateTTL: true });
  readonly #queues = new Map<QueueName, Queue>();

  /** @param connection tests set a longer `commandTimeout`, in milliseconds, than requests can wait for. */
  constructor(
    where: RedisLocation,
    private readonly events: ProducerEvents,
    connection: { commandTimeout?: number } = {},
  ) {
    this.redis = connectRedis(where, 'command', events, connection);
    this.health = new RedisHealth(this.redis);
    for (const name of QUEUE_NAMES) {
      const queue = new Queue(name, {
        connection: this.redis,
        prefix: KEY_PREFIX,
        skipVersionCheck: true,
        defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
      });
      // The connection itself reports its losses.
      queue.on('error', () => undefined);
      this.#queues.set(name, queue);
    }
  }

  /**
   * Sends a job for each of these operations, which have just been accepted. Beyond {@link JOBS_PER_ENVIRONMENT} it sends
   * none, and a scan of a worker finds the row. Never throws, and takes at most 250 ms.
   * @returns whether Redis has taken all jobs that it was sent, and was sent one. An empty list is fine, too.
   * `onNotSent` gets the jobs that were not sent.
   */
  wakeOperations(rows: readonly OperationWakeUp[]): Promise<boolean> {
    const jobs: NewJob[] = [];
    const refused: NewJob[] = [];
    for (const row of rows) {
      const sent = this.#sent.get(row.environmentId) ?? 0;
      (sent < JOBS_PER_ENVIRONMENT ? jobs : refused).push(operationJob(row, sent));
      this.#sent.set(row.environmentId, sent + 1);
    }
    if (refused.length > 0) {
      const error = new Error('the environment has reached its limit of jobs in Redis');
      this.#report(batchesOf(refused), error);
      if (jobs.length === 0) return Promise.resolve(false);
    }
    return this.#add(jobs);
  }

  /**
   * Sends a job for each of these operations, which a scan has found. BullMQ ignores operations that have one already.
   * @returns false if Redis has not taken all.
   */
  async addDueOperations(rows: readonly (OperationWakeUp & { place: number })[]): Promise<boolean> {
    for (let from = 0; from < rows.length; from += JOBS_PER_COMMAND) {
      const jobs = rows.slice(from, from + JOBS_PER_COMMAND).map((row) => operationJob(row, row.place - 1));
      if (!(await this.#add(jobs))) return false;
    }
    return true;
  }

  /**
   * Adds turns of endpoints with due deliveries: after a commit that has written deliveries, or because a worker has not
   * taken all of them. Redis holds at most one waiting job for each endpoint and ticket. Never throws. A failure is
   * reported to `onNotSent`. Requests do not wait for it.
   */
  wakeDeliveries(turns: readonly Turn[]): Promise<boolean> {
    const distinct = new Map(turns.map((turn) => [`${turn.endpointId} ${turn.ticket ?? 0}`, turn]));
    return this.#add([...distinct.values()].map(turnJob));
  }

  /** The number of jobs in these queues (default: all) that no worker has taken: how far the workers lag behind. */
  async waitingCount(names: readonly QueueName[] = [...this.#queues.keys()]): Promise<number> {
    const queues = [...this.#queues].filter(([name]) => names.includes(name));
    const counts = await Promise.all(queues.map(([, queue]) => queue.getJobCountByTypes('waiting', 'prioritized')));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async close(): Promise<void> {
    this.health.close();
    await disconnectRedis(this.redis);
  }

  async #add(jobs: readonly NewJob[]): Promise<boolean> {
    const batches = batchesOf(jobs);
    const error = await this.#send(batches);
    if (error !== null) this.#report(batches, error);
    return error === null;
  }

  #report(batches: Batches, error: Error): void {
    for (const [queue, jobs] of batches) this.events.onNotSent?.({ queue, count: jobs.length, error });
  }

  /** @returns why the jobs were not sent; null if they were. */
  async #send(batches: Batches): Promise<Error | null> {
    if (batches.size === 0) return null;
    if (this.redis.status !== 'ready') return new Error('Redis is not connected');
    // Skips an unusable Redis, because every DELETE would wait for the deadline.
    const { trouble } = this.health;
    if (trouble !== null) return new RedisUnusable(trouble);
    const late = () => new Error(`Redis did not answer within ${ENQUEUE_DEADLINE_MS} ms`);
    try {
      const added = [...batches].map(async ([queue, jobs]) => this.#addTo(queue, jobs));
      await inTime(Promise.all(added), ENQUEUE_DEADLINE_MS, late);
      return null;
    } catch (error) {
      // Probes at once to find the reason. Until the probe has ended, every DELETE waits for the deadline.
      void this.health.probeAll();
      return error as Error;
    }
  }

  /** A lone job takes half the processor time without a pipeline. */
  async #addTo(name: QueueName, jobs: NewJob['job'][]): Promise<void> {
    const queue = this.#queues.get(name);
    const [job] = jobs;
    if (jobs.length === 1 && job !== undefined) await queue?.add(job.name, job.data, job.opts);
    else await queue?.addBulk(jobs);
  }
}

type Batches = ReadonlyMap<QueueName, NewJob['job'][]>;

function batchesOf(jobs: readonly NewJob[]): Batches {
  const batches = new Map<QueueName, NewJob['job'][]>();
  for (const { queue, job } of jobs) {
    const batch = batches.get(queue);
    if (batch === undefined) batches.set(queue, [job]);
    else batch.push(job);
  }
  return batches;
}

function operationJob(row: OperationWakeUp, priority: number): NewJob {
  const opts = { jobId: operationJobId(row), priority: Math.min(priority, PRIORITY_MAX) };
  const job = { name: row.kind, data: { operationId: row.id } satisfies OperationJob, opts };
  return { queue: QUEUE_OF_OPERATION[row.kind], job };
}

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
