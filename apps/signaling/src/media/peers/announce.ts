import type { MediaHost } from '../media-host.js';
import type { Feed } from './feed.js';
import type { PublisherPort } from './publisher-port.js';

/** Pause before a failed write of the tracks is tried again, in milliseconds. */
const AGAIN_MS = 1000;

/**
 * Writes a feed's tracks, so that the other participants learn of them. Retries until they are written, the session is
 * not held any more, or `isWanted` returns false. Never rejects.
 */
export async function announce(
  host: MediaHost,
  { writes, stateWith }: Pick<PublisherPort, 'stateWith' | 'writes'>,
  feed: Feed,
  isWanted: () => boolean,
): Promise<'announced' | 'notHeld' | 'unwanted'> {
  await feed.moderation.agree();
  while (isWanted()) {
    try {
      const isWritten = await writes.run(
        async () => isWanted() && (await host.publishTracks(feed.stored, stateWith(feed.state))),
      );
      if (isWritten) return isWanted() ? 'announced' : 'unwanted';
      // After a resumption, the next try uses the new connection number. After the session's end, none is needed.
      if (isWanted() && !(await host.stillLive())) return isWanted() ? 'notHeld' : 'unwanted';
    } catch (error) {
      host.logger.warn('tracks not announced', { sessionId: host.sessionId, error });
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
  return 'unwanted';
}
