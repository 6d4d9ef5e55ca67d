import { endSession, isDatabaseUnavailable, markDisconnected, releaseSession, type HeldSession } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { Rooms } from '../rooms/rooms.js';

/** How often a write is tried again that the end of a connection asks for, in milliseconds. */
const WRITE_AGAIN_MS = 1000;
/** Tries of a write that others make too if this one does not: a sweep, a clean-up. */
const TRIES_MAX = 30;

/** What the end of a connection or a session writes, without anybody waiting for it. */
export class SessionWrites {
  readonly #deps: Pick<Deps, 'clock' | 'database' | 'logger' | 'producer'>;
  readonly #rooms: Rooms;
  readonly #pending = new Set<Promise<unknown>>();
  #draining = false;

  constructor(deps: Pick<Deps, 'clock' | 'database' | 'logger' | 'producer'>, rooms: Rooms) {
    this.#deps = deps;
    this.#rooms = rooms;
  }

  /** The connection is lost: the grace period runs. */
  async markLost(held: HeldSession, roomId: string): Promise<void> {
    await this.retry('session not marked as disconnected', held.sessionId, TRIES_MAX, async () => {
      if (await markDisconnected(this.#deps.database, held)) await this.#rooms.changed(roomId, false);
    });
  }

  /** The session ends, unless another connection has it by now. */
  async end(held: HeldSession, roomId: string, reason: 'left' | 'connection_lost'): Promise<void> {
    await this.retry('session not ended', held.sessionId, TRIES_MAX, async () => {
      const { ended, deliveries } = await endSession(this.#deps.database, held, reason, this.#deps.clock.now());
      void this.#deps.producer.wakeDeliveries(deliveries);
      if (ended) await this.#rooms.changed(roomId, true);
    });
  }

  /** Media handles are given back. The clean-up waits for this, for a while: then it looks at the media server itself. */
  async release(held: HeldSession): Promise<void> {
    await this.retry('session not released', held.sessionId, 3, async () => {
      await releaseSession(this.#deps.database.hot, held);
    });
  }

  /** Never rejects: after the last try somebody else finds it, a sweep or a clean-up. */
  async retry(message: string, sessionId: string, triesMax: number, work: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await work();
        return;
      } catch (error) {
        const again = tries < triesMax && !this.#draining && isDatabaseUnavailable(error);
        this.#deps.logger[again ? 'warn' : 'error'](message, { sessionId, tries, error });
        if (!again) return;
        await new Promise((resolve) => setTimeout(resolve, WRITE_AGAIN_MS));
      }
    }
  }

  /** Nobody waits for this, but the process does before it ends. */
  track(work: Promise<unknown>): void {
    const tracked = work
      .catch((error: unknown) => this.#deps.logger.error('session work failed', { error }))
      .finally(() => this.#pending.delete(tracked));
    this.#pending.add(tracked);
  }

  /** Resolves when nothing is under way any more; from now on nothing is tried twice. */
  async drain(): Promise<void> {
    this.#draining = true;
    while (this.#pending.size > 0) await Promise.allSettled([...this.#pending]);
  }
}
