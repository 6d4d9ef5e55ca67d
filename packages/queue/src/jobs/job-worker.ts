import { Ajv } from 'ajv';
import { DelayedError, Worker, type Job } from 'bullmq';
import type { Redis } from 'ioredis';
import { connectRedis, disconnectRedis, type RedisEvents } from '../redis/redis.js';
import { QUEUE_PREFIX, QUEUES, type OperationJob, type QueueName } from './catalogue.js';

/** What a processor asks for: nothing more, or to be woken again later. */
export type JobResult = { again: false } | { again: true; delayMs: number };

export interface JobWorkerSettings {
  redisUrl: string;
  queue: QueueName;
  concurrency: number;
  /** The contract's lease, in seconds: BullMQ's lock lasts as long, so both come free together. */
  leaseSeconds: number;
  process(job: OperationJob): Promise<JobResult>;
  events: RedisEvents & {
    /** A job that is not what the catalogue says, or a processor that threw: the row is left to the sweep. */
    onJobError(error: Error): void;
  };
}

const ajv = new Ajv({ strict: false });
/** BullMQ fails a job after this many stalls; high enough never to decide anything. */
const STALLS_MAX = 1_000_000;
const STALLED_INTERVAL_MS = 30_000;

/** Takes jobs of one queue and hands their payload on. Its own retries are off: rows decide what is tried again. */
export class JobWorker {
  readonly #redis: Redis;
  readonly #worker: Worker<unknown>;

  constructor(settings: JobWorkerSettings) {
    const { queue, process, events } = settings;
    this.#redis = connectRedis(settings.redisUrl, 'blocking', events);
    const isPayload = ajv.compile<OperationJob>(QUEUES[queue]);
    this.#worker = new Worker<unknown>(
      queue,
      async (job: Job<unknown>, token) => {
        if (!isPayload(job.data))
          throw new Error(`job ${String(job.id)} of ${queue} has another payload than the catalogue says`);
        const result = await process(job.data);
        if (!result.again) return;
        // The process's own clock decides here because BullMQ compares with it; the claim compares with PostgreSQL's.
        await job.moveToDelayed(job.timestamp + Math.max(0, elapsedSince(job)) + result.delayMs, token);
        throw new DelayedError();
      },
      {
        connection: this.#redis,
        prefix: QUEUE_PREFIX,
        concurrency: settings.concurrency,
        lockDuration: settings.leaseSeconds * 1000,
        stalledInterval: STALLED_INTERVAL_MS,
        maxStalledCount: STALLS_MAX,
        skipVersionCheck: true,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      },
    );
    this.#worker.on('error', () => undefined);
    this.#worker.on('failed', (_job, error) => events.onJobError(error));
  }

  /** Whether Redis answers this worker. */
  async ping(): Promise<void> {
    await this.#redis.ping();
  }

  /** Takes no more jobs and waits for those under way. */
  async close(): Promise<void> {
    await this.#worker.close();
    await disconnectRedis(this.#redis);
  }
}

function elapsedSince(job: Job<unknown>): number {
  return (job.processedOn ?? job.timestamp) - job.timestamp;
}
