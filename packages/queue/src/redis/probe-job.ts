import { randomInt, randomUUID } from 'node:crypto';
import { Job, Queue } from 'bullmq';
import { QUEUE_NAMES } from '../jobs/jobs.js';
import { KEY_PREFIX, type RedisClient } from './redis.js';

/** A queue that only probes use. */
const QUEUE = 'probe';
/** Ids of its jobs, and so the most that processes leave behind that die during a probe. */
const JOBS_MAX = 16;
/** How long the probe blocks for a job that another process has taken, in seconds. */
const BLOCK_SECONDS = 0.01;
const OPTIONS = {
  prefix: KEY_PREFIX,
  skipVersionCheck: true,
  // BullMQ's workers have these options, and the script that takes a job needs them.
  lockDuration: 30_000,
  stalledInterval: 5000,
  maxStalledCount: 1_000_000,
  streams: { events: { maxLen: 100 } },
};

/**
 * A job that does nothing: adds it, blocks for it, takes one, and finishes it. Redis may accept writes and refuse a part of
 * that: scripts, blocking commands, streams, keys. Processes share the queue, so one may finish the job of another.
 */
export class ProbeJob {
  readonly #redis: RedisClient;
  #queue: Queue | undefined;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @throws the error with which Redis refuses a part of it, or that it does not answer. */
  async run(): Promise<void> {
    const queue = this.#open();
    const token = randomUUID();
    // Every queue has its keys. A script names them, so that Redis checks them although the script uses none.
    const keys = QUEUE_NAMES.map((name) => `${KEY_PREFIX}:${name}:wait`);
    await this.#redis.eval('return 0', keys.length, ...keys);
    await queue.add('probe', {}, { jobId: `probe-${randomInt(JOBS_MAX)}`, removeOnComplete: true, removeOnFail: true });
    await this.#redis.bzpopmin(`${KEY_PREFIX}:${QUEUE}:marker`, BLOCK_SECONDS);
    const [taken, id] = (await queue.backend.moveToActive(token)) as [object | null | undefined, string];
    // Either another process has taken it, or a process has died with it.
    if (!taken) await queue.backend.moveStalledJobsToWait();
    else await finish(queue, id, token);
  }

  #open(): Queue {
    if (this.#queue !== undefined) return this.#queue;
    this.#queue = new Queue(QUEUE, { connection: this.#redis, ...OPTIONS });
    this.#queue.on('error', () => undefined);
    return this.#queue;
  }
}

async function finish(queue: Queue, id: string, token: string): Promise<void> {
  try {
    await new Job(queue, 'probe', {}, { removeOnComplete: true }, id).moveToCompleted(null, token, false);
  } catch (error) {
    // BullMQ's own answers have a number: the job is not ours any more. Then the script has run.
    if (typeof (error as { code?: unknown }).code !== 'number') throw error;
  }
}
