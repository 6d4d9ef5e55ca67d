import { scanBacklogs, scanNewlyDue } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { Workers } from './workers.js';

/** Interval of scans while they find endpoints that no doorbell announced, in milliseconds. */
export const SCAN_FAST_MS = 250;
/** Scans slow down again after this many scans in a row have found nothing. */
const FAST_SCANS = 8;
/** Endpoints with backlogs per statement, and statements per scan. The next scan continues where the last one ended. */
const BATCH = 500;
const BATCHES_MAX = 4;
/** Pending deliveries per scan that became due lately. The next scan continues where the last one ended. */
const NEWLY_DUE_MAX = 5000;

/**
 * Finds endpoints with due deliveries in PostgreSQL alone. Because of it, doorbells only save time: it finds all due
 * deliveries without Redis, and lets an idle worker take deliveries that a busy one leaves.
 *
 * A scan reads what became due lately, and lists the endpoints with a backlog (docs/decisions/0039). At the normal
 * interval it begins at the floor, so that it finds all due deliveries. A fast scan begins where the last one ended.
 */
export class Scan {
  readonly #deps: Pick<Deps, 'beginnings' | 'claimsDatabase' | 'metrics' | 'logger'>;
  readonly #workers: Workers;
  readonly #intervalMs: number;
  #afterId = '';
  #next: Date | null = null;
  #isMore = false;
  #fastScans = 0;
  #lastAtMs = -Infinity;
  #lastFromFloorAtMs = -Infinity;

  constructor(
    deps: Pick<Deps, 'beginnings' | 'claimsDatabase' | 'metrics' | 'logger'>,
    workers: Workers,
    intervalMs: number,
  ) {
    this.#deps = deps;
    this.#workers = workers;
    this.#intervalMs = intervalMs;
  }

  /** Scans if a scan is due. Call it at least every `SCAN_FAST_MS`. */
  async tick(): Promise<void> {
    const isDue = this.#fastScans > 0 || performance.now() - this.#lastAtMs >= this.#intervalMs;
    if (isDue) await this.scan();
  }

  async scan(): Promise<void> {
    this.#lastAtMs = performance.now();
    this.#fastScans = Math.max(0, this.#fastScans - 1);
    const found = (await this.#scanNewlyDue()) + (await this.#scanBacklogs());
    // An unfinished scan goes on soon, or a pass over many endpoints would take several intervals.
    if (this.#afterId !== '' || this.#isMore) this.#fastScans = Math.max(this.#fastScans, 1);
    if (found === 0) return;
    this.#fastScans = FAST_SCANS;
    this.#deps.metrics.foundByScan(found);
    this.#deps.logger.info('endpoints found by scan', { count: found });
  }

  async #scanNewlyDue(): Promise<number> {
    const isFromFloor = !this.#isMore && this.#lastAtMs - this.#lastFromFloorAtMs >= this.#intervalMs;
    if (isFromFloor) this.#lastFromFloorAtMs = this.#lastAtMs;
    const since = isFromFloor ? null : this.#next;
    const { due, floor, next, isMore } = await scanNewlyDue(this.#deps.claimsDatabase.sql, since, NEWLY_DUE_MAX);
    this.#next = next;
    this.#isMore = isMore;
    this.#deps.beginnings.noteFloor(floor);
    return this.#workers.wakeFound(due).length;
  }

  async #scanBacklogs(): Promise<number> {
    let found = 0;
    for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
      const { backlogs, due, nextId } = await scanBacklogs(this.#deps.claimsDatabase.sql, this.#afterId, BATCH);
      this.#afterId = nextId ?? '';
      this.#deps.beginnings.noteBacklogs(backlogs, nextId === null);
      found += this.#workers.wakeFound(due).length;
      if (nextId === null) break;
    }
    return found;
  }
}
