import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '@callplane/core';
import { DelayedError, Worker, type Job } from 'bullmq';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectRedis, disconnectRedis, KEY_PREFIX, type RedisClient, type RedisEvents } from '../redis/redis.js';
import { QUEUE_OF_OPERATION, type OperationJob } from './catalogue.js';

export interface OperationWorkersSettings {
  redisUrl: RedisLocation;
  /** Jobs of each queue that are worked on at once. */
  concurrency: number;
  /**
   * Works on one operation.
   * @returns in how many milliseconds its next attempt is due; null if there is none, or if it is not up to this worker.
   */
  work(operationId: string): Promise<number | null>;
  clock: Clock;
  events: RedisEvents & {
    /** `work` has thrown, or Redis does not delay the job. The job is gone, and a scan finds the row. */
    onFailed(error: Error, operationId: string): void;
    /** Redis has not taken what became of a job, or the job is not ours any more. The row is right. */
    onError(error: Error): void;
  };
}

/**
 * How long BullMQ waits after a failed command before it takes jobs again, in milliseconds. With its default of 15 s,
 * scans would find the rows sooner.
 */
const RETRY_DELAY_MS = 1000;
/**
 * How much later than the row its delayed job is due, in milliseconds. BullMQ goes by the clock of a worker, the row by
 * that of PostgreSQL, and a job that comes early leaves its row to the next scan.
 */
const CLOCKS_DIFFER_MS = 100;
/** How long closing waits for Redis to learn what became of the last jobs, in milliseconds: it may never answer. */
const FAREWELL_MS = 1000;

/** The workers of both queues of operations. */
export class OperationWorkers {
  readonly #settings: OperationWorkersSettings;
  readonly #redis: RedisClient;
  readonly #workers: readonly Worker<OperationJob>[];
  readonly #working = new Set<Promise<unknown>>();
  readonly #delaying = new Set<Promise<unknown>>();

  constructor(settings: OperationWorkersSettings) {
    this.#settings = settings;
    this.#redis = connectRedis(settings.redisUrl, 'blocking', settings.events);
    this.#workers = Object.values(QUEUE_OF_OPERATION).map((queue) => {
      const worker = new Worker<OperationJob>(queue, (job, token) => this.#process(job, token), {
        connection: this.#redis,
        prefix: KEY_PREFIX,
        concurrency: settings.concurrency,
        runRetryDelay: RETRY_DELAY_MS,
        skipVersionCheck: true,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      });
      worker.on('failed', (job, error) => settings.events.onFailed(error, job?.data.operationId ?? ''));
      worker.on('error', (error) => settings.events.onError(error));
      return worker;
    });
  }

  async #process(job: Job<OperationJob>, token: string | undefined): Promise<void> {
    const retryInMs = await during(this.#working, this.#settings.work(job.data.operationId));
    if (retryInMs === null) return;
    const dueMs = this.#settings.clock.now().getTime() + retryInMs + CLOCKS_DIFFER_MS;
    await during(this.#delaying, job.moveToDelayed(dueMs, token));
    throw new DelayedError();
  }

  /** Takes no more jobs, waits for those that are worked on, and at most a second for Redis. */
  async close(): Promise<void> {
    // `close()` alone may wait for ever for a frozen Redis; `close(true)` does not wait for the work.
    await Promise.all(this.#workers.map((worker) => worker.pause(true)));
    await Promise.allSettled(this.#working);
    await Promise.race([Promise.allSettled(this.#delaying), delay(FAREWELL_MS)]);
    // BullMQ sends the ends of the other jobs within this turn of the event loop.
    await delay(0);
    await Promise.all(this.#workers.map((worker) => worker.close(true)));
    await disconnectRedis(this.#redis);
  }
}

function during<T>(running: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  running.add(work);
  const end = (): void => void running.delete(work);
  work.then(end, end);
  return work;
}
