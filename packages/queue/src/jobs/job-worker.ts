import { Ajv } from 'ajv';
import { DelayedError, Worker, type Job } from 'bullmq';
import type { Redis } from 'ioredis';
import { connectRedis, disconnectRedis, type RedisEvents } from '../redis/redis.js';
import { QUEUE_PREFIX, QUEUES, type JobPayloads, type QueueName } from './catalogue.js';

/** What a processor asks for: nothing more, or to be woken again later. */
export type JobResult = { again: false } | { again: true; delayMs: number };

export interface JobWorkerSettings<Name extends QueueName> {
  redisUrl: string;
  queue: Name;
  concurrency: number;
  /** The contract's lease, in seconds: BullMQ's lock lasts as long, so both come free together. */
  leaseSeconds: number;
  process(job: JobPayloads[Name]): Promise<JobResult>;
  events: RedisEvents & {
    /** A job that is not what the catalogue says, or a processor that threw: the row is left to the sweep. */
    onJobError(error: Error): void;
  };
}

const ajv = new Ajv({ strict: false });
/** BullMQ fails a job after this many stalls; high enough never to decide anything. */
const STALLS_MAX = 1_000_000;
const STALLED_INTERVAL_MS = 30_000;
/** How long closing waits for Redis once no job is under way, in milliseconds: it may never answer again. */
const FAREWELL_MS = 1000;

/** Takes jobs of one queue and hands their payload on. Its own retries are off: rows decide what is tried again. */
export class JobWorker<Name extends QueueName = QueueName> {
  readonly #redis: Redis;
  /** BullMQ makes its blocking connection out of ours, and would wait for ever to say goodbye on it. */
  readonly #copies: Redis[] = [];
  readonly #worker: Worker<unknown>;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(settings: JobWorkerSettings<Name>) {
    const { queue, events } = settings;
    this.#redis = connectRedis(settings.redisUrl, 'blocking', events, { enableAutoPipelining: true });
    const duplicate = this.#redis.duplicate.bind(this.#redis);
    this.#redis.duplicate = (...options) => {
      const copy = duplicate(...options);
      this.#copies.push(copy);
      return copy;
    };
    const isPayload = ajv.compile<JobPayloads[Name]>(QUEUES[queue]);
    this.#worker = new Worker<unknown>(
      queue,
      async (job: Job<unknown>, token) => {
        if (!isPayload(job.data))
          throw new Error(`job ${String(job.id)} of ${queue} has another payload than the catalogue says`);
        const result = await this.#track(settings.process(job.data));
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
    // Not before BullMQ has made its scripts known to the connection: a batch of commands that began before does not
    // know them, and while it waits for a frozen Redis BullMQ would ask again and again without a pause for anything.
    await this.#worker.waitUntilReady();
    await this.#redis.ping();
  }

  /** Takes no more jobs and waits for those under way; for Redis only a moment. */
  async close(): Promise<void> {
    const closing = this.#worker.close();
    let closed: boolean;
    do {
      await Promise.allSettled(this.#underWay);
      closed = await endsWithin(FAREWELL_MS, closing);
    } while (!closed && this.#underWay.size > 0);
    await Promise.all([this.#redis, ...this.#copies].map(disconnectRedis));
  }

  #track<T>(job: Promise<T>): Promise<T> {
    const tracked = job.finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
    return tracked;
  }
}

/** Waits for `work`, but not longer than this; whether it ended. */
async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const ended = await Promise.race([work.then(() => true), deadline]);
  clearTimeout(timer);
  return ended;
}

function elapsedSince(job: Job<unknown>): number {
  return (job.processedOn ?? job.timestamp) - job.timestamp;
}
