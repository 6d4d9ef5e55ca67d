import type { OperationKind } from '@callplane/core';
import { Queue } from 'bullmq';
import { LRUCache } from 'lru-cache';
import { RedisUnusable, watchRedis, type RedisHealth } from '../redis/redis-health.js';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectRedis, disconnectRedis, KEY_PREFIX, type RedisClient, type RedisEvents } from '../redis/redis.js';
import {
  operationJobId,
  QUEUE_NAMES,
  QUEUE_OF_LANE,
  QUEUE_OF_OPERATION,
  turnJob,
  type QueueName,
  type Turn,
} from './jobs.js';

/** Wake-ups that could not be sent. */
export interface NotSent {
  queue: QueueName;
  count: number;
  error: Error;
}

export interface ProducerEvents extends RedisEvents {
  /** Called for every failed wake-up, so that callers need not report it. Scans of the workers find the rows. */
  onNotSent?(notSent: NotSent): void;
}

type WakeResult = { ok: true } | { ok: false; error: Error };

/** Total time for sending wake-ups, in milliseconds. It is short because a DELETE waits for it. */
const ENQUEUE_DEADLINE_MS = 250;

/** A row of a durable operation that a worker should look at. */
export interface OperationWakeUp {
  kind: OperationKind;
  environmentId: string;
  id: string;
  run: number;
  runAttempts: number;
}

/**
 * BullMQ takes jobs without a priority first, and then those with the lowest number. So the first operation of a tenant
 * overtakes the thousandth of another one.
 */
const PRIORITY_MAX = 100;
/**
 * Jobs that one process sends for one environment within {@link SENT_LATELY_MS}. A scan of the workers adds the rest,
 * in its turn. This bounds what one tenant can put into Redis.
 */
export const JOBS_PER_ENVIRONMENT = 1000;
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
  /** Whether Redis currently accepts writes. */
  readonly health: RedisHealth;
  /** Jobs of operations that this process sent lately, by environment. */
  readonly #sent = new LRUCache<string, number>({ max: ENVIRONMENTS_MAX, ttl: SENT_LATELY_MS, noUpdateTTL: true });
  readonly #queues = new Map<QueueName, Queue>();
  readonly #events: ProducerEvents;

  /** @param connection tests set a longer `commandTimeout`, in milliseconds, than requests can wait for. */
  constructor(where: RedisLocation, events: ProducerEvents, connection: { commandTimeout?: number } = {}) {
    this.#events = events;
    this.redis = connectRedis(where, 'command', events, connection);
    this.health = watchRedis(this.redis);
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
   * @returns `ok` if Redis has taken all jobs that it was sent, and was sent one. An empty list is `ok`, too.
   * `onNotSent` gets the jobs that were not sent.
   */
  wakeOperations(rows: readonly OperationWakeUp[]): Promise<WakeResult> {
    const jobs: PrioritizedOperation[] = [];
    const refused: PrioritizedOperation[] = [];
    for (const row of rows) {
      const sent = this.#sent.get(row.environmentId) ?? 0;
      (sent < JOBS_PER_ENVIRONMENT ? jobs : refused).push({ ...row, priority: sent });
      this.#sent.set(row.environmentId, sent + 1);
    }
    if (refused.length > 0) {
      const error = new Error('the environment has reached its limit of jobs in Redis');
      this.#report(operationBatches(refused), error);
      if (jobs.length === 0) return Promise.resolve({ ok: false, error });
    }
    return this.#add(operationBatches(jobs));
  }

  /**
   * Sends a job for each of these operations, which a scan has found. BullMQ ignores those that have one already.
   * @returns false if Redis has not taken all.
   */
  async addDueOperations(rows: readonly (OperationWakeUp & { place: number })[]): Promise<boolean> {
    for (let from = 0; from < rows.length; from += JOBS_PER_COMMAND) {
      const some = rows.slice(from, from + JOBS_PER_COMMAND);
      const { ok } = await this.#add(operationBatches(some.map((row) => ({ ...row, priority: row.place - 1 }))));
      if (!ok) return false;
    }
    return true;
  }

  /**
   * Adds turns of endpoints with due deliveries: after a commit that has written deliveries, or because a worker has not
   * taken all of them. Redis holds at most one waiting job for each endpoint and ticket. Never throws. A failure is
   * reported to `onNotSent`. Requests do not wait for it.
   */
  wakeDeliveries(turns: readonly Turn[]): Promise<WakeResult> {
    return this.#add(turnBatches(turns));
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

  async #add(batches: readonly Batch[]): Promise<WakeResult> {
    const error = await this.#send(batches);
    if (error === null) return { ok: true };
    this.#report(batches, error);
    return { ok: false, error };
  }

  #report(batches: readonly Batch[], error: Error): void {
    for (const { name, jobs } of batches) this.#events.onNotSent?.({ queue: name, count: jobs.length, error });
  }

  /** @returns why the jobs were not sent; null if they were. */
  async #send(batches: readonly Batch[]): Promise<Error | null> {
    if (batches.length === 0) return null;
    if (this.redis.status !== 'ready') return new Error('Redis is not connected');
    // Skips an unusable Redis, because every DELETE would wait for the deadline.
    const { trouble } = this.health;
    if (trouble !== null) return new RedisUnusable(trouble);
    let timer: NodeJS.Timeout | undefined;
    try {
      const deadline = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`Redis did not answer within ${ENQUEUE_DEADLINE_MS} ms`)),
          ENQUEUE_DEADLINE_MS,
        );
      });
      const added = batches.map(async ({ name, jobs }) => this.#queues.get(name)?.addBulk([...jobs]));
      await Promise.race([Promise.all(added), deadline]);
      return null;
    } catch (error) {
      // Probes at once to find the reason. Until the probe has ended, every DELETE waits for the deadline.
      void this.health.probe();
      return error as Error;
    } finally {
      clearTimeout(timer);
    }
  }
}

interface Batch {
  name: QueueName;
  jobs: readonly { name: string; data: object; opts: object }[];
}

/** One job for each endpoint and ticket. */
function turnBatches(turns: readonly Turn[]): Batch[] {
  const distinct = new Map(turns.map((turn) => [`${turn.endpointId} ${turn.ticket ?? 0}`, turn]));
  const jobs = [...distinct.values()].map(turnJob);
  return Object.values(QUEUE_OF_LANE)
    .map((name) => ({ name, jobs: jobs.flatMap(({ queue, job }) => (queue === name ? [job] : [])) }))
    .filter(({ jobs: some }) => some.length > 0);
}

type PrioritizedOperation = OperationWakeUp & { priority: number };

function operationBatches(rows: readonly PrioritizedOperation[]): Batch[] {
  return Object.values(QUEUE_OF_OPERATION)
    .map((name) => ({
      name,
      jobs: rows
        .filter(({ kind }) => QUEUE_OF_OPERATION[kind] === name)
        .map((row) => ({
          name: row.kind,
          data: { operationId: row.id },
          opts: { jobId: operationJobId(row), priority: Math.min(row.priority, PRIORITY_MAX) },
        })),
    }))
    .filter(({ jobs }) => jobs.length > 0);
}
