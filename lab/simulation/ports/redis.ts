import type { OperationKind } from '@callplane/core';
import type { JobProducer, NoticeListener } from '@callplane/queue';
import { Doorbells } from '../../../packages/queue/src/jobs/doorbells.js';
import { operationJobId, QUEUE_OF_OPERATION } from '../../../packages/queue/src/jobs/catalogue.js';
import { running, type SimProcess } from '../processes.js';
import type { Stream } from '../random.js';
import type { World } from '../world.js';

type Job = { operationId: string; priority: number } | { deliveryId: string; jobId: string };
type QueueName = (typeof QUEUE_OF_OPERATION)[OperationKind] | 'webhook-delivery';

interface Consumer {
  process: SimProcess;
  take(job: Job): void;
}
interface Subscriber {
  process: SimProcess;
  channel: string;
  handle(payload: string): void;
}

/** How unreliable jobs and notices are. */
export interface Weather {
  lose: number;
  repeat: number;
  delayMs: number;
}
export const CALM: Weather = { lose: 0, repeat: 0, delayMs: 2 };

/** A model of Redis: jobs and notices that may get lost, come twice, late, or in another order. */
export class SimRedis {
  readonly #world: World;
  readonly #random: Stream;
  readonly #consumers = new Map<QueueName, Set<Consumer>>();
  readonly #subscribers = new Set<Subscriber>();
  /** BullMQ ignores a job whose id exists. */
  readonly #jobs = new Set<string>();
  weather: Weather = CALM;
  isAway = false;

  constructor(world: World, random: Stream) {
    this.#world = world;
    this.#random = random;
  }

  /** The producer of the process that runs. */
  producer(): JobProducer {
    const process = running.getStore() as SimProcess;
    const send = async (queue: QueueName, jobs: readonly { id: string; job: Job }[]) => {
      await this.#command(process, 'adds jobs');
      if (this.isAway) return { ok: false as const, error: new Error('Redis is away') };
      for (const { id, job } of jobs) this.#add(queue, id, job);
      return { ok: true as const };
    };
    const doorbells = new Doorbells((rung) =>
      send(
        'webhook-delivery',
        rung.map(({ id, endpointId }) => ({ id: endpointId, job: { deliveryId: id, jobId: endpointId } })),
      ),
    );
    const isAway = (): boolean => this.isAway;
    const producer: Pick<JobProducer, 'wakeOperations' | 'wakeDeliveries'> & { redis: unknown; health: unknown } = {
      wakeOperations: async (rows, delayMs) => {
        for (const row of rows) {
          const job = { operationId: row.id, environmentId: row.environmentId };
          const sent = await send(QUEUE_OF_OPERATION[row.kind], [{ id: wakeUpJobId(row), job }], delayMs);
          if (!sent.ok) return sent;
        }
        return { ok: true };
      },
      wakeDeliveries: (deliveries) => doorbells.ring(deliveries),
      redis: {
        get status() {
          return isAway() ? 'reconnecting' : 'ready';
        },
        publish: async (channel: string, payload: string) => {
          await this.#command(process, 'publishes');
          if (this.isAway) throw new Error('Redis is away');
          this.#publish(channel, payload);
          return 1;
        },
      },
      health: {
        get trouble() {
          return isAway() ? 'unreachable' : null;
        },
      },
    };
    return producer as unknown as JobProducer;
  }

  /** The listener of the process that runs, for notices to all. */
  listener(): NoticeListener {
    const isAway = (): boolean => this.isAway;
    const listener = {
      on: (notice: string, handle: (payload: string) => void) =>
        this.subscribe(`callplane:${notice.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, handle),
      get isListening() {
        return !isAway();
      },
    };
    return listener as unknown as NoticeListener;
  }

  /** @returns a function that ends the subscription. */
  subscribe(channel: string, handle: (payload: string) => void): () => void {
    const process = running.getStore() as SimProcess;
    const subscriber = { process, channel, handle };
    this.#subscribers.add(subscriber);
    const end = (): void => void this.#subscribers.delete(subscriber);
    process.onDeath.push(end);
    return end;
  }

  /** Makes the process that runs take jobs. */
  consume(queue: QueueName, take: (job: Job) => void): void {
    const process = running.getStore() as SimProcess;
    const consumers = this.#consumers.get(queue) ?? new Set();
    this.#consumers.set(queue, consumers);
    const consumer = { process, take };
    consumers.add(consumer);
    process.onDeath.push(() => consumers.delete(consumer));
  }

  #command(process: SimProcess, what: string): Promise<void> {
    return new Promise((resolve) => this.#world.after(0, process, `${what} in Redis`, resolve));
  }

  #add(queue: QueueName, id: string, job: Job, delayMs: number): void {
    const key = `${queue} ${id}`;
    if (this.#jobs.has(key)) return;
    const { lose, repeat } = this.weather;
    if (this.#random.chance(lose)) {
      this.#world.note(`job ${queue} gets lost`);
      return;
    }
    this.#jobs.add(key);
    for (let times = this.#random.chance(repeat) ? 2 : 1; times > 0; times -= 1) {
      this.#world.after(delayMs + this.#random.between(1, this.weather.delayMs), null, `job of ${queue} is due`, () =>
        this.#hand(queue, key, job),
      );
    }
  }

  #hand(queue: QueueName, key: string, job: Job): void {
    this.#jobs.delete(key);
    const consumers = [...(this.#consumers.get(queue) ?? [])];
    if (consumers.length === 0) return;
    const { process, take } = this.#random.pick(consumers);
    this.#world.after(0, process, `takes a job of ${queue}`, () => running.run(process, () => take(job)));
  }

  #publish(channel: string, payload: string): void {
    for (const { process, channel: theirs, handle } of [...this.#subscribers]) {
      if (theirs !== channel) continue;
      if (this.#random.chance(this.weather.lose)) continue;
      for (let times = this.#random.chance(this.weather.repeat) ? 2 : 1; times > 0; times -= 1) {
        this.#world.after(this.#random.between(0, this.weather.delayMs), process, `gets a notice of ${channel}`, () =>
          running.run(process, () => handle(payload)),
        );
      }
    }
  }
}
