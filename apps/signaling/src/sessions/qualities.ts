import { QualityClock, type QualityLevel, type QualitySeconds } from '@callplane/core';
import { addQuality, type Database } from '@callplane/db';
import { Batches, type Logger, type Turns } from '@callplane/runtime';
import type { BatchMetrics } from '../batching/batch-metrics.js';

/** How often the seconds of running sessions are written, in milliseconds. A crash loses up to so much. */
const WRITE_EVERY_MS = 60_000;
const SESSIONS_PER_BATCH_MAX = 500;

interface Addition {
  sessionId: string;
  seconds: QualitySeconds;
}

export interface QualitiesDeps {
  database: Database;
  logger: Logger;
  metrics: BatchMetrics;
}

/** Counts how long each session of this instance was in which level, and adds the seconds to the sessions' rows. */
export class Qualities {
  readonly #logger: Logger;
  readonly #clocks = new Map<string, QualityClock>();
  readonly #batches: Batches<Addition, true>;
  readonly #timer: NodeJS.Timeout;

  /** @param turns limits the batches that use the database at once */
  constructor({ database, logger, metrics }: QualitiesDeps, turns: Turns) {
    this.#logger = logger;
    this.#batches = new Batches({
      run: async (_key, additions) => {
        await addQuality(database.sql, additions);
        return additions.map(() => true as const);
      },
      sizeMax: SESSIONS_PER_BATCH_MAX,
      turns,
      ownerOf: ({ sessionId }) => sessionId,
      onBatch: (size, durationMs) => metrics.batch('quality', size, durationMs),
    });
    this.#timer = setInterval(() => void this.#writeAll(), WRITE_EVERY_MS);
    this.#timer.unref();
  }

  /** The client of a session reports its level. */
  report(sessionId: string, level: QualityLevel, isRelayed: boolean): void {
    let clock = this.#clocks.get(sessionId);
    if (clock === undefined) {
      clock = new QualityClock();
      this.#clocks.set(sessionId, clock);
    }
    clock.set(level, isRelayed, performance.now());
  }

  /** The session has lost its connection. */
  lose(sessionId: string): void {
    this.#clocks.get(sessionId)?.lose(performance.now());
  }

  /** This instance has let go of the session. Resolves when its seconds are written, and never rejects. */
  async end(sessionId: string): Promise<void> {
    const clock = this.#clocks.get(sessionId);
    if (clock === undefined) return;
    this.#clocks.delete(sessionId);
    await this.#write(sessionId, clock);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #writeAll(): Promise<void> {
    await Promise.all([...this.#clocks].map(([sessionId, clock]) => this.#write(sessionId, clock)));
  }

  async #write(sessionId: string, clock: QualityClock): Promise<void> {
    const seconds = clock.take(performance.now());
    if (seconds === null) return;
    try {
      await this.#batches.add('', { sessionId, seconds });
    } catch (error) {
      this.#logger.warn('quality not written', { sessionId, error });
    }
  }
}
