import { RequestFailure } from '../../connections/request-failure.js';
import type { MediaHost } from '../media-host.js';
import type { Serial } from '../serial.js';
import type { Feed } from './feed.js';

/** What the mute of an own track depends on. */
export interface MutableTracks {
  feed: Feed | null;
  writes: Serial;
  /** Whether the tracks of the feed are written. If they are not, their announcement carries the mute state. */
  isAnnounced(): boolean;
}

/**
 * Mutes or unmutes a track of the session, for the others and on the media server.
 * @throws RequestFailure `not_found` if the session does not publish the track
 */
export async function mute(
  host: MediaHost,
  { feed, writes, isAnnounced }: MutableTracks,
  trackId: string,
  muted: boolean,
): Promise<void> {
  const track = feed?.tracks.find((one) => one.trackId === trackId);
  const isStored = () => host.tracks().has(host.participantId, trackId);
  if (track === undefined && !isStored()) throw new RequestFailure('not_found');
  if (track !== undefined) track.muted = muted;
  await writes.run(async () => {
    if (isAnnounced() || isStored()) await host.setTrackMuted(trackId, muted);
  });
  await feed?.moderation.agree();
}
