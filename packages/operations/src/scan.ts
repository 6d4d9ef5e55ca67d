import { CONCURRENCY_PER_WORKER, type OperationKind } from '@callplane/core';
import { findDueOperations } from '@callplane/db';
import type { OperationDeps } from './kind.js';

/** Interval of scans after a full page, and while Redis is in trouble, in milliseconds. */
export const SCAN_FAST_MS = 1000;
/** Operations that one scan gives to Redis. */
const PAGE = 1000;
/** Operations that one scan works on itself: few, so that another tenant's wait for two rounds at most. */
const PAGE_WITHOUT_REDIS = 2 * CONCURRENCY_PER_WORKER;
/** From then on the job of an operation counts as lost, in milliseconds: a scan has passed it. */
const LATE_MS = 8000;

type ScanDeps = Pick<OperationDeps, 'database' | 'producer' | 'logger' | 'metrics' | 'random'>;

/**
 * Finds due operations in PostgreSQL and adds their jobs, in case they have none: their retry was planned by a worker
 * that died, Redis was emptied, or their tenant has too many. Works on them itself while Redis is in trouble.
 */
export class Scan {
  readonly #deps: ScanDeps;
  readonly #kinds: readonly OperationKind[];
  readonly #intervalMs: number;
  readonly #work: (operationId: string, kind: OperationKind) => Promise<unknown>;
  #nextAtMs: number;

  constructor(
    deps: ScanDeps,
    kinds: readonly OperationKind[],
    intervalMs: number,
    work: (operationId: string, kind: OperationKind) => Promise<unknown>,
  ) {
    this.#deps = deps;
    this.#kinds = kinds;
    this.#intervalMs = intervalMs;
    this.#work = work;
    // The workers scan at different times.
    this.#nextAtMs = performance.now() + deps.random() * intervalMs;
  }

  /**
   * Scans if a scan is due. Call it at least every `SCAN_FAST_MS`. PostgreSQL cuts a statement that takes too long, and
   * the next call scans again. Without Redis it resolves once the operations that it works on have ended.
   */
  async tick(signal: AbortSignal): Promise<void> {
    const { database, producer } = this.#deps;
    const hasRedis = producer.health.trouble === null;
    if (hasRedis && performance.now() < this.#nextAtMs) return;
    const limit = hasRedis ? PAGE : PAGE_WITHOUT_REDIS;
    let isFull: boolean;
    do {
      const rows = await findDueOperations(database.sql, this.#kinds, limit);
      this.#report(rows.filter(({ lateMs }) => lateMs > LATE_MS));
      isFull = rows.length === limit;
      if (hasRedis) {
        const isDone = (await producer.addDueOperations(rows)) && !isFull;
        if (isDone) this.#nextAtMs = performance.now() + this.#intervalMs;
        return;
      }
      const worked = await Promise.allSettled(rows.map(({ id, kind }) => this.#work(id, kind)));
      const failed = worked.find((one) => one.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    } while (isFull && !signal.aborted);
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
