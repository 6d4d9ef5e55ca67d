import { CONCURRENCY_PER_WORKER } from '@callplane/core';
import { findDueOperations, isDatabaseUnavailable, isOutOfTime } from '@callplane/db';
import { pause } from '@callplane/runtime';
import type { Deps } from './deps.js';

/** Operations that one scan gives to Redis. */
const PAGE = 1000;
/** Operations that one scan works on itself. It is small, so that those of another tenant wait for two rounds at most. */
const PAGE_WITHOUT_REDIS = 2 * CONCURRENCY_PER_WORKER;
/** Pause after a full page, and while Redis is in trouble, in milliseconds. */
const SOON_MS = 1000;
/** From then on the job of an operation counts as lost, in milliseconds: a scan has passed it. */
const LATE_MS = 8000;

type ScanDeps = Pick<Deps, 'database' | 'producer' | 'logger' | 'metrics' | 'random'>;

interface ScanSettings {
  intervalMs: number;
  work(operationId: string): Promise<unknown>;
}

/**
 * Finds due operations in PostgreSQL and adds their jobs, in case they have none: their retry was planned by a worker
 * that died, Redis was emptied, or their tenant has too many. Works on them itself while Redis is in trouble.
 */
export class Scan {
  readonly #deps: ScanDeps;
  readonly #settings: ScanSettings;
  readonly #closed = new AbortController();
  readonly #ended: Promise<void>;

  constructor(deps: ScanDeps, settings: ScanSettings) {
    this.#deps = deps;
    this.#settings = settings;
    this.#ended = this.#repeat();
  }

  /** Resolves once the operations that it works on have ended. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#ended;
  }

  async #repeat(): Promise<void> {
    const { signal } = this.#closed;
    // The scans of several workers fall at different times.
    let pauseMs = Math.min(await this.#scan(), this.#settings.intervalMs * this.#deps.random());
    for (;;) {
      await pause(pauseMs, signal);
      if (signal.aborted) return;
      pauseMs = await this.#scan();
    }
  }

  /** @returns the pause until the next scan. */
  async #scan(): Promise<number> {
    const { intervalMs } = this.#settings;
    const soonMs = Math.min(SOON_MS, intervalMs);
    const { database, producer } = this.#deps;
    try {
      const hasRedis = producer.health.trouble === null;
      const limit = hasRedis ? PAGE : PAGE_WITHOUT_REDIS;
      const rows = await findDueOperations(database.sql, limit);
      this.#report(rows.filter(({ lateMs }) => lateMs > LATE_MS));
      const isFull = rows.length === limit;
      if (hasRedis) return (await producer.addDueOperations(rows)) && !isFull ? intervalMs : soonMs;
      const worked = await Promise.allSettled(rows.map(({ id }) => this.#settings.work(id)));
      const failed = worked.find(({ status }) => status === 'rejected');
      if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
      return isFull ? 0 : soonMs;
    } catch (error) {
      const { logger } = this.#deps;
      if (isOutOfTime(error)) logger.error('scan for due operations cut at its deadline', { error });
      else if (isDatabaseUnavailable(error)) logger.error('scan for due operations waits for PostgreSQL', { error });
      else logger.error('scan for due operations failed', { error });
      return soonMs;
    }
  }

  #report(late: Awaited<ReturnType<typeof findDueOperations>>): void {
    if (late.length === 0) return;
    for (const { kind } of late) this.#deps.metrics.foundLate(kind);
    this.#deps.logger.warn('operations found late', {
      count: late.length,
      operationIds: late.slice(0, 20).map(({ id }) => id),
    });
  }
}
