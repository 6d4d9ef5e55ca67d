import { randomUUID } from 'node:crypto';
import { laneOf, type Lane, type SlotMs } from '@callplane/core';
import { DelayedError, Worker } from 'bullmq';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectRedis, disconnectRedis, KEY_PREFIX, type RedisClient, type RedisEvents } from '../redis/redis.js';
import type { QueueName, TurnJob } from './catalogue.js';

export const QUEUE_OF_LANE = {
  fast: 'webhook-delivery',
  slow: 'webhook-delivery-slow',
} as const satisfies Record<Lane, QueueName>;

/** A turn of an endpoint with due deliveries: a worker sends some of them. */
export interface Turn {
  endpointId: string;
  environmentId: string;
  slotMs: SlotMs;
  /** By default the lane of `slotMs`. */
  lane?: Lane;
  /** Number among the turns of the endpoint that may run at once. */
  ticket?: number;
  /** Small numbers go first. Without one, a turn of an endpoint that was never tried goes before all others. */
  priority?: number;
  /** Time until the turn is due, in milliseconds. */
  delayMs?: number;
}

/** Turns of one endpoint that are due within this time share a job, in milliseconds. */
const LATER_STEP_MS = 100;

/**
 * The job of a turn. While a turn of the same endpoint and ticket waits, BullMQ drops the job. While such a turn runs,
 * whose claim may not have seen the newest delivery, BullMQ keeps the job and adds it when the turn ends. A turn that
 * is due later has an id instead.
 */
export function turnJob(turn: Turn): { queue: QueueName; job: { name: string; data: TurnJob; opts: object } } {
  const { endpointId, environmentId, slotMs, lane = laneOf(slotMs), ticket = 0, priority, delayMs } = turn;
  const place = priority === undefined && slotMs === null ? { lifo: true } : { priority: priority ?? 1 };
  const identity =
    delayMs === undefined
      ? { deduplication: { id: `${endpointId}.${ticket}`, keepLastIfActive: true }, ...place }
      : {
          jobId: `${endpointId}@${Math.ceil((nowMs() + delayMs) / LATER_STEP_MS)}`,
          delay: delayMs,
          priority: priority ?? 1,
        };
  const data = { turn: randomUUID(), endpointId, environmentId, slotMs, ticket };
  return { queue: QUEUE_OF_LANE[lane], job: { name: 'turn', data, opts: identity } };
}

/** BullMQ takes times by the clock of this machine. */
// oxlint-disable-next-line no-restricted-properties
const nowMs = (): number => Date.now();

/** How BullMQ hands a turn to a worker. */
export interface Handed {
  priority: number;
  /** Counts the workers that got the turn, from 1 on. */
  run: number;
  /** Whether the worker that had the turn before is dead or cut off. */
  isStalled: boolean;
}

export interface TurnWorkerSettings {
  redisUrl: RedisLocation;
  lane: Lane;
  /** Turns that are taken at once. */
  concurrency: number;
  /** Takes a turn. @returns the time after which the turn comes back, in milliseconds; null if it is over. */
  take(job: TurnJob, handed: Handed): Promise<number | null>;
  events: RedisEvents & { onJobError(error: Error): void };
}

/**
 * BullMQ's lock of a turn, its renewal, and the check for turns of dead workers, in milliseconds. Another worker gets the
 * turn of a dead one after at most the lock and two checks. A worker that loses Redis keeps a lock for the rest of the
 * lock less one renewal: longer than an attempt takes.
 */
const LOCK_MS = 17_000;
const RENEWAL_MS = 5000;
const STALLED_CHECK_MS = 5000;
/** BullMQ fails a job after this many stalls: never. */
const STALLS_MAX = 1_000_000;
/** Pause of BullMQ after a failed command, in milliseconds. Its default of 15 s is longer than scans take. */
const RETRY_DELAY_MS = 1000;
/** How long closing waits for Redis to learn that turns have ended, in milliseconds: Redis may never answer again. */
const FAREWELL_MS = 1000;

/** Takes the turns of one lane from Redis. */
export class TurnWorker {
  readonly #redis: RedisClient;
  readonly #worker: Worker<TurnJob>;

  constructor({ redisUrl, lane, concurrency, take, events }: TurnWorkerSettings) {
    this.#redis = connectRedis(redisUrl, 'blocking', events, { enableAutoPipelining: true });
    this.#worker = new Worker<TurnJob>(
      QUEUE_OF_LANE[lane],
      async (job, token) => {
        const { priority, attemptsStarted: run, stalledCounter } = job;
        const backInMs = await take(job.data, { priority, run, isStalled: stalledCounter > 0 });
        if (backInMs === null) return;
        await job.moveToDelayed(nowMs() + backInMs, token);
        throw new DelayedError();
      },
      {
        connection: this.#redis,
        prefix: KEY_PREFIX,
        concurrency,
        lockDuration: LOCK_MS,
        lockRenewTime: RENEWAL_MS,
        stalledInterval: STALLED_CHECK_MS,
        maxStalledCount: STALLS_MAX,
        runRetryDelay: RETRY_DELAY_MS,
        skipVersionCheck: true,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      },
    );
    // The connection itself reports its losses.
    this.#worker.on('error', () => undefined);
    this.#worker.on('failed', (_job, error) => events.onJobError(error));
  }

  /** Takes no more turns. */
  async stop(): Promise<void> {
    await this.#worker.pause(true);
  }

  /** Call it when the turns have ended. Waits a moment for Redis to learn it. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FAREWELL_MS);
    });
    await Promise.race([this.#worker.pause(), deadline]).catch(() => undefined);
    clearTimeout(timer);
    await this.#worker.close(true);
    await disconnectRedis(this.#redis);
  }
}
