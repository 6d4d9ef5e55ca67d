import { MediaError, type MediaNode, type MediaSession } from '@callplane/media';
import type { MediaHost } from '../media-host.js';
import type { ClaimOutcome, MediaState } from './media-state.js';

export interface ClaimContext {
  /** Where the room's media is; null if its media server is unreachable. */
  place: { node: MediaNode; generation: number } | null;
  /** Number of the connection before this resumption. */
  previousConnection: number;
  clientHasPeers: boolean;
}

/**
 * Claims the session that another gateway has handed over. One that cannot be continued is ended: this gateway has just
 * written the resumption, so no other one holds it.
 */
export async function claimSession(
  { logger, sessionId }: Pick<MediaHost, 'logger' | 'sessionId'>,
  state: MediaState,
  { place, previousConnection, clientHasPeers }: ClaimContext,
): Promise<MediaSession | Exclude<ClaimOutcome, 'continued' | 'partly'>> {
  if (place === null) return 'lost';
  const { node, generation } = place;
  if (state.nodeId !== node.id || state.generation !== generation) return 'outdated';
  try {
    if (state.connection === previousConnection && clientHasPeers) return await node.claimSession(state.janusSession);
    await node.destroySession(state.janusSession);
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    logger.warn('media session not claimed', { sessionId, mediaNodeId: node.id, error });
    // The media server may have carried out the claim, and no other process knows the session any more.
    if (error.code === 'timeout') void node.destroySession(state.janusSession).catch(() => undefined);
    return 'lost';
  }
  return clientHasPeers ? 'outdated' : 'reset';
}
