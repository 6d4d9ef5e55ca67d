import type { Logger } from '../logging/logger.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Work } from './repeating.js';

/** The lease of a periodic task that one process does for all. It is stored outside of the process. */
export interface ElectionStore {
  /** Takes the lease if it is free, or prolongs it if this process holds it. */
  take(lease: { name: string; leaseMs: number; finishedMsAgo: number | null }): Promise<{
    isHolder: boolean;
    previous: string | null;
    /** Time since any process last completed the task; null if it is not known. */
    finishedMsAgo: number | null;
  }>;
  release(name: string): Promise<void>;
}

/**
 * Duration of the lease, in intervals of the task. The others try once per interval, so one of them replaces a dead
 * process within three.
 */
const LEASE_INTERVALS = 2;
interface Task {
  readonly name: string;
  readonly intervalMs: number;
  readonly work: Work;
}

/**
 * The tasks of which each is done by one process, and their metrics. Two processes may do a task at once, for example
 * after one of them was paused.
 */
export class Elections {
  readonly #logger: Logger;
  readonly #tasks: ElectedTask[] = [];

  constructor(
    private readonly store: ElectionStore,
    { logger, metrics }: { logger: Logger; metrics: Metrics },
  ) {
    this.#logger = logger;
    metrics.gauges(
      {
        name: 'callplane_sweep_held',
        help: '1 if this process does the sweep for all processes, else 0.',
        label: 'sweep',
      },
      () => Object.fromEntries(this.#tasks.map(({ name, isHolder }) => [name, isHolder ? 1 : 0])),
    );
    metrics.gauges(
      {
        name: 'callplane_sweep_age_seconds',
        help: 'Time since any process last completed the sweep, as this process knows it, in seconds. Take the minimum.',
        label: 'sweep',
      },
      () =>
        Object.fromEntries(
          this.#tasks.flatMap(({ name, ageMs }) => (ageMs === null ? [] : [[name, ageMs / 1000] as const])),
        ),
    );
  }

  add(task: Task): ElectedTask {
    const elected = new ElectedTask(task, this.store, this.#logger);
    this.#tasks.push(elected);
    return elected;
  }
}

/** A periodic task that runs if this process holds its lease. */
export class ElectedTask {
  #isHolder = false;
  /** When this process last completed the task, in milliseconds of `performance.now()`. */
  #finishedAtMs: number | null = null;
  #knownFinishedAtMs: number | null = null;

  constructor(
    private readonly task: Task,
    private readonly store: ElectionStore,
    private readonly logger: Logger,
  ) {}

  get name(): string {
    return this.task.name;
  }

  get isHolder(): boolean {
    return this.#isHolder;
  }

  get ageMs(): number | null {
    return this.#knownFinishedAtMs === null ? null : performance.now() - this.#knownFinishedAtMs;
  }

  /** Runs the task if this process holds or gets the lease, and prolongs the lease while the task runs. */
  async tick(signal: AbortSignal): Promise<void> {
    if (!(await this.#take())) return;
    let prolonged: Promise<unknown> = Promise.resolve();
    const prolonging = setInterval(() => {
      const taken = this.#take().catch((error: unknown) =>
        this.logger.warn('sweep lease not prolonged', { sweep: this.name, error }),
      );
      prolonged = Promise.all([prolonged, taken]);
    }, this.task.intervalMs).unref();
    try {
      await this.task.work(signal);
      this.#finishedAtMs = performance.now();
      this.#knownFinishedAtMs = this.#finishedAtMs;
    } finally {
      clearInterval(prolonging);
      // Otherwise it could take the lease again after its release.
      await prolonged;
    }
  }

  /** Lets another process take the lease at once. */
  async release(): Promise<void> {
    if (!this.#isHolder) return;
    this.#isHolder = false;
    await this.store.release(this.name);
  }

  async #take(): Promise<boolean> {
    const nowMs = performance.now();
    const standing = await this.store.take({
      name: this.name,
      leaseMs: LEASE_INTERVALS * this.task.intervalMs,
      finishedMsAgo: this.#finishedAtMs === null ? null : nowMs - this.#finishedAtMs,
    });
    if (standing.finishedMsAgo !== null) this.#knownFinishedAtMs = performance.now() - standing.finishedMsAgo;
    if (standing.isHolder !== this.#isHolder) {
      const { previous } = standing;
      this.logger.info(standing.isHolder ? 'sweep taken over' : 'sweep lost', { sweep: this.name, previous });
    }
    this.#isHolder = standing.isHolder;
    // Another process may complete the task next, so the own time must not be written again later.
    if (!standing.isHolder) this.#finishedAtMs = null;
    return standing.isHolder;
  }
}
