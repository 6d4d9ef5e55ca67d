import {
  setTracksMuted,
  updateOwnMetadata,
  type Database,
  type HeldSession,
  type MetadataChange,
  type MuteChange,
} from '@callplane/db';
import { Batches } from '@callplane/runtime';
import type { BatchMetrics, BatchName } from '../batching/batch-metrics.js';
import type { Rooms } from '../rooms/rooms.js';

const CHANGES_PER_BATCH_MAX = 100;

interface RoomWritesDeps {
  database: Database;
  metrics: BatchMetrics;
}

/** @returns for each change whether this instance held the session, so that it was written */
type Write<Change> = (roomId: string, changes: Change[]) => Promise<boolean[]>;

/** Writes changes that participants make themselves. Those of a room run in batches, one after the other. */
export class RoomWrites<Change extends { held: HeldSession }> {
  readonly #batches: Batches<Change, boolean>;

  constructor(name: BatchName, write: Write<Change>, { metrics }: { metrics: BatchMetrics }, rooms: Rooms) {
    this.#batches = new Batches({
      run: async (roomId, changes) => {
        const written = await write(roomId, changes);
        // Without a write, the session has ended, and the room's changes say how.
        void rooms.changed(roomId);
        return written;
      },
      sizeMax: CHANGES_PER_BATCH_MAX,
      onBatch: (size, durationMs) => metrics.batch(name, size, durationMs),
    });
  }

  /** @returns false if this instance does not hold the session any more, or the changed object does not exist */
  write(roomId: string, change: Change): Promise<boolean> {
    return this.#batches.add(roomId, change);
  }
}

/** The metadata that participants set themselves. */
export function metadataWrites(deps: RoomWritesDeps, rooms: Rooms): RoomWrites<MetadataChange> {
  const write: Write<MetadataChange> = async (roomId, changes) => {
    const written = await updateOwnMetadata(deps.database, roomId, changes);
    return changes.map(({ held }) => written.has(held.sessionId));
  };
  return new RoomWrites('metadata', write, deps, rooms);
}

/** The mutes of participants' own tracks. */
export function muteWrites(deps: RoomWritesDeps, rooms: Rooms): RoomWrites<MuteChange> {
  return new RoomWrites('mutes', (_, changes) => setTracksMuted(deps.database, changes), deps, rooms);
}
