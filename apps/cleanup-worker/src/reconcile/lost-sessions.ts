import { INSTANCE_DEAD_MS } from '@callplane/core';
import { deleteDeadInstances, sweepLostSessions } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from '../deps.js';
import { removeFeedsOf } from '../media/media-clean-up.js';
import { wake } from '../operations/events.js';

type ReconcileDeps = Pick<Deps, 'database' | 'producer' | 'media' | 'logger' | 'clock' | 'graceMs'>;

/** Sessions of one sweep; the next one follows at once while there are that many. */
const BATCH = 500;

/** Ends sessions that nobody comes back to, of clients that are gone and of signaling instances that died. */
export async function endLostSessions(deps: ReconcileDeps): Promise<void> {
  const limits = { graceMs: deps.graceMs, instanceDeadMs: INSTANCE_DEAD_MS, limit: BATCH };
  let count: number;
  do {
    const swept = await sweepLostSessions(deps.database, limits, deps.clock.now());
    count = swept.ended.length;
    if (count === 0) return;
    await wake(deps, swept.deliveries);
    await Promise.all(swept.roomIds.map((roomId) => publishRoomChanged(deps.producer.redis, roomId)));
    deps.logger.warn('lost sessions ended', {
      count,
      roomIds: swept.roomIds.slice(0, 20),
      sessionIds: swept.ended.slice(0, 20).map(({ sessionId }) => sessionId),
    });
    for (const roomId of swept.roomIds) {
      const theirs = swept.ended.filter((ended) => ended.roomId === roomId).map(({ sessionId }) => sessionId);
      await removeWhatIsLeft(deps, roomId, theirs);
    }
  } while (count >= BATCH);
}

/** A media server drops what a dead process held by itself; what a frozen one holds it would keep. */
async function removeWhatIsLeft(deps: ReconcileDeps, roomId: string, sessionIds: readonly string[]): Promise<void> {
  try {
    const removed = await removeFeedsOf(deps, roomId, sessionIds);
    if (typeof removed === 'number' && removed > 0)
      deps.logger.warn('feeds of lost sessions removed', { roomId, removed });
  } catch (error) {
    deps.logger.error('feeds of lost sessions not removed', { roomId, error });
  }
}

/** Removes the rows of signaling instances that died, once their sessions have ended. */
export async function forgetDeadInstances(deps: Pick<Deps, 'database' | 'logger'>): Promise<void> {
  for (const instanceId of await deleteDeadInstances(deps.database.hot, INSTANCE_DEAD_MS)) {
    deps.logger.warn('signaling instance dead', { instanceId });
  }
}
