import { QUEUE_OF_OPERATION, type OperationKind } from '@callplane/core';
import type { JobProducer, NoticeListener, OperationWakeUp } from '@callplane/queue';
import { operationJobId } from '../../../packages/queue/src/jobs/jobs.js';
import { OperationQueue } from './operation-queue.js';
import { TurnQueues } from './turn-queues.js';
import { running, type SimProcess } from '../processes.js';
import type { Random } from '../../src/random.js';
import type { World } from '../world.js';

type OperationQueueName = (typeof QUEUE_OF_OPERATION)[OperationKind];

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
  readonly #operations: Readonly<Record<OperationQueueName, OperationQueue>>;
  readonly #turns: TurnQueues;
  readonly #subscribers = new Set<Subscriber>();
  weather: Weather = CALM;
  isAway = false;

  constructor(
    private readonly world: World,
    private readonly random: Random,
  ) {
    const queue = (name: string) => new OperationQueue(name, world, random, () => this.isAway);
    this.#operations = {
      'room-end': queue('room-end'),
      'participant-remove': queue('participant-remove'),
      'participant-move': queue('participant-move'),
      'recording-process': queue('recording-process'),
      'recording-delete': queue('recording-delete'),
    };
    this.#turns = new TurnQueues(world, random, () => this.weather);
  }

  /** The producer of the process that runs. */
  producer(): JobProducer {
    const process = running.getStore() as SimProcess;
    const send = async (add: () => void) => {
      await this.#command(process, 'adds jobs');
      if (this.isAway) return false;
      add();
      return true;
    };
    const isAway = (): boolean => this.isAway;
    const sendOperations = (rows: readonly (OperationWakeUp & { priority: number })[]) =>
      rows.length === 0
        ? Promise.resolve(true)
        : send(() => {
            for (const row of rows) this.#addOperation(row, row.priority);
          });
    const producer: Pick<JobProducer, 'wakeOperations' | 'addDueOperations' | 'wakeDeliveries'> & {
      redis: unknown;
      health: unknown;
    } = {
      wakeOperations: (rows) => sendOperations(rows.map((row) => ({ ...row, priority: 0 }))),
      addDueOperations: (rows) => sendOperations(rows.map((row) => ({ ...row, priority: row.place - 1 }))),
      wakeDeliveries: (turns) =>
        send(() => {
          for (const turn of turns) this.#turns.add(turn);
        }),
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

  /** Makes the process that runs work on operations. */
  work(queue: OperationQueueName, ...worker: Parameters<OperationQueue['work']>): void {
    this.#operations[queue].work(...worker);
  }

  consumeTurns(...worker: Parameters<TurnQueues['consume']>): void {
    this.#turns.consume(...worker);
  }

  #command(process: SimProcess, what: string): Promise<void> {
    return new Promise((resolve) => this.world.after(0, process, `${what} in Redis`, resolve));
  }

  #addOperation(row: OperationWakeUp, priority: number): void {
    const queue = QUEUE_OF_OPERATION[row.kind];
    if (this.#isLost(queue)) return;
    const job = { id: operationJobId(row), operationId: row.id, priority };
    const later = (): number => this.random.between(1, this.weather.delayMs);
    this.#operations[queue].add(job, later());
    if (this.random.chance(this.weather.repeat)) this.#operations[queue].repeat(job, later());
  }

  #isLost(queue: string): boolean {
    const isLost = this.random.chance(this.weather.lose);
    if (isLost) this.world.note(`job ${queue} gets lost`);
    return isLost;
  }

  #publish(channel: string, payload: string): void {
    for (const { process, channel: theirs, handle } of [...this.#subscribers]) {
      if (theirs !== channel) continue;
      if (this.random.chance(this.weather.lose)) continue;
      for (let times = this.random.chance(this.weather.repeat) ? 2 : 1; times > 0; times -= 1) {
        this.world.after(this.random.between(0, this.weather.delayMs), process, `gets a notice of ${channel}`, () =>
          running.run(process, () => handle(payload)),
        );
      }
    }
  }
}
