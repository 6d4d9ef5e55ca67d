import type { OperationKind } from '@callplane/core';
import { Queue } from 'bullmq';
import { RedisUnusable, watchRedis, type RedisHealth } from '../redis/redis-health.js';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectRedis, disconnectRedis, keyPrefixOf, type RedisClient, type RedisEvents } from '../redis/redis.js';
import { Allowance } from './allowance.js';
import { QUEUE_NAMES, QUEUE_OF_OPERATION, wakeUpJobId, type QueueName } from './catalogue.js';
import { QUEUE_OF_LANE, turnJob, type Turn } from './turns.js';

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
  wakeUps: number;
}

/** Interval between two counts of the waiting jobs of operations, in milliseconds. */
const COUNT_INTERVAL_MS = 1000;

/**
 * Sends wake-ups, fast and best effort. If it cannot send one, a scan of a worker finds the row later. It owns the
 * process's connection to Redis and watches its health, so other users of Redis take a producer, too.
 */
export class JobProducer {
  /** The `command` connection of this producer. The process may use it for other short commands. */
  readonly redis: RedisClient;
  /** Whether Redis currently accepts writes. */
  readonly health: RedisHealth;
  /** Bounds the wake-ups of operations that Redis holds for each environment. */
  readonly #allowance = new Allowance();
  readonly #counting: NodeJS.Timeout;
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
        prefix: keyPrefixOf(this.redis),
        skipVersionCheck: true,
        defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
      });
      // The connection itself reports its losses.
      queue.on('error', () => undefined);
      this.#queues.set(name, queue);
    }
    this.#counting = setInterval(() => void this.#countOperations(), COUNT_INTERVAL_MS).unref();
  }

  /**
   * Wakes workers for operations. The number of jobs that Redis holds for an environment is bounded. Beyond this bound
   * no job is sent, and a scan of a worker finds the row. Never throws, and takes at most 250 ms.
   * @param delayMs at most `SENT_AHEAD_MS`, because rows that are due later wait in PostgreSQL.
   * @returns `ok` if Redis has taken all wake-ups within the bound, and at least one was within it. An empty list is
   * `ok`, too. `onNotSent` gets the wake-ups that were not sent.
   */
  wakeOperations(rows: readonly OperationWakeUp[], delayMs?: number): Promise<WakeResult> {
    const allowed: OperationWakeUp[] = [];
    const refused: OperationWakeUp[] = [];
    for (const row of rows) (this.#allowance.take(row.environmentId) ? allowed : refused).push(row);
    if (refused.length > 0) {
      const error = new Error('the environment has reached its limit of jobs in Redis');
      this.#report(operationBatches(refused, delayMs), error);
      if (allowed.length === 0) return Promise.resolve({ ok: false, error });
    }
    return this.#add(operationBatches(allowed, delayMs));
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
    clearInterval(this.#counting);
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

  async #countOperations(): Promise<void> {
    if (!this.#allowance.isUsed || this.redis.status !== 'ready' || this.health.trouble !== null) return;
    try {
      this.#allowance.seeWaiting(await this.waitingCount(Object.values(QUEUE_OF_OPERATION)));
    } catch {
      // The next count follows in a second.
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

function operationBatches(rows: readonly OperationWakeUp[], delayMs: number | undefined): Batch[] {
  return Object.values(QUEUE_OF_OPERATION)
    .map((name) => ({
      name,
      jobs: rows
        .filter(({ kind }) => QUEUE_OF_OPERATION[kind] === name)
        .map((row) => ({
          name: row.environmentId,
          data: { operationId: row.id },
          opts: { jobId: wakeUpJobId(row), ...(delayMs === undefined ? {} : { delay: delayMs }) },
        })),
    }))
    .filter(({ jobs }) => jobs.length > 0);
}
