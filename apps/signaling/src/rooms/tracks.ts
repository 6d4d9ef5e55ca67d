import type { SessionState } from '@callplane/db';
import { PROTOCOL_LIMITS, type TrackKind, type TrackReference, type TrackSource } from '@callplane/protocol';
import type { RoomChange } from './changes.js';
import { SortedIds } from './sorted-ids.js';

export interface IndexedTrack {
  readonly participantId: string;
  readonly trackId: string;
  readonly kind: TrackKind;
  readonly source: TrackSource;
  /** The media server that has it, and its location there. */
  readonly nodeId: string | null;
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
  readonly #nodeId: () => string | null;

  /** @param nodeId the media server of the room, which has all its tracks */
  constructor(nodeId: () => string | null = () => null) {
    this.#nodeId = nodeId;
  }

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
        for (const track of session === undefined ? [] : this.#located(session))
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
    return session === undefined ? [] : this.#located(session);
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
    this.moved();
  }

  /** The room has another media server. */
  moved(): void {
    this.version += 1;
    this.#entries = null;
    this.#hasVideo = null;
    this.#streams = null;
  }

  #located({ participant, tracks }: SessionState): IndexedTrack[] {
    const nodeId = this.#nodeId();
    return tracks.map(({ trackId, kind, source, feedId, mid }) => ({
      participantId: participant.id,
      trackId,
      kind,
      source,
      nodeId,
      feedId,
      mid,
    }));
  }
}

function streamName({ feedId, mid }: Pick<IndexedTrack, 'feedId' | 'mid'>): string {
  return `${feedId}/${mid}`;
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

/** Who speaks in a room. */
interface Speech {
  /** Grows when anything has changed. */
  readonly version: number;
  /** The level of a track that carries speech, in dBov without the sign. */
  levelOf(trackKey: string): number | undefined;
  /** When the track last carried speech; -Infinity if never. */
  lastMs(trackKey: string): number;
}

/** How much louder a newcomer must be than a track that is heard already, in dB, if more tracks carry speech than can be heard. */
const LOUDER_DB = 6;

/**
 * The tracks of a room in the order in which receivers get them if there are more than a connection carries. It changes
 * with the speakers only in such rooms.
 */
export class TrackOrder {
  readonly #index: TrackIndex;
  readonly #speakers: Speech;
  #basis = '';
  #version = 0;
  #audio: readonly IndexedTrack[] = [];
  #video: readonly IndexedTrack[] = [];
  #isCrowded = false;

  constructor(index: TrackIndex, speakers: Speech) {
    this.#index = index;
    this.#speakers = speakers;
  }

  /** Grows when the order has changed. */
  get version(): number {
    this.#update();
    return this.#version;
  }

  /** Tracks that carry speech, then those that carried speech last, then by session. */
  get audio(): readonly IndexedTrack[] {
    this.#update();
    return this.#audio;
  }

  /** Screens, cameras of speakers, other cameras by session, and muted ones. */
  get video(): readonly IndexedTrack[] {
    this.#update();
    return this.#video;
  }

  /** Whether the room has more tracks of a kind than a connection carries. */
  get isCrowded(): boolean {
    this.#update();
    return this.#isCrowded;
  }

  #update(): void {
    const basis = `${this.#index.version} ${this.#index.muteVersion} ${this.#speakers.version}`;
    if (basis === this.#basis) return;
    this.#basis = basis;
    const tracks = [...this.#index.entries.values()];
    const audio = tracks.filter(({ kind }) => kind === 'audio');
    const video = tracks.filter(({ kind }) => kind === 'video');
    const isAudioCrowded = audio.length > PROTOCOL_LIMITS.audioSectionsMax;
    const isVideoCrowded = video.length > PROTOCOL_LIMITS.videoSectionsMax;
    this.#isCrowded = isAudioCrowded || isVideoCrowded;
    const orderedAudio = isAudioCrowded ? this.#byLoudness(audio) : audio;
    const orderedVideo = isVideoCrowded ? this.#byInterest(video, audio) : video;
    if (isSame(this.#audio, orderedAudio) && isSame(this.#video, orderedVideo)) return;
    this.#audio = orderedAudio;
    this.#video = orderedVideo;
    this.#version += 1;
  }

  #byLoudness(audio: readonly IndexedTrack[]): IndexedTrack[] {
    const heard = new Set(this.#audio.slice(0, PROTOCOL_LIMITS.audioSectionsMax).map(keyOf));
    const rank = (track: IndexedTrack) => {
      const key = keyOf(track);
      const level = this.#index.isMuted(track) ? undefined : this.#speakers.levelOf(key);
      return {
        track,
        level: level === undefined ? Infinity : level - (heard.has(key) ? LOUDER_DB : 0),
        lastMs: this.#speakers.lastMs(key),
      };
    };
    // The sort is stable: tracks without any speech stay in order of session.
    return audio
      .map(rank)
      .sort((a, b) => compare(a.level, b.level) || compare(b.lastMs, a.lastMs))
      .map(({ track }) => track);
  }

  #byInterest(video: readonly IndexedTrack[], audio: readonly IndexedTrack[]): IndexedTrack[] {
    const spokenMs = new Map<string, number>();
    for (const track of audio) {
      if (track.source !== 'microphone') continue;
      const key = keyOf(track);
      const lastMs = this.#speakers.levelOf(key) === undefined ? this.#speakers.lastMs(key) : Infinity;
      spokenMs.set(track.participantId, Math.max(lastMs, spokenMs.get(track.participantId) ?? -Infinity));
    }
    const rank = (track: IndexedTrack) => ({
      track,
      group: this.#index.isMuted(track) ? 2 : track.source === 'screen' ? 0 : 1,
      spokenMs: spokenMs.get(track.participantId) ?? -Infinity,
    });
    return video
      .map(rank)
      .sort((a, b) => a.group - b.group || compare(b.spokenMs, a.spokenMs))
      .map(({ track }) => track);
  }
}

function keyOf({ participantId, trackId }: IndexedTrack): string {
  return trackKey(participantId, trackId);
}

function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function isSame(a: readonly IndexedTrack[], b: readonly IndexedTrack[]): boolean {
  return a.length === b.length && a.every((track, at) => track === b[at]);
}
