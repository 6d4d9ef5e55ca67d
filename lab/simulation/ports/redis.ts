import type { OperationKind } from '@callplane/core';
import type { JobProducer, NoticeListener } from '@callplane/queue';
import { turnJob, type Handed, type Turn } from '../../../packages/queue/src/jobs/turns.js';
import { QUEUE_OF_OPERATION, wakeUpJobId, type TurnJob } from '../../../packages/queue/src/jobs/catalogue.js';
import { running, type SimProcess } from '../processes.js';
import type { Random } from '../../src/random.js';
import type { World } from '../world.js';

interface Job {
  operationId: string;
  environmentId: string;
}
type QueueName = (typeof QUEUE_OF_OPERATION)[OperationKind];
type TakeTurn = (job: TurnJob, handed: Handed) => Promise<number | null>;

/** A turn in Redis, with the options of BullMQ that matter. */
interface StoredTurn {
  readonly key: string;
  readonly queue: string;
  readonly data: TurnJob;
  readonly priority: number;
  /** The worker that has it. */
  holder: SimProcess | null;
  run: number;
  isStalled: boolean;
  /** Kept until the turn ends (`keepLastIfActive`). */
  next: Turn | null;
}

/** As of the queue package: a worker that does not renew its lock for this long loses its turn, in milliseconds. */
const LOCK_MS = 17_000;
const LOCK_CHECK_MS = 5000;

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
  readonly #random: Random;
  readonly #consumers = new Map<QueueName, Set<Consumer>>();
  readonly #subscribers = new Set<Subscriber>();
  /** BullMQ ignores a job whose id exists. */
  readonly #jobs = new Set<string>();
  readonly #turns = new Map<string, StoredTurn>();
  readonly #turnWorkers = new Map<string, Set<{ process: SimProcess; take: TakeTurn }>>();
  weather: Weather = CALM;
  isAway = false;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** The producer of the process that runs. */
  producer(): JobProducer {
    const process = running.getStore() as SimProcess;
    const send = async (queue: QueueName, jobs: readonly { id: string; job: Job }[], delayMs = 0) => {
      await this.#command(process, 'adds jobs');
      if (this.isAway) return { ok: false as const, error: new Error('Redis is away') };
      for (const { id, job } of jobs) this.#add(queue, id, job, delayMs);
      return { ok: true as const };
    };
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
      wakeDeliveries: async (turns) => {
        await this.#command(process, 'adds turns');
        if (this.isAway) return { ok: false, error: new Error('Redis is away') };
        for (const turn of turns) this.#addTurn(turn);
        return { ok: true };
      },
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

  /** Makes the process that runs take turns of a queue. */
  consumeTurns(queue: string, take: TakeTurn): void {
    const process = running.getStore() as SimProcess;
    const workers = this.#turnWorkers.get(queue) ?? new Set();
    this.#turnWorkers.set(queue, workers);
    const worker = { process, take };
    workers.add(worker);
    process.onDeath.push(() => workers.delete(worker));
  }

  #addTurn(turn: Turn): void {
    const { queue, job } = turnJob(turn);
    const opts = job.opts as { deduplication?: { id: string }; jobId?: string; delay?: number; priority?: number };
    const key = `${queue} ${opts.deduplication?.id ?? opts.jobId ?? ''}`;
    const known = this.#turns.get(key);
    if (known !== undefined) {
      if (known.holder !== null && opts.deduplication !== undefined) known.next = turn;
      return;
    }
    if (this.#random.chance(this.weather.lose)) {
      this.#world.note(`job ${queue} gets lost`);
      return;
    }
    const { priority = 0 } = opts;
    const stored = { key, queue, data: job.data, priority, holder: null, run: 0, isStalled: false, next: null };
    this.#turns.set(key, stored);
    this.#handLater(stored, opts.delay ?? 0);
  }

  #handLater(turn: StoredTurn, delayMs: number): void {
    const afterMs = delayMs + this.#random.between(1, this.weather.delayMs);
    this.#world.after(afterMs, null, `a turn of ${turn.queue} is due`, () => this.#handTurn(turn));
  }

  #handTurn(turn: StoredTurn): void {
    const workers = [...(this.#turnWorkers.get(turn.queue) ?? [])];
    if (workers.length === 0) {
      // The scan of the next worker finds the endpoint.
      this.#turns.delete(turn.key);
      return;
    }
    const { process, take } = this.#random.pick(workers);
    turn.holder = process;
    turn.run += 1;
    const { run, isStalled, priority } = turn;
    const ended = (backInMs: number | null): void => this.#endTurn(turn, run, backInMs);
    this.#world.after(0, process, `takes a turn of ${turn.queue}`, () =>
      running.run(process, () => void take(turn.data, { priority, run, isStalled }).then(ended, () => ended(null))),
    );
    this.#watchLock(turn, process, this.#world.nowMsValue);
  }

  /** Another worker gets the turn of one that is dead or frozen for too long. */
  #watchLock(turn: StoredTurn, process: SimProcess, renewedAtMs: number): void {
    const { run } = turn;
    this.#world.after(LOCK_CHECK_MS, null, 'locks are checked', () => {
      if (turn.holder !== process || turn.run !== run) return;
      const nowMs = this.#world.nowMsValue;
      const isRunning = process.isAlive && process.frozenUntilMs <= nowMs;
      if (isRunning || nowMs - renewedAtMs < LOCK_MS) {
        this.#watchLock(turn, process, isRunning ? nowMs : renewedAtMs);
        return;
      }
      this.#world.note(`the turn of ${process.name} is stalled`);
      turn.holder = null;
      turn.isStalled = true;
      this.#handLater(turn, 0);
    });
  }

  #endTurn(turn: StoredTurn, run: number, backInMs: number | null): void {
    if (turn.run !== run || turn.holder === null) return;
    turn.holder = null;
    if (backInMs !== null) {
      this.#handLater(turn, backInMs);
      return;
    }
    this.#turns.delete(turn.key);
    if (turn.next !== null) this.#addTurn(turn.next);
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
