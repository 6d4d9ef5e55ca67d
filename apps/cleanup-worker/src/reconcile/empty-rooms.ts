import { acceptEmptyRoomEnds } from '@callplane/db';
import { publishRoomChanged, QUEUE_OF_OPERATION } from '@callplane/queue';
import type { Deps } from '../deps.js';

/** Rooms of one pass; the next one follows at once while there are that many. */
const BATCH = 100;

/** Lets rooms end that have been empty for long enough. */
export async function endEmptyRooms(
  deps: Pick<Deps, 'database' | 'producer' | 'logger' | 'clock'>,
  emptyMs: number,
): Promise<void> {
  let accepted: number;
  do {
    const ends = await acceptEmptyRoomEnds(deps.database.hot, emptyMs, BATCH, deps.clock.now());
    accepted = ends.length;
    if (accepted === 0) return;
    const woken = await deps.producer.wakeAll(ends.map((row) => ({ queue: QUEUE_OF_OPERATION[row.kind], row })));
    for (const { id, roomId } of ends) {
      deps.logger.info('empty room ends', { roomId, operationId: id, emptyMs, woken: woken.ok });
      void publishRoomChanged(deps.producer.redis, roomId);
    }
  } while (accepted === BATCH);
}
