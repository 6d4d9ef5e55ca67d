import { setTimeout as delay } from 'node:timers/promises';
import { Turns } from '@callplane/core';

/** A row that may be due. */
export interface Candidate {
  id: string;
  environmentId: string;
}

/** Bounds of one scan. */
export interface ScanBounds {
  /** Minimum age of a row's last wake-up, in milliseconds. The job of a younger one may still arrive. */
  quietMs: number;
  perEnvironment: number;
  limit: number;
}

export interface OperationSchedulerSettings {
  slots: number;
  /** Pause between two scans while jobs announce all due rows, in milliseconds. */
  scanIntervalMs: number;
  /** Works on one row. Returns the milliseconds until the row is due if it is not due yet, else null. */
  work(id: string): Promise<number | null>;
  /** Takes due rows from PostgreSQL. */
  scan(bounds: ScanBounds): Promise<readonly Candidate[]>;
  /** False while no job can arrive, because Redis is unusable. */
  jobsArrive(): boolean;
  /** Called when work on a row or a scan fails. A later scan finds the row again. */
  onError(error: unknown): void;
}

/**
 * Bounds of the rows that wait in this process: enough to keep the slots busy between two scans, and few enough to
 * leave work to other workers.
 */
const WAITING = { perOwner: 16, total: 64 };
/**
 * Minimum age of a row's last wake-up, in milliseconds: a scan leaves younger rows to their jobs. If a job is lost, the
 * next scan finds its row at most 13 s after it is due: 8 s, and the scan interval of 5 s. The contract allows 15 s.
 */
const PATIENT_QUIET_MS = 8000;
/** Quiet time and pause while jobs do not arrive, or while the queue of this process is full: scans replace jobs. */
const EAGER_QUIET_MS = 500;
const EAGER_PAUSE_MS = 500;
/** How long scans stay eager after a scan has found a row, or after the queue was full when a job arrived. */
const EAGER_FOR_MS = 3000;
/** A job that arrives before its row is due waits in this process. Beyond these bounds, a scan finds the row. */
const EARLY_MAX = 256;
const EARLY_MS_MAX = 60_000;

/**
 * The only place where operations wait in this process. Candidates come from jobs and from scans of PostgreSQL. They
 * wait for the turn of their environment and for a free slot. An outage of Redis only makes the scans
 * more frequent: they find all due rows then. A scan that stopped at a bound is followed by the next one as soon as the
 * slots need work.
 */
export class OperationScheduler {
  readonly #settings: OperationSchedulerSettings;
  readonly #turns = new Turns(WAITING);
  readonly #running = new Set<Promise<void>>();
  readonly #early = new Map<string, NodeJS.Timeout>();
  readonly #closed = new AbortController();
  readonly #scanning: Promise<void>;
  #eagerUntilMs = -Infinity;
  /** Ends the pause between two scans. */
  #scanNow: () => void = () => undefined;
  /** The last scan stopped at a bound, so there may be more due rows. */
  #more = false;

  constructor(settings: OperationSchedulerSettings) {
    this.#settings = settings;
    this.#scanning = this.#scanAgainAndAgain();
  }

  /** Queues a row that may be due according to its job. If the queue is full, the row is left to the next scans. */
  announce({ id, environmentId }: Candidate): void {
    if (this.#closed.signal.aborted) return;
    if (this.#turns.add(environmentId, id)) this.#fill();
    else this.#eagerUntilMs = performance.now() + EAGER_FOR_MS;
  }

  /** Takes no more rows and waits for running work. Returns the rows that still waited, for other workers. */
  async close(): Promise<string[]> {
    this.#closed.abort();
    for (const timer of this.#early.values()) clearTimeout(timer);
    // A scan that is running may still take rows.
    await this.#scanning;
    const left = [...this.#early.keys(), ...this.#turns.clear()];
    this.#early.clear();
    await Promise.all(this.#running);
    return left;
  }

  #fill(): void {
    while (!this.#closed.signal.aborted && this.#running.size < this.#settings.slots) {
      const next = this.#turns.take();
      if (next === null) break;
      const run = this.#work(next.id, next.ownerId).finally(() => {
        this.#running.delete(run);
        this.#turns.done(next.ownerId);
        this.#fill();
      });
      this.#running.add(run);
    }
    if (this.#more && this.#turns.waitingCount < this.#settings.slots) this.#scanNow();
  }

  async #work(id: string, environmentId: string): Promise<void> {
    try {
      const dueInMs = await this.#settings.work(id);
      if (dueInMs !== null) this.#later({ id, environmentId }, dueInMs);
    } catch (error) {
      this.#settings.onError(error);
    }
  }

  /** The job arrived before its row is due, because clocks differ. */
  #later(candidate: Candidate, dueInMs: number): void {
    if (this.#closed.signal.aborted || dueInMs > EARLY_MS_MAX || this.#early.size >= EARLY_MAX) return;
    clearTimeout(this.#early.get(candidate.id));
    const timer = setTimeout(() => {
      this.#early.delete(candidate.id);
      this.announce(candidate);
    }, dueInMs);
    this.#early.set(candidate.id, timer);
  }

  async #scanAgainAndAgain(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      const isEager = performance.now() < this.#eagerUntilMs || !this.#settings.jobsArrive();
      await this.#scan(isEager);
      if (this.#more && this.#turns.waitingCount < this.#settings.slots) continue;
      await this.#pause(isEager ? EAGER_PAUSE_MS : this.#settings.scanIntervalMs);
    }
  }

  async #scan(isEager: boolean): Promise<void> {
    const limit = this.#turns.remainingCapacity;
    this.#more = false;
    if (limit <= 0) return;
    try {
      const quietMs = isEager ? EAGER_QUIET_MS : PATIENT_QUIET_MS;
      const found = await this.#settings.scan({ quietMs, perEnvironment: WAITING.perOwner, limit });
      if (found.length > 0) this.#eagerUntilMs = performance.now() + EAGER_FOR_MS;
      // A row that no longer fits is left to a later scan, like a row whose job was lost.
      for (const { id, environmentId } of found) this.#turns.add(environmentId, id);
      // A scan stops at `limit` rows, or at `perOwner` rows of one environment. It does not say which, so any result of
      // that size may be incomplete.
      this.#more = found.length >= Math.min(limit, WAITING.perOwner);
      this.#fill();
    } catch (error) {
      this.#settings.onError(error);
    }
  }

  /** Ends early if the slots run out of work, if scans become eager, or if the scheduler closes. */
  async #pause(milliseconds: number): Promise<void> {
    const ended = new AbortController();
    const end = (): void => ended.abort();
    this.#scanNow = end;
    this.#closed.signal.addEventListener('abort', end);
    if (this.#closed.signal.aborted) end();
    // Scans can become eager during a long pause, for example when a job finds the queue full.
    const step = Math.min(milliseconds, EAGER_PAUSE_MS);
    const until = performance.now() + milliseconds;
    while (!ended.signal.aborted && performance.now() < until) {
      await delay(step, undefined, { signal: ended.signal }).catch(() => undefined);
      if (performance.now() < this.#eagerUntilMs || !this.#settings.jobsArrive()) break;
    }
    this.#scanNow = () => undefined;
    this.#closed.signal.removeEventListener('abort', end);
  }
}
