import { updateOwnMetadata, type Database, type HeldSession } from '@callplane/db';
import type { BatchMetrics } from '../batching/batch-metrics.js';
import { Batches } from '../batching/batches.js';
import type { Rooms } from '../rooms/rooms.js';

const CHANGES_PER_BATCH_MAX = 100;

/** Writes the metadata that participants set themselves. The changes of a room run in batches, one after the other. */
export class MetadataWrites {
  readonly #batches: Batches<{ held: HeldSession; metadata: Record<string, unknown> }, boolean>;

  constructor({ database, metrics }: { database: Database; metrics: BatchMetrics }, rooms: Rooms) {
    this.#batches = new Batches({
      run: async (roomId, changes) => {
        const written = await updateOwnMetadata(database, roomId, changes);
        // Without a write, the session has ended, and the room's changes say how.
        void rooms.changed(roomId);
        return changes.map(({ held }) => written.has(held.sessionId));
      },
      sizeMax: CHANGES_PER_BATCH_MAX,
      onBatch: (size, durationMs) => metrics.batch('metadata', size, durationMs),
    });
  }

  /** @returns false if this instance does not hold the session any more */
  write(roomId: string, held: HeldSession, metadata: Record<string, unknown>): Promise<boolean> {
    return this.#batches.add(roomId, { held, metadata });
  }
}
