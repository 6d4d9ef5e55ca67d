import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { connectRedis, disconnectRedis, type RedisEvents } from '../redis/redis.js';
import { QUEUE_PREFIX, QUEUES, wakeUpJobId, type QueueName } from './catalogue.js';

export interface WakeUp {
  queue: QueueName;
  row: { id: string; run: number; runAttempts: number; wakeUps: number };
  /** From now, in milliseconds. */
  delayMs?: number;
}

export type WakeResult = { ok: true } | { ok: false; error: Error };

/** How long sending wake-ups may take in all, in milliseconds: a request waits for it. */
const ENQUEUE_DEADLINE_MS = 250;

/** Sends wake-ups: fast and best effort. What it cannot send, a sweep wakes later. */
export class JobProducer {
  /** The `command` connection behind it, for other short commands of the same process. */
  readonly redis: Redis;
  readonly #queues = new Map<QueueName, Queue>();

  constructor(redisUrl: string, events: RedisEvents) {
    this.redis = connectRedis(redisUrl, 'command', events);
    for (const name of Object.keys(QUEUES) as QueueName[]) {
      const queue = new Queue(name, {
        connection: this.redis,
        prefix: QUEUE_PREFIX,
        skipVersionCheck: true,
        defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
      });
      // The connection tells of its losses itself.
      queue.on('error', () => undefined);
      this.#queues.set(name, queue);
    }
  }

  /** Never throws and never takes longer than a quarter of a second. */
  async wake(wakeUp: WakeUp): Promise<WakeResult> {
    return this.wakeAll([wakeUp]);
  }

  async wakeAll(wakeUps: readonly WakeUp[]): Promise<WakeResult> {
    if (this.redis.status !== 'ready') return { ok: false, error: new Error('Redis is not connected') };
    let timer: NodeJS.Timeout | undefined;
    try {
      const deadline = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`Redis did not answer within ${ENQUEUE_DEADLINE_MS} ms`)),
          ENQUEUE_DEADLINE_MS,
        );
      });
      await Promise.race([Promise.all(this.#byQueue(wakeUps)), deadline]);
      return { ok: true };
    } catch (error) {
      return { ok: false, error: error as Error };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Wakes deliveries that a commit has just written. */
  wakeDeliveries(deliveries: readonly WakeUp['row'][]): Promise<WakeResult> {
    if (deliveries.length === 0) return Promise.resolve({ ok: true });
    return this.wakeAll(deliveries.map((row) => ({ queue: 'webhook-delivery', row })));
  }

  /** Jobs that wait to be taken from these queues (default: all): how far their workers are behind. */
  async waitingCount(names: readonly QueueName[] = [...this.#queues.keys()]): Promise<number> {
    const queues = [...this.#queues].filter(([name]) => names.includes(name));
    const counts = await Promise.all(queues.map(([, queue]) => queue.getWaitingCount()));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async close(): Promise<void> {
    await disconnectRedis(this.redis);
  }

  #byQueue(wakeUps: readonly WakeUp[]): Promise<unknown>[] {
    return [...this.#queues].flatMap(([name, queue]) => {
      const jobs = wakeUps
        .filter((wakeUp) => wakeUp.queue === name)
        .map(({ row, delayMs }) => ({
          name,
          data: name === 'webhook-delivery' ? { deliveryId: row.id } : { operationId: row.id },
          opts: { jobId: wakeUpJobId(row), ...(delayMs === undefined ? {} : { delay: delayMs }) },
        }));
      return jobs.length === 0 ? [] : [queue.addBulk(jobs)];
    });
  }
}
