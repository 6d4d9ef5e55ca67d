import { roomsStatus } from '@callplane/db';
import { MediaError, type MediaNode } from '@callplane/media';
import type { Deps } from '../deps.js';

/** How long a media server that is just away may take to come back, in milliseconds: it may be restarting. */
const NODE_PATIENCE_MS = 1000;

type MediaDeps = Pick<Deps, 'database' | 'media' | 'logger'>;

/** What became of a room's media: what cannot be reached is gone, or is destroyed as an orphan if it comes back. */
export type MediaOutcome = 'destroyed' | 'absent' | 'none' | 'unreachable';

/** Destroys a room on the media server that carries it, and makes sure that it is gone. */
export async function destroyMediaRoom(deps: MediaDeps, roomId: string): Promise<MediaOutcome> {
  return onNodeOf(deps, roomId, (node) => node.destroyRoom(roomId));
}

/** Stops what sessions publish in a room, whichever process holds their connections. Returns how many feeds it were. */
export async function removeFeedsOf(
  deps: MediaDeps,
  roomId: string,
  sessionIds: readonly string[],
): Promise<number | 'none' | 'unreachable'> {
  return onNodeOf(deps, roomId, async (node) => {
    let removed = 0;
    for (const feedId of await node.listFeeds(roomId)) {
      // `<session>-<n>`; also those that were not noted as published yet.
      const isTheirs = sessionIds.some((sessionId) => feedId.startsWith(`${sessionId}-`));
      if (isTheirs && (await node.removeFeed(roomId, feedId)) === 'removed') removed += 1;
    }
    return removed;
  });
}

async function onNodeOf<T>(
  deps: MediaDeps,
  roomId: string,
  work: (node: MediaNode) => Promise<T>,
): Promise<T | 'none' | 'unreachable'> {
  const mediaNodeId = (await roomsStatus(deps.database.hot, [roomId])).get(roomId)?.mediaNodeId ?? null;
  if (mediaNodeId === null) return 'none';
  try {
    const node = deps.media.get(mediaNodeId);
    if (node === undefined) throw new MediaError('unavailable', `${mediaNodeId} is not among MEDIA_NODES`);
    await node.untilUp(NODE_PATIENCE_MS);
    return await work(node);
  } catch (error) {
    if (!(error instanceof MediaError) || (error.code !== 'unavailable' && error.code !== 'timeout')) throw error;
    deps.logger.warn('media node unreachable', { roomId, mediaNodeId, error });
    return 'unreachable';
  }
}
