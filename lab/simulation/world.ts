import { real, type Ambient } from './globals.js';
import { running, type SimProcess } from './processes.js';
import { hashOf, Random } from '../src/random.js';

/** Something that may happen next. */
interface Task {
  /** Simulated time from which on it may happen, in Unix milliseconds. */
  atMs: number;
  /** Whether it comes later if all processes pause. */
  readonly isPlanned?: boolean;
  /** The process whose step it is; null for the network, clients and servers. It waits while the process is frozen. */
  readonly process: SimProcess | null;
  readonly label: string;
  run(): void | Promise<void>;
}

/** Longest time by which the clock moves while a step could run, in milliseconds. */
const SLOW_STEP_MS_MAX = 40;
/** After this many steps the processes get other speeds. */
const STEPS_PER_SPEED = 40;
const TRACE_MAX = 4000;

/** The scheduler: simulated time, everything that may happen next, and the choice among it. */
export class World implements Ambient {
  readonly startMs: number;
  nowMsValue: number;
  readonly random: Random;
  readonly #choices: Random;
  readonly #tasks = new Set<Task>();
  #immediates: { process: SimProcess; call: () => void }[] = [];
  readonly #speeds = new Map<SimProcess, number>();
  steps = 0;
  hash = 0;
  readonly trace: string[] = [];
  /** Called whenever time has passed. */
  readonly onTime: (() => void | Promise<void>)[] = [];

  constructor(seed: number, startMs: number) {
    this.startMs = startMs;
    this.nowMsValue = startMs;
    this.random = new Random(seed).fork('values');
    this.#choices = new Random(seed).fork('choices');
  }

  nowMs(process: SimProcess): number {
    return this.nowMsValue + process.skewMs;
  }

  monotonicMs(): number {
    return this.nowMsValue - this.startMs;
  }

  later(process: SimProcess, ms: number, call: () => void): () => void {
    if (!process.isAlive) return () => undefined;
    const atMs = this.nowMsValue + Math.max(1, Math.ceil(ms));
    // A timer of Prisma returns a promise of later statements: to wait for it here would end all steps.
    const run = (): void => {
      running.run(process, call);
    };
    return this.add({ atMs, process, label: 'timer', run });
  }

  soon(process: SimProcess, call: () => void): void {
    this.#immediates.push({ process, call });
  }

  /** @returns a function that takes it back. */
  add(task: Task): () => void {
    this.#tasks.add(task);
    return () => this.#tasks.delete(task);
  }

  after(ms: number, process: SimProcess | null, label: string, run: Task['run']): void {
    this.add({ atMs: this.nowMsValue + ms, process, label, run });
  }

  /** Ends a process: nothing of it runs any more. */
  forget(process: SimProcess): void {
    for (const task of this.#tasks) if (task.process === process) this.#tasks.delete(task);
    this.#immediates = this.#immediates.filter((each) => each.process !== process);
  }

  note(line: string): void {
    this.hash = hashOf(`${this.nowMsValue} ${line}`, this.hash);
    this.trace.push(`${((this.nowMsValue - this.startMs) / 1000).toFixed(3)} ${line}`);
    if (this.trace.length > TRACE_MAX) this.trace.splice(0, TRACE_MAX / 2);
  }

  /** Runs steps until the time has come and the condition holds, or nothing can happen any more. */
  async runUntil(isOver: () => boolean): Promise<void> {
    while (!isOver()) if (!(await this.step())) return;
  }

  /** Runs one step, or lets time pass. @returns false if nothing can happen any more. */
  async step(): Promise<boolean> {
    await this.drain();
    const now = this.nowMsValue;
    let next = Infinity;
    const ready: Task[] = [];
    for (const task of this.#tasks) {
      const atMs = Math.max(task.atMs, task.process?.frozenUntilMs ?? 0);
      if (atMs <= now) ready.push(task);
      else next = Math.min(next, atMs);
    }
    const mayWait = next < Infinity && this.#choices.chance(0.03);
    if (ready.length === 0 || mayWait) {
      if (next === Infinity) return false;
      const slow = now + this.#choices.between(1, SLOW_STEP_MS_MAX);
      await this.#setTime(ready.length === 0 ? next : Math.min(next, slow));
      return true;
    }
    const task = this.#choose(ready);
    this.#tasks.delete(task);
    this.steps += 1;
    if (task.label !== 'timer') this.note(`${task.process?.name ?? 'outside'}: ${task.label}`);
    await task.run();
    await this.drain();
    return true;
  }

  /** Lets time pass at once, as if all processes had been paused together. */
  async jump(ms: number): Promise<void> {
    this.note(`${ms} ms pass`);
    for (const task of this.#tasks) if (task.isPlanned === true) task.atMs += ms;
    await this.#setTime(this.nowMsValue + ms);
  }

  /** Lets all code run that waits for nothing. */
  async drain(): Promise<void> {
    do {
      for (const { process, call } of this.#immediates.splice(0)) {
        if (process.isAlive) running.run(process, call);
      }
      await new Promise<void>((resolve) => void real.setImmediate(resolve));
    } while (this.#immediates.length > 0);
  }

  async #setTime(ms: number): Promise<void> {
    this.nowMsValue = Math.ceil(ms);
    for (const call of this.onTime) await call();
  }

  #choose(ready: readonly Task[]): Task {
    if (this.steps % STEPS_PER_SPEED === 0) this.#speeds.clear();
    let sum = 0;
    const weights = ready.map(({ process }) => {
      const weight = process === null ? 1 : this.#speedOf(process);
      sum += weight;
      return weight;
    });
    let left = this.#choices.next() * sum;
    for (const [at, task] of ready.entries()) {
      left -= weights[at] ?? 0;
      if (left <= 0) return task;
    }
    return ready[0] as Task;
  }

  /** Some processes are slow for a while. */
  #speedOf(process: SimProcess): number {
    let speed = this.#speeds.get(process);
    if (speed === undefined) this.#speeds.set(process, (speed = this.#choices.chance(0.3) ? 0.02 : 1));
    return speed;
  }
}
