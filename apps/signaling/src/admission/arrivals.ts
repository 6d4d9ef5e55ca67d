import { setTimeout as delay } from 'node:timers/promises';
import type { Connection } from '../connections/connection.js';

/**
 * How long a drain waits for joins and resumptions in progress, in milliseconds. A client whose connection closes
 * before its welcome joins at another instance, while this one may still commit its first join.
 */
const ARRIVE_WITHIN_MS = 3000;

/** The joins and resumptions that are in progress at this instance. */
export class Arrivals {
  readonly #byConnection = new Map<Connection, Promise<void>>();
  /** Sessions whose resumption is in progress. Their rows may name this instance before it holds them. */
  readonly #resuming = new Set<string>();
  #isDraining = false;

  /** Whether the instance drains. It begins no join and no resumption then: another instance can handle it. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  startDraining(): void {
    this.#isDraining = true;
  }

  has(connection: Connection): boolean {
    return this.#byConnection.has(connection);
  }

  isResuming(sessionId: string): boolean {
    return this.#resuming.has(sessionId);
  }

  /** @param sessionId the session that is resumed; null for a join */
  async track(connection: Connection, sessionId: string | null, work: () => Promise<void>): Promise<void> {
    if (sessionId !== null) this.#resuming.add(sessionId);
    const arriving = work();
    this.#byConnection.set(connection, arriving);
    try {
      await arriving;
    } finally {
      this.#byConnection.delete(connection);
      if (sessionId !== null) this.#resuming.delete(sessionId);
    }
  }

  /** Waits for the joins and resumptions in progress, for at most ARRIVE_WITHIN_MS. */
  async settled(): Promise<void> {
    const enough = new AbortController();
    await Promise.race([
      Promise.allSettled([...this.#byConnection.values()]),
      delay(ARRIVE_WITHIN_MS, undefined, { signal: enough.signal }).catch(() => undefined),
    ]);
    enough.abort();
  }
}
