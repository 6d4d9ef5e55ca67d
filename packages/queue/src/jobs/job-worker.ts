import { Ajv } from 'ajv';
import { Worker, type Job } from 'bullmq';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectRedis, disconnectRedis, keyPrefixOf, type RedisClient, type RedisEvents } from '../redis/redis.js';
import { QUEUES, type JobPayloads, type QueueName } from './catalogue.js';

export interface JobWorkerSettings<Name extends QueueName> {
  redisUrl: RedisLocation;
  queue: Name;
  /** Maximum number of jobs that are taken at once, while many wait. */
  concurrency: number;
  /**
   * Duration of BullMQ's lock of a job, in seconds. BullMQ finds a job that a dead worker has left behind after at most
   * twice this time.
   */
  lockSeconds: number;
  /**
   * Called for each job. The job ends with it, because the rows decide when there is more to do.
   * @param name name of the job. Jobs of operations have the id of their environment as their name.
   */
  process(job: JobPayloads[Name], name: string): void;
  /**
   * Called once Redis has removed the job. While the job exists, BullMQ ignores every other job with the same id, also
   * one that announces newer rows. If job ids repeat, look for rows here instead of in `process`: then no row is
   * missed.
   */
  onCompleted?(job: JobPayloads[Name], jobId: string): void;
  events: RedisEvents & {
    /** Called if a payload does not match the catalogue or the processor throws. A scan finds the row. */
    onJobError(error: Error): void;
  };
}

// The schemas are those of the catalogue; checking them would compile the schema of schemas at each start.
const ajv = new Ajv({ strict: false, validateSchema: false, meta: false });
/** BullMQ fails a job after this many stalls. The number is high enough that this never happens. */
const STALLS_MAX = 1_000_000;
const STALLED_INTERVAL_MS = 30_000;
/**
 * How long BullMQ waits after a failed command before it takes jobs again, in milliseconds. With its default of 15 s,
 * scans would find the rows sooner than jobs announce them.
 */
const RETRY_DELAY_MS = 1000;
/** Jobs in a row after which a worker takes several at once. */
const MANY_JOBS = 8;
/** How long closing waits for Redis, in milliseconds: Redis may never answer again. */
const FAREWELL_MS = 1000;

/** Takes jobs of one queue and passes on their payload. BullMQ's retries are off, because the rows decide them. */
export class JobWorker<Name extends QueueName = QueueName> {
  readonly #redis: RedisClient;
  /** BullMQ duplicates our connection for its blocking commands, and could wait forever to close the copy. */
  readonly #copies: RedisClient[] = [];
  readonly #worker: Worker<unknown>;

  constructor(settings: JobWorkerSettings<Name>) {
    const { queue, events } = settings;
    this.#redis = connectRedis(settings.redisUrl, 'blocking', events, { enableAutoPipelining: true });
    keepCopies(this.#redis, this.#copies);
    const isPayload = ajv.compile<JobPayloads[Name]>(QUEUES[queue]);
    this.#worker = new Worker<unknown>(
      queue,
      // BullMQ expects a promise.
      // oxlint-disable-next-line typescript/require-await
      async (job: Job<unknown>) => {
        if (!isPayload(job.data)) throw new Error(`job ${String(job.id)} of ${queue} has an invalid payload`);
        settings.process(job.data, job.name);
      },
      {
        connection: this.#redis,
        prefix: keyPrefixOf(this.#redis),
        concurrency: 1,
        lockDuration: settings.lockSeconds * 1000,
        stalledInterval: Math.min(STALLED_INTERVAL_MS, settings.lockSeconds * 1000),
        runRetryDelay: RETRY_DELAY_MS,
        maxStalledCount: STALLS_MAX,
        skipVersionCheck: true,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      },
    );
    const onCompleted = this.#adaptConcurrency(settings.concurrency);
    this.#worker.on('completed', (job) => {
      onCompleted();
      if (isPayload(job.data)) settings.onCompleted?.(job.data, String(job.id));
    });
    this.#worker.on('error', () => undefined);
    this.#worker.on('failed', (_job, error) => events.onJobError(error));
  }

  /**
   * Takes jobs one at a time unless many wait. With a concurrency above 1, BullMQ asks for a second job before it ends
   * the first, so that a job alone costs five commands instead of three.
   */
  #adaptConcurrency(max: number): () => void {
    let inRow = 0;
    this.#worker.on('drained', () => {
      inRow = 0;
      this.#worker.concurrency = 1;
    });
    return () => {
      inRow += 1;
      if (inRow === MANY_JOBS) this.#worker.concurrency = max;
    };
  }

  /** Takes no more jobs. Waits at most a second for Redis to learn that running jobs have ended. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FAREWELL_MS);
    });
    await Promise.race([this.#worker.close(), deadline]);
    clearTimeout(timer);
    await Promise.all([this.#redis, ...this.#copies].map(disconnectRedis));
  }
}

/** Adds every copy that BullMQ makes of the connection to `copies`. */
function keepCopies(redis: RedisClient, copies: RedisClient[]): void {
  const duplicate = (redis.duplicate as (...options: unknown[]) => RedisClient).bind(redis);
  Object.assign(redis, {
    duplicate: (...options: unknown[]) => {
      const copy = duplicate(...options);
      copies.push(copy);
      return copy;
    },
  });
}
