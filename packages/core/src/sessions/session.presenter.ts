import type { Permission, SessionEndReason } from '../participants/participant.js';
import { formatTimestamp } from '../time.js';
import { worstLevel, type QualitySeconds } from './quality.js';
import type { TrackIdentity } from './track.js';

/** Number of ended publications that a session remembers: the latest ones. */
export const PAST_TRACKS_MAX = 100;

/** A track that a session publishes, or has published. */
interface TrackRecord extends TrackIdentity {
  publishedAt: Date;
  /** Null while the track is published. */
  unpublishedAt: Date | null;
}

/** One stay of a participant in a room. */
export interface SessionRecord {
  id: string;
  roomId: string;
  participantId: string;
  startedAt: Date;
  endedAt: Date | null;
  endReason: SessionEndReason | null;
  permissions: readonly Permission[];
  /** In the order of their publication. */
  tracks: TrackRecord[];
  quality: QualitySeconds;
}

/** Presents a session for the API. */
export function presentSessionRecord(session: SessionRecord) {
  const { good, fair, poor, lost, relayed } = session.quality;
  const worst = worstLevel(session.quality);
  return {
    id: session.id,
    roomId: session.roomId,
    participantId: session.participantId,
    joinedAt: formatTimestamp(session.startedAt),
    leftAt: session.endedAt === null ? null : formatTimestamp(session.endedAt),
    reason: session.endReason,
    permissions: [...session.permissions],
    tracks: session.tracks.map(({ trackId, kind, source, publishedAt, unpublishedAt }) => ({
      trackId,
      kind,
      source,
      publishedAt: formatTimestamp(publishedAt),
      unpublishedAt: unpublishedAt === null ? null : formatTimestamp(unpublishedAt),
    })),
    quality: worst === null ? null : { worst, relay: relayed > 0, seconds: { good, fair, poor, lost, relayed } },
  };
}
