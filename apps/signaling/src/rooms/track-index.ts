import type { SessionState } from '@callplane/db';
import type { TrackKind, TrackReference, TrackSource } from '@callplane/protocol';
import type { RoomChange } from './room-change.js';
import { SortedIds } from './sorted-ids.js';

export interface IndexedTrack {
  readonly participantId: string;
  readonly trackId: string;
  readonly kind: TrackKind;
  readonly source: TrackSource;
  /** Location on the media server. */
  readonly feedId: string;
  readonly mid: string;
}

export function trackKey(participantId: string, trackId: string): string {
  return `${participantId}/${trackId}`;
}

/** The inverse of {@link trackKey}. */
export function trackOf(key: string): TrackReference {
  const at = key.indexOf('/');
  return { participantId: key.slice(0, at), trackId: key.slice(at + 1) };
}

/** The published tracks of a room with their locations on the media server. */
export class TrackIndex {
  /** Grows when a track is added, removed or relocated. A mute does not change it. */
  version = 0;
  /** Grows when a track is muted or unmuted. */
  muteVersion = 0;
  readonly #publishers = new SortedIds();
  readonly #sessions = new Map<string, SessionState>();
  readonly #ofParticipant = new Map<string, string>();
  #entries: Map<string, IndexedTrack> | null = null;
  #hasVideo: boolean | null = null;
  /** Names of the locations on the media server; null if the tracks have changed since. */
  #streams: Set<string> | null = null;

  /** The session ids of the publishers, in order. */
  get publishers(): SortedIds {
    return this.#publishers;
  }

  /** By {@link trackKey}, in order of session id. The map is replaced when the version grows. */
  get entries(): ReadonlyMap<string, IndexedTrack> {
    if (this.#entries === null) {
      this.#entries = new Map();
      for (const sessionId of this.#publishers.all) {
        const session = this.#sessions.get(sessionId);
        for (const track of session === undefined ? [] : located(session))
          this.#entries.set(trackKey(track.participantId, track.trackId), track);
      }
    }
    return this.#entries;
  }

  get hasVideo(): boolean {
    return (this.#hasVideo ??= [...this.entries.values()].some(({ kind }) => kind === 'video'));
  }

  /** Whether a published track is at this location on the media server. */
  hasStream(stream: Pick<IndexedTrack, 'feedId' | 'mid'>): boolean {
    this.#streams ??= new Set([...this.entries.values()].map(streamName));
    return this.#streams.has(streamName(stream));
  }

  /** The tracks of one participant. */
  of(participantId: string): IndexedTrack[] {
    const session = this.#sessions.get(this.#ofParticipant.get(participantId) ?? '');
    return session === undefined ? [] : located(session);
  }

  has(participantId: string, trackId: string): boolean {
    return this.of(participantId).some((track) => track.trackId === trackId);
  }

  isMuted({ participantId, trackId }: Pick<IndexedTrack, 'participantId' | 'trackId'>): boolean {
    const session = this.#sessions.get(this.#ofParticipant.get(participantId) ?? '');
    return session?.tracks.find((track) => track.trackId === trackId)?.muted === true;
  }

  /** Takes over changes. @returns whether the version has grown. */
  apply(changes: readonly RoomChange[]): boolean {
    const { version } = this;
    for (const { before, after } of changes) {
      const entry = after ?? before;
      if (entry !== null) this.#replace(entry.sessionId, entry.participantId, after?.state ?? null);
    }
    return this.version !== version;
  }

  #replace(sessionId: string, participantId: string, state: SessionState | null): void {
    const before = this.#sessions.get(sessionId);
    const after = state === null || state.tracks.length === 0 ? undefined : state;
    if (before === undefined && after === undefined) return;
    if (after === undefined) {
      this.#sessions.delete(sessionId);
      this.#publishers.delete(sessionId);
      if (this.#ofParticipant.get(participantId) === sessionId) this.#ofParticipant.delete(participantId);
    } else {
      this.#sessions.set(sessionId, after);
      this.#publishers.add(sessionId);
      this.#ofParticipant.set(participantId, sessionId);
    }
    if (before !== undefined && after !== undefined && sameLocations(before, after)) {
      if (!sameMutes(before, after)) this.muteVersion += 1;
      return;
    }
    this.version += 1;
    this.#entries = null;
    this.#hasVideo = null;
    this.#streams = null;
  }
}

function streamName({ feedId, mid }: Pick<IndexedTrack, 'feedId' | 'mid'>): string {
  return `${feedId}/${mid}`;
}

function located({ participant, tracks }: SessionState): IndexedTrack[] {
  return tracks.map(({ trackId, kind, source, feedId, mid }) => ({
    participantId: participant.id,
    trackId,
    kind,
    source,
    feedId,
    mid,
  }));
}

function sameLocations(before: SessionState, after: SessionState): boolean {
  return (
    before.tracks.length === after.tracks.length &&
    before.tracks.every((track, at) => {
      const other = after.tracks[at];
      return track.trackId === other?.trackId && track.feedId === other.feedId && track.mid === other.mid;
    })
  );
}

function sameMutes(before: SessionState, after: SessionState): boolean {
  return before.tracks.every(({ muted }, at) => muted === after.tracks[at]?.muted);
}
