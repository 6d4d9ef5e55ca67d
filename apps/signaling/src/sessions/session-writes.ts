import type { Clock } from '@callplane/core';
import {
  endSessions,
  isDatabaseUnavailable,
  markDisconnected,
  releaseSession,
  type Database,
  type HeldSession,
} from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import { Batches, ONE_QUEUE, type Logger, type Turns } from '@callplane/runtime';
import type { BatchMetrics } from '../batching/batch-metrics.js';
import type { Rooms } from '../rooms/rooms.js';

/** Pause between attempts of a write, in milliseconds. */
const WRITE_AGAIN_MS = 1000;
/** Maximum number of attempts of a write. If all fail, a sweep or a clean-up makes it later. */
const TRIES_MAX = 30;
const DISCONNECTIONS_PER_BATCH_MAX = 500;
const ENDS_PER_BATCH_MAX = 100;

export interface SessionWritesDeps {
  clock: Clock;
  database: Database;
  logger: Logger;
  metrics: BatchMetrics;
  producer: JobProducer;
}

/** A session that has lost its connection. */
export interface Disconnected extends HeldSession {
  /** Where its media is, for the instance that resumes it; without it, the stored value stays. */
  media?: unknown;
}

type EndReason = 'left' | 'connection_lost';

/** Writes that follow the end of a connection or session. They run in the background, in batches. */
export class SessionWrites {
  readonly #deps: SessionWritesDeps;
  readonly #rooms: Rooms;
  readonly #pending = new Set<Promise<unknown>>();
  /** The results say whether another transaction has locked the session or its room. */
  readonly #disconnections: Batches<Disconnected, 'written' | 'busy'>;
  readonly #ends: Record<EndReason, Batches<HeldSession, boolean>>;
  #isDraining = false;

  /** @param turns limits the batches that use the database at once */
  constructor(deps: SessionWritesDeps, rooms: Rooms, turns: Turns) {
    this.#deps = deps;
    this.#rooms = rooms;
    this.#disconnections = new Batches({
      run: async (key, lost) => {
        const { marked, busy } = await markDisconnected(deps.database, lost, { skipLocked: key === ONE_QUEUE });
        const roomIds = new Set(marked.map(({ roomId }) => roomId));
        await Promise.all([...roomIds].map((roomId) => rooms.changed(roomId)));
        return lost.map(({ sessionId }) => (busy.has(sessionId) ? 'busy' : 'written'));
      },
      sizeMax: DISCONNECTIONS_PER_BATCH_MAX,
      turns,
      onBatch: (size, durationMs) => deps.metrics.batch('disconnections', size, durationMs),
    });
    this.#ends = { left: this.#endBatches('left', turns), connection_lost: this.#endBatches('connection_lost', turns) };
  }

  /**
   * Marks the session as disconnected, which starts its grace period. If its room is locked, it waits in a batch of the
   * room, so that a slow room delays no other one.
   */
  async markLost(lost: Disconnected, roomId: string): Promise<void> {
    await this.retry('session not marked as disconnected', lost.sessionId, TRIES_MAX, async () => {
      const written = await this.#disconnections.add(ONE_QUEUE, lost);
      if (written === 'busy') await this.#disconnections.add(roomId, lost);
    });
  }

  /**
   * Ends the session, unless another connection holds it by now.
   * @returns whether the end was written
   */
  async end(held: HeldSession, roomId: string, reason: EndReason): Promise<boolean> {
    let isWritten = false;
    await this.retry('session not ended', held.sessionId, TRIES_MAX, async () => {
      isWritten = await this.#ends[reason].add(roomId, held);
    });
    return isWritten;
  }

  /**
   * Records that the session has no connection and no media handles any more. The clean-up of a removal waits for this;
   * if it waits in vain, it makes another attempt later.
   */
  async release(held: HeldSession): Promise<void> {
    await this.retry('session not released', held.sessionId, 3, async () => {
      await releaseSession(this.#deps.database.sql, held);
    });
  }

  /** Retries `work` while the database is unavailable. Never rejects: a sweep or clean-up replaces failed work. */
  async retry(message: string, sessionId: string, triesMax: number, work: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await work();
        return;
      } catch (error) {
        const again = tries < triesMax && !this.#isDraining && isDatabaseUnavailable(error);
        this.#deps.logger[again ? 'warn' : 'error'](message, { sessionId, tries, error });
        if (!again) return;
        await new Promise((resolve) => setTimeout(resolve, WRITE_AGAIN_MS));
      }
    }
  }

  /** Runs work in the background. `drain` waits for it. */
  track(work: Promise<unknown>): void {
    const tracked = work
      .catch((error: unknown) => this.#deps.logger.error('session task failed', { error }))
      .finally(() => this.#pending.delete(tracked));
    this.#pending.add(tracked);
  }

  /** Resolves when no work is pending. From the call on, failed writes are not retried. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    while (this.#pending.size > 0) await Promise.allSettled([...this.#pending]);
  }

  #endBatches(reason: EndReason, turns: Turns): Batches<HeldSession, boolean> {
    const { clock, database, metrics, producer } = this.#deps;
    return new Batches({
      run: async (roomId, held) => {
        const { ended, deliveries } = await endSessions(database, roomId, held, reason, clock.now());
        void producer.wakeDeliveries(deliveries);
        if (ended.size > 0) await this.#rooms.changed(roomId);
        return held.map(({ sessionId }) => ended.has(sessionId));
      },
      sizeMax: ENDS_PER_BATCH_MAX,
      turns,
      onBatch: (size, durationMs) => metrics.batch('ends', size, durationMs),
    });
  }
}
