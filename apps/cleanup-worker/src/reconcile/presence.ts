import { INSTANCE_DEAD_MS } from '@callplane/core';
import {
  acceptEmptyRoomEnds,
  deleteDeadInstances,
  mediaPlacesOf,
  recordTurnServerState,
  sessionsAmong,
  sweepLostSessions,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from '../deps.js';
import { endMediaSessions, removeFeedsOf, untilNodesUp } from '../media/media-clean-up.js';

type ReconcileDeps = Pick<Deps, 'database' | 'producer' | 'media' | 'logger' | 'clock' | 'graceMs' | 'outages'>;

/** Sessions per batch. A full batch is followed by the next one at once. */
const BATCH = 500;

/**
 * Ends sessions that no client resumed within the grace period, and sessions of dead signaling instances. Ends none
 * shortly after an outage of PostgreSQL.
 */
export async function endLostSessions(deps: ReconcileDeps): Promise<void> {
  if (!maySilenceCount(deps)) return;
  // The statement may have waited for the end of an outage, and have read heartbeats from before it.
  const mayEnd = () => maySilenceCount(deps);
  const limits = { graceMs: deps.graceMs, instanceDeadMs: INSTANCE_DEAD_MS, limit: BATCH, mayEnd };
  let count: number;
  let hasWaited = false;
  do {
    const swept = await sweepLostSessions(deps.database, limits, deps.clock.now());
    for (const failure of swept.failed) deps.logger.error('lost sessions not ended', failure);
    count = swept.ended.length;
    if (count === 0) return;
    await deps.producer.wakeDeliveries(swept.deliveries);
    await Promise.all(
      swept.rooms.map(({ roomId, version }) => publishRoomChanged(deps.producer.redis, roomId, version)),
    );
    deps.logger.warn('lost sessions ended', {
      count,
      roomIds: swept.rooms.slice(0, 20).map(({ roomId }) => roomId),
      sessionIds: swept.ended.slice(0, 20).map(({ sessionId }) => sessionId),
    });
    if (!hasWaited) await untilNodesUp(deps.media);
    hasWaited = true;
    await endMedia(deps, swept.ended).catch((error: unknown) =>
      deps.logger.error('media of lost sessions not ended', { error }),
    );
  } while (count >= BATCH);
}

/** Whether PostgreSQL has accepted writes for long enough, so that a silent gateway or client is gone. */
function maySilenceCount({ outages }: Pick<Deps, 'outages'>): boolean {
  return outages?.isSettled !== false;
}

/**
 * Removes the feeds of lost sessions, also feeds that the database does not know, and ends their media, which a media
 * server keeps for half a minute.
 */
async function endMedia(deps: ReconcileDeps, lost: readonly { sessionId: string; roomId: string }[]): Promise<void> {
  const sessionIds = lost.map(({ sessionId }) => sessionId);
  const isLost = new Set(sessionIds);
  for (const roomId of new Set(lost.map((one) => one.roomId))) {
    const which = (ids: readonly string[]) => Promise.resolve(ids.filter((id) => isLost.has(id)));
    const removed = await removeFeedsOf(deps, roomId, which, 0);
    if (typeof removed === 'number' && removed > 0)
      deps.logger.warn('feeds of lost sessions removed', { roomId, removed });
  }
  const ended = await endMediaSessions(deps, await mediaPlacesOf(deps.database.sql, sessionIds), 0);
  if (ended !== 'unreachable' && ended > 0) deps.logger.info('media of lost sessions ended', { ended });
}

export async function forgetDeadInstances(deps: Pick<Deps, 'database' | 'logger' | 'outages'>): Promise<void> {
  if (!maySilenceCount(deps)) return;
  for (const instanceId of await deleteDeadInstances(deps.database.sql, INSTANCE_DEAD_MS)) {
    deps.logger.warn('signaling instance dead', { instanceId });
  }
}

/** Rooms per batch, of those with a time-out of their own and of the others. */
const ROOMS_BATCH = 100;

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
    const ends = await acceptEmptyRoomEnds(deps.database.sql, emptyMs, ROOMS_BATCH, deps.clock.now());
    accepted = ends.length;
    if (accepted === 0) return;
    const woken = await deps.producer.wakeOperations(ends);
    for (const { id, roomId, roomVersion } of ends) {
      deps.logger.info('empty room ends', { roomId, operationId: id, woken });
      void publishRoomChanged(deps.producer.redis, roomId, roomVersion);
    }
  } while (accepted >= ROOMS_BATCH);
}

/**
 * Closes the relays of ended sessions: coturn cannot revoke a credential, so a client can allocate new relays until its
 * credential expires. This also covers sessions that ended without an operation. Of live sessions it closes the relays
 * that clients left in other networks.
 */
export async function closeEndedRelays(deps: Pick<Deps, 'database' | 'relays' | 'logger'>): Promise<void> {
  if (!deps.relays.isConfigured) return;
  const { sql } = deps.database;
  const outcomes = await deps.relays.close('sweep', (sessionIds) => sessionsAmong(sql, sessionIds, 'ended'));
  for (const { address, state, closed, error } of outcomes) {
    if (closed > 0) deps.logger.info('relays closed', { address, closed });
    if (!(await recordTurnServerState(sql, address, state))) continue;
    if (state === 'up') deps.logger.info('turn server state', { address, state });
    else deps.logger.error('turn server state', { address, state, error });
  }
}
