import type { RoomChanges, RoomRead } from '@callplane/db';

/** Maximum number of rooms that one statement reads. */
const BATCH_ROOMS_MAX = 200;
/** Maximum number of statements that run at once. A room is never in two of them. */
const BATCHES_MAX = 3;

/** Why a room is read, as the label of a metric. */
export const READ_REASONS = [
  /** This instance has changed the room, or sends a welcome. */
  'changed',
  /** A notice does not continue what is known, or carries no changes. */
  'gap',
  /** The periodic resync, and the one after an outage of Redis. */
  'poll',
  /** Finds out whether this instance still holds a session, for example after its feed has ended by itself. */
  'check',
] as const;
export type ReadReason = (typeof READ_REASONS)[number];

/** What a read is for. Requests that wait for the same read are combined. */
export interface LoadOptions {
  /** Of combined requests, the reason of the first one counts. */
  why: ReadReason;
  /** Reads the whole room instead of its changes. */
  complete?: boolean;
  /** Notifies the other instances of what was read. */
  publish?: boolean;
}

interface Waiting extends Required<LoadOptions> {
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/** A room whose read begins. */
interface Reading extends RoomRead {
  /** The version that was known when the read began; null if the room was not known. */
  known: number | null;
}

export interface RoomLoaderPort {
  read(reads: RoomRead[]): Promise<Map<string, RoomChanges>>;
  /** The version of the room that is known now; null if it was never read. */
  versionOf(roomId: string): number | null;
  /** Called for each room that was read, in the order of the reads. `changes` of a missing room are null. */
  apply(roomId: string, changes: RoomChanges | null, known: number | null, options: Required<LoadOptions>): void;
  /** Called for each room of a read that begins. */
  onRead(why: ReadReason): void;
}

/**
 * Reads the changes of rooms in batches. For each room at most one read runs and one waits, however many callers ask.
 * Reads of one room run one after another, so that an older read never replaces a newer one.
 */
export class RoomLoader {
  readonly #port: RoomLoaderPort;
  readonly #queued = new Map<string, Waiting>();
  readonly #reading = new Set<string>();
  #batches = 0;
  #scheduled = false;

  constructor(port: RoomLoaderPort) {
    this.#port = port;
  }

  /** Resolves once a read that began after this call has been applied. */
  load(roomId: string, { why, complete = false, publish = false }: LoadOptions): Promise<void> {
    let waiting = this.#queued.get(roomId);
    if (waiting === undefined) {
      waiting = newWaiting(why);
      this.#queued.set(roomId, waiting);
      this.#schedule();
    }
    waiting.complete ||= complete;
    waiting.publish ||= publish;
    return waiting.promise;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Waits for the end of the current event-loop tick, so that one statement reads all rooms requested in that tick.
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#batches < BATCHES_MAX && this.#startBatch());
    });
  }

  #startBatch(): boolean {
    const batch = new Map<string, Waiting>();
    for (const [roomId, waiting] of this.#queued) {
      if (batch.size >= BATCH_ROOMS_MAX) break;
      if (this.#reading.has(roomId)) continue;
      batch.set(roomId, waiting);
      this.#queued.delete(roomId);
      this.#reading.add(roomId);
    }
    if (batch.size === 0) return false;
    this.#batches += 1;
    void this.#run(batch);
    return true;
  }

  async #run(batch: Map<string, Waiting>): Promise<void> {
    try {
      const reads = [...batch].map(([roomId, { complete, why }]): Reading => {
        this.#port.onRead(why);
        const known = this.#port.versionOf(roomId);
        return { roomId, known, after: complete ? null : known };
      });
      const changes = await this.#port.read(reads.map(({ roomId, after }) => ({ roomId, after })));
      for (const { roomId, known } of reads) {
        const waiting = batch.get(roomId);
        if (waiting === undefined) continue;
        const { resolve, reject, ...settings } = waiting;
        try {
          this.#port.apply(roomId, changes.get(roomId) ?? null, known, settings);
          resolve();
        } catch (error) {
          reject(error);
        }
      }
    } catch (error) {
      for (const waiting of batch.values()) waiting.reject(error);
    } finally {
      for (const roomId of batch.keys()) this.#reading.delete(roomId);
      this.#batches -= 1;
      if (this.#queued.size > 0) this.#schedule();
    }
  }
}

function newWaiting(why: ReadReason): Waiting {
  let resolve: () => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<void>((whenDone, whenFailed) => {
    resolve = whenDone;
    reject = whenFailed;
  });
  // A caller may ignore the promise. A failed read must not become an unhandled rejection.
  promise.catch(() => undefined);
  return { promise, resolve, reject, why, complete: false, publish: false };
}
