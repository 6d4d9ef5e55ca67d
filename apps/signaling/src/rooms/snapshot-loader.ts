import type { RoomSnapshot } from '@callplane/db';

/** Rooms that one statement reads at most. */
const BATCH_ROOMS_MAX = 200;
/** Statements under way at once; a room is never in two of them. */
const BATCHES_MAX = 3;

interface Waiting {
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Reads rooms: at most one read of a room is under way and one more waits, however many ask. Reads of a room follow one
 * another, so that what is applied never goes back in time.
 */
export class SnapshotLoader {
  readonly #read: (roomIds: string[]) => Promise<Map<string, RoomSnapshot>>;
  readonly #apply: (roomId: string, snapshot: RoomSnapshot | null) => void;
  readonly #wanted = new Map<string, Waiting>();
  readonly #reading = new Set<string>();
  #batches = 0;
  #scheduled = false;

  /** @param apply is called for each room that was read, in the order of the reads; null when there is none. */
  constructor(
    read: (roomIds: string[]) => Promise<Map<string, RoomSnapshot>>,
    apply: (roomId: string, snapshot: RoomSnapshot | null) => void,
  ) {
    this.#read = read;
    this.#apply = apply;
  }

  /** Resolves once a read that began after this call has been applied. */
  load(roomId: string): Promise<void> {
    let waiting = this.#wanted.get(roomId);
    if (waiting === undefined) {
      waiting = newWaiting();
      this.#wanted.set(roomId, waiting);
      this.#schedule();
    }
    return waiting.promise;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // At the end of the turn: what asks in the same turn is read together.
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#batches < BATCHES_MAX && this.#begin());
    });
  }

  #begin(): boolean {
    const batch = new Map<string, Waiting>();
    for (const [roomId, waiting] of this.#wanted) {
      if (batch.size >= BATCH_ROOMS_MAX) break;
      if (this.#reading.has(roomId)) continue;
      batch.set(roomId, waiting);
      this.#wanted.delete(roomId);
      this.#reading.add(roomId);
    }
    if (batch.size === 0) return false;
    this.#batches += 1;
    void this.#run(batch);
    return true;
  }

  async #run(batch: Map<string, Waiting>): Promise<void> {
    try {
      const snapshots = await this.#read([...batch.keys()]);
      for (const [roomId, waiting] of batch) {
        try {
          this.#apply(roomId, snapshots.get(roomId) ?? null);
          waiting.resolve();
        } catch (error) {
          waiting.reject(error);
        }
      }
    } catch (error) {
      for (const waiting of batch.values()) waiting.reject(error);
    } finally {
      for (const roomId of batch.keys()) this.#reading.delete(roomId);
      this.#batches -= 1;
      if (this.#wanted.size > 0) this.#schedule();
    }
  }
}

function newWaiting(): Waiting {
  let resolve: () => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<void>((whenDone, whenFailed) => {
    resolve = whenDone;
    reject = whenFailed;
  });
  // Whoever asked may not wait for it.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
