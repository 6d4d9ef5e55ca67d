import { findDueEndpoints } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { Turns } from './turns.js';

/** Interval of scans while Redis is away, in milliseconds. */
export const SCAN_FAST_MS = 500;
/** Endpoints of one statement. The next one continues where the last one ended. */
const PAGE = 1000;
/** The ticket of a turn that a scan announces: the worker of the usual one may be dead. */
const SCAN_TICKET = -1;

type ScanDeps = Pick<Deps, 'database' | 'metrics' | 'logger' | 'producer' | 'random'>;

/**
 * Finds endpoints with due deliveries in PostgreSQL alone. Because of it, jobs only save time. While Redis is away, it
 * runs the turns of the endpoints that it finds.
 */
export class Scan {
  #afterId = '';
  #lastAtMs = -Infinity;

  constructor(
    private readonly deps: ScanDeps,
    private readonly turns: Turns,
    private readonly intervalMs: number,
  ) {
    // The workers scan at different times.
    this.#lastAtMs = performance.now() - deps.random() * intervalMs;
  }

  /** Scans if a scan is due. Call it at least every `SCAN_FAST_MS`. */
  async tick(): Promise<void> {
    const hasRedis = this.deps.producer.health.trouble === null;
    if (hasRedis && performance.now() - this.#lastAtMs < this.intervalMs) return;
    this.#lastAtMs = performance.now();
    await this.scan(hasRedis);
  }

  /** PostgreSQL cuts a statement that takes too long, such as beside an old snapshot. The next scan tries again. */
  async scan(hasRedis: boolean): Promise<void> {
    const { database, producer, metrics, logger } = this.deps;
    // A delivery that became due lately has a job on its way.
    const page = { afterId: this.#afterId, limit: PAGE };
    const { due, nextId } = await findDueEndpoints(database.sql, hasRedis ? this.intervalMs / 2 : 0, page);
    this.#afterId = nextId ?? '';
    if (due.length === 0) return;
    const turns = due.map((endpoint) => ({ ...endpoint, priority: this.turns.priority(endpoint) }));
    if (!hasRedis) {
      for (const turn of turns.sort((a, b) => a.priority - b.priority)) void this.turns.runDirectly(turn);
      return;
    }
    await producer.wakeDeliveries(turns.map((turn) => ({ ...turn, ticket: SCAN_TICKET })));
    metrics.foundByScan(due.length);
    logger.info('endpoints found by scan', { count: due.length });
  }
}
