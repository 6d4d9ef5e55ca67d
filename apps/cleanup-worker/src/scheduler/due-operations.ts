import { forgetWakeUps, takeDueOperations } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { Candidate, ScanBounds } from './scheduler.js';

/** Scans PostgreSQL for due operations. Each scan continues after the last one. */
export class DueOperations {
  readonly #deps: Pick<Deps, 'database' | 'logger' | 'metrics'>;
  #after: string | null = null;

  constructor(deps: Pick<Deps, 'database' | 'logger' | 'metrics'>) {
    this.#deps = deps;
  }

  async take(bounds: ScanBounds): Promise<readonly Candidate[]> {
    const { rows, after } = await takeDueOperations(this.#deps.database.sql, { ...bounds, after: this.#after });
    this.#after = after;
    if (rows.length === 0) return rows;
    for (const { kind } of rows) this.#deps.metrics.foundByScan(kind);
    this.#deps.logger.info('due operations scanned', {
      count: rows.length,
      operationIds: rows.slice(0, 20).map(({ id }) => id),
    });
    return rows;
  }

  /**
   * Makes rows that waited in this process available to the next scan of any worker. Otherwise a scan would skip them
   * until their last wake-up is old enough.
   */
  async release(operationIds: readonly string[]): Promise<void> {
    if (operationIds.length > 0) await forgetWakeUps(this.#deps.database.sql, operationIds);
  }
}
