import { acceptEmptyRoomEnds } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from '../deps.js';

/** Rooms per batch, of those with a time-out of their own and of the others. A full batch is followed by the next one at once. */
const BATCH = 100;

/**
 * Accepts the end of every room that has been empty for too long.
 * @param emptyMs for rooms without a time-out of their own; 0 keeps them open.
 */
export async function endEmptyRooms(
  deps: Pick<Deps, 'database' | 'producer' | 'logger' | 'clock'>,
  emptyMs: number,
): Promise<void> {
  let accepted: number;
  do {
    const ends = await acceptEmptyRoomEnds(deps.database.sql, emptyMs, BATCH, deps.clock.now());
    accepted = ends.length;
    if (accepted === 0) return;
    const woken = await deps.producer.wakeOperations(ends);
    for (const { id, roomId, roomVersion } of ends) {
      deps.logger.info('empty room ends', { roomId, operationId: id, woken: woken.ok });
      void publishRoomChanged(deps.producer.redis, roomId, roomVersion);
    }
  } while (accepted >= BATCH);
}
