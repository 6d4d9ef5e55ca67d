import { running, type SimProcess } from '../processes.js';
import type { Random } from '../../src/random.js';
import type { World } from '../world.js';

export interface OperationJob {
  id: string;
  operationId: string;
  priority: number;
}
interface Worker {
  process: SimProcess;
  places: number;
  work(operationId: string): Promise<number | null>;
  onFailed(error: unknown): void;
}

/** BullMQ's lock lasts 30 s, and the next check for stalled jobs follows within 30 s. */
const STALLED_MS = [30_000, 60_000] as const;
/** How much later than the row its delayed job is due (`JobWorkers` of the queue). */
const CLOCKS_DIFFER_MS = 100;
/** Pause of a worker between two attempts to tell Redis the outcome of a job, in milliseconds. */
const RETRY_MS = 1000;

/** A model of a queue of BullMQ whose workers work on its jobs. */
export class OperationQueue {
  readonly #workers = new Set<Worker>();
  /** BullMQ ignores a job whose id exists in any state. */
  readonly #jobs = new Map<string, OperationJob>();
  #waiting: OperationJob[] = [];
  #isAsking = false;
  readonly #locks = new Map<string, symbol>();

  constructor(
    private readonly name: string,
    private readonly world: World,
    private readonly random: Random,
    private readonly isAway: () => boolean,
  ) {}

  add(job: OperationJob, afterMs: number): void {
    if (this.#jobs.has(job.id)) return;
    this.#jobs.set(job.id, job);
    this.#wait(job, afterMs);
  }

  /** A worker that lost its lock and one that took the job over both work on it. */
  repeat(job: OperationJob, afterMs: number): void {
    this.#wait(job, afterMs);
  }

  /** Makes the process that runs work on jobs. */
  work(concurrency: number, work: Worker['work'], onFailed: Worker['onFailed']): void {
    const process = running.getStore() as SimProcess;
    const worker = { process, places: concurrency, work, onFailed };
    this.#workers.add(worker);
    process.onDeath.push(() => this.#workers.delete(worker));
    this.#next();
  }

  #wait(job: OperationJob, afterMs: number): void {
    this.world.after(afterMs, null, `job of ${this.name} is due`, () => {
      this.#waiting.push(job);
      this.#next();
    });
  }

  /** Hands jobs to workers with a free place: by priority, then by age. */
  #next(): void {
    if (this.isAway()) {
      this.#askLater();
      return;
    }
    for (;;) {
      const free = [...this.#workers].filter(({ places }) => places > 0);
      const [job] = this.#waiting.sort((one, other) => one.priority - other.priority);
      if (free.length === 0 || job === undefined) return;
      this.#waiting.shift();
      this.#begin(this.random.pick(free), job);
    }
  }

  #askLater(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.world.after(RETRY_MS, null, `workers of ${this.name} look for Redis`, () => {
      this.#isAsking = false;
      this.#next();
    });
  }

  #begin(worker: Worker, job: OperationJob): void {
    const { process } = worker;
    const lock = Symbol(job.id);
    this.#locks.set(job.id, lock);
    worker.places -= 1;
    this.#checkStalled(process, job, lock);
    this.world.after(0, process, `takes a job of ${this.name}`, () =>
      running.run(process, () => {
        worker.work(job.operationId).then(
          (retryInMs) => this.#end(worker, job, lock, retryInMs),
          (error: unknown) => {
            worker.onFailed(error);
            this.#end(worker, job, lock, null);
          },
        );
      }),
    );
  }

  #end(worker: Worker, job: OperationJob, lock: symbol, retryInMs: number | null): void {
    const { process } = worker;
    this.world.after(0, process, `ends a job of ${this.name}`, () => {
      if (this.isAway()) {
        this.world.after(RETRY_MS, process, 'waits for Redis', () => this.#end(worker, job, lock, retryInMs));
        return;
      }
      worker.places += 1;
      if (this.#locks.get(job.id) === lock) {
        this.#locks.delete(job.id);
        if (retryInMs === null) this.#jobs.delete(job.id);
        else this.#wait(job, this.#delayOf(process, retryInMs));
      }
      this.#next();
    });
  }

  /** A worker sets the time by its own clock, and another one looks at it by its own. */
  #delayOf({ skewMs }: SimProcess, retryInMs: number): number {
    const other = this.random.pick([...this.#workers]).process;
    return Math.max(0, retryInMs + CLOCKS_DIFFER_MS + skewMs - other.skewMs);
  }

  #checkStalled(process: SimProcess, job: OperationJob, lock: symbol): void {
    this.world.after(this.random.between(...STALLED_MS), null, `looks for stalled jobs of ${this.name}`, () => {
      if (this.#locks.get(job.id) !== lock) return;
      if (process.isAlive && process.frozenUntilMs <= this.world.nowMsValue) {
        this.#checkStalled(process, job, lock);
        return;
      }
      this.#locks.delete(job.id);
      this.#wait(job, 0);
    });
  }
}
