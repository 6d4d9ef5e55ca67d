import type { RecordingSpan, RecordingToProcess, StoredCapture } from '@callplane/db';

/** The track that a part of a capture belongs to. */
interface TrackOfPart {
  participantId: string | null;
  trackId: string | null;
  source: RecordingSpan['source'] | null;
}

export interface PlannedPart {
  track: TrackOfPart;
  /** In milliseconds since the recording's begin. */
  fromMs: number;
  toMs: number;
}

/**
 * The parts of a capture that the recording shows. A media section can carry several tracks one after another; each
 * begins with its first span. The first track begins with the capture, because its row is written a little later.
 * @param spans all spans of the room, the oldest first
 * @returns none if the recording shows none of its tracks. A capture of which no row names a track is one part.
 */
export function planParts(
  recording: Pick<RecordingToProcess, 'startedAt' | 'endedAt' | 'participantId' | 'audioOnly'>,
  { feedId, kind, section }: Pick<StoredCapture, 'feedId' | 'kind' | 'section'>,
  spans: readonly RecordingSpan[],
): PlannedPart[] {
  if (recording.audioOnly && kind === 'video') return [];
  const ofFeed = spans.filter((span) => span.feedId === feedId && span.kind === kind);
  // Browsers number the sections from 0. Other clients name them as they like, and rarely have two of a kind.
  const named = ofFeed.filter(({ mid }) => mid === String(section));
  const own = named.length > 0 ? named : ofFeed;
  const toMs = recording.endedAt.getTime() - recording.startedAt.getTime();
  if (own.length === 0 && recording.participantId === null) {
    return [{ track: { participantId: null, trackId: null, source: null }, fromMs: 0, toMs }];
  }
  const begins = own.filter((span, index) => index === 0 || span.trackId !== own[index - 1]?.trackId);
  const sinceBegin = (time: Date) => time.getTime() - recording.startedAt.getTime();
  return begins
    .map(({ participantId, trackId, source, startedAt }, index) => {
      const next = begins[index + 1];
      return {
        track: { participantId, trackId, source },
        fromMs: index === 0 ? 0 : Math.max(0, sinceBegin(startedAt)),
        toMs: next === undefined ? toMs : sinceBegin(next.startedAt),
      };
    })
    .filter(({ track }) => recording.participantId === null || track.participantId === recording.participantId);
}
