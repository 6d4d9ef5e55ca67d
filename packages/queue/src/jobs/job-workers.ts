import { setTimeout as delay } from 'node:timers/promises';
import { DelayedError, Worker, type Job, type WorkerOptions } from 'bullmq';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectRedis, disconnectRedis, KEY_PREFIX, type RedisClient, type RedisEvents } from '../redis/redis.js';
import { jobReader, nowMs, type QueueName } from './jobs.js';

/** How BullMQ hands a job to a worker. */
export interface Handed {
  queue: QueueName;
  priority: number;
  /** Counts the workers that got the job, from 1 on. */
  run: number;
  /** Whether the worker that had the job before is dead or cut off. */
  isStalled: boolean;
}

export interface JobWorkersSettings<Data> {
  redisUrl: RedisLocation;
  /** How many jobs of each queue are worked on at once. */
  queues: Partial<Record<QueueName, number>>;
  /**
   * Works on one job.
   * @returns after how many milliseconds it comes back; null if it is over, or if it is not up to this worker.
   */
  work(data: Data, handed: Handed): Promise<number | null>;
  events: RedisEvents & {
    /** `work` has thrown, or Redis does not delay the job. The job is gone, and a scan finds the row. */
    onFailed(error: Error, data: Data | undefined): void;
  };
}

/**
 * BullMQ's lock of a job, its renewal, and the check for jobs of dead workers, in milliseconds. Another worker gets the
 * job of a dead one after at most the lock and two checks. A worker that loses Redis keeps a lock for the rest of the
 * lock less one renewal: longer than an attempt takes. BullMQ never fails a job because it stalls.
 */
const LOCKS = {
  lockDuration: 17_000,
  lockRenewTime: 5000,
  stalledInterval: 3000,
  maxStalledCount: 1_000_000,
} as const satisfies Partial<WorkerOptions>;

/** Pause of BullMQ after a failed command, in milliseconds. With its default of 15 s, scans would find the rows sooner. */
const RETRY_DELAY_MS = 1000;
/**
 * How much later than the row its delayed job is due, in milliseconds. BullMQ goes by the clock of a worker, the row by
 * PostgreSQL's clock, and a job that comes early leaves its row to the next scan.
 */
const CLOCKS_DIFFER_MS = 100;
/** How long closing waits until Redis has the outcomes of the last jobs, in milliseconds: it may never answer. */
const FAREWELL_MS = 1000;

export class JobWorkers<Data extends object> {
  readonly #redis: RedisClient;
  readonly #workers: readonly Worker<Data>[];
  readonly #working = new Set<Promise<unknown>>();
  readonly #delaying = new Set<Promise<unknown>>();

  constructor(private readonly settings: JobWorkersSettings<Data>) {
    this.#redis = connectRedis(settings.redisUrl, 'blocking', settings.events);
    this.#workers = Object.entries(settings.queues).map(([queue, concurrency]) => {
      const read = jobReader(queue as QueueName) as (data: unknown) => Data;
      const worker = new Worker<Data>(queue, (job, token) => this.#process(job, read, token), {
        connection: this.#redis,
        prefix: KEY_PREFIX,
        concurrency,
        ...LOCKS,
        runRetryDelay: RETRY_DELAY_MS,
        skipVersionCheck: true,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      });
      worker.on('failed', (job, error) => settings.events.onFailed(error, job?.data));
      worker.on('error', (error) => {
        // BullMQ parses the hash of a job. Other errors: the connection reports its losses, and the probe reports
        // refusals of Redis. Otherwise a job is not ours any more, and its row is right.
        if (error instanceof SyntaxError) settings.events.onInvalid?.(error);
      });
      return worker;
    });
  }

  async #process(job: Job<Data>, read: (data: unknown) => Data, token: string | undefined): Promise<void> {
    const data = this.#dataOf(job, read);
    if (data === null) return;
    const handed = {
      queue: job.queueName as QueueName,
      priority: countOf(job.priority),
      run: Math.max(1, countOf(job.attemptsStarted)),
      isStalled: job.stalledCounter > 0,
    };
    const backInMs = await during(this.#working, this.settings.work(data, handed));
    if (backInMs === null) return;
    await during(this.#delaying, job.moveToDelayed(nowMs() + backInMs + CLOCKS_DIFFER_MS, token));
    throw new DelayedError();
  }

  /** @returns null if the data are not valid. Such a job goes, and a scan finds the row. */
  #dataOf({ data }: Job<Data>, read: (data: unknown) => Data): Data | null {
    try {
      return read(data);
    } catch (error) {
      this.settings.events.onInvalid?.(error as Error);
      return null;
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.pause(true)));
  }

  /** Takes no more jobs, waits for the running ones, and at most a second for Redis. */
  async close(): Promise<void> {
    // `close()` of BullMQ alone may never return with a frozen Redis; `close(true)` does not wait for the work.
    await this.stop();
    await Promise.allSettled(this.#working);
    await Promise.race([Promise.allSettled(this.#delaying), delay(FAREWELL_MS)]);
    // BullMQ sends the ends of the other jobs within this turn of the event loop.
    await delay(0);
    await Promise.all(this.#workers.map((worker) => worker.close(true)));
    await disconnectRedis(this.#redis);
  }
}

/** A count from the hash of a job; 0 for anything else. */
const countOf = (value: number): number => (Number.isSafeInteger(value) && value > 0 ? value : 0);

function during<T>(running: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  running.add(work);
  const end = (): void => void running.delete(work);
  work.then(end, end);
  return work;
}
