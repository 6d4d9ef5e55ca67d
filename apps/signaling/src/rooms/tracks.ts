import type { TrackState } from '@callplane/db';
import { PROTOCOL_LIMITS, type TrackKind, type TrackReference, type TrackSource } from '@callplane/protocol';
import { subjectOf, type RoomChange, type SessionEntry } from './changes.js';
import { SortedIds, type RoomState } from './state.js';

export interface IndexedTrack {
  readonly participantId: string;
  readonly trackId: string;
  readonly kind: TrackKind;
  readonly source: TrackSource;
  /** Its location on the media server. */
  readonly feedId: string;
  readonly mid: string;
  readonly extensionId?: number | undefined;
}

export function trackKey({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}

export function trackOf(key: string): TrackReference {
  const at = key.indexOf('/');
  return { participantId: key.slice(0, at), trackId: key.slice(at + 1) };
}

/** The published tracks of a room with their locations on the media server. */
export class TrackIndex {
  /** Grows when a track is added, removed or relocated. A mute does not change it. */
  version = 0;
  muteVersion = 0;
  /** The session ids of the publishers, in order. */
  readonly publishers = new SortedIds();
  /** Null after a change, until it is read. */
  #derived: { entries: ReadonlyMap<string, IndexedTrack>; streams: Set<string>; hasVideo: boolean } | null = null;

  constructor(private readonly state: RoomState) {}

  /** By {@link trackKey}, in order of session id. The map is replaced when the version grows. */
  get entries(): ReadonlyMap<string, IndexedTrack> {
    return this.#all.entries;
  }

  get hasVideo(): boolean {
    return this.#all.hasVideo;
  }

  hasStream(stream: Pick<IndexedTrack, 'feedId' | 'mid'>): boolean {
    return this.#all.streams.has(streamName(stream));
  }

  of(participantId: string): IndexedTrack[] {
    return this.#tracksOf(this.state.entryOf(participantId));
  }

  has(participantId: string, trackId: string): boolean {
    return this.of(participantId).some((track) => track.trackId === trackId);
  }

  isMuted({ participantId, trackId }: TrackReference): boolean {
    const tracks = this.state.entryOf(participantId)?.state?.tracks;
    return tracks?.find((track) => track.trackId === trackId)?.muted === true;
  }

  /** Applies changes that the state of the room contains already. */
  apply(changes: readonly RoomChange[]): void {
    for (const change of changes) {
      const before = change.before?.state?.tracks ?? [];
      const after = change.after?.state?.tracks ?? [];
      if (after.length > 0) this.publishers.add(subjectOf(change).sessionId);
      else this.publishers.delete(subjectOf(change).sessionId);
      if (!sameLocations(before, after)) {
        this.version += 1;
        this.#derived = null;
      } else if (!sameMutes(before, after)) this.muteVersion += 1;
    }
  }

  get #all() {
    if (this.#derived === null) {
      const tracks = this.publishers.all.flatMap((id) => this.#tracksOf(this.state.entries.get(id)));
      this.#derived = {
        entries: new Map(tracks.map((track) => [trackKey(track), track])),
        streams: new Set(tracks.map(streamName)),
        hasVideo: tracks.some(({ kind }) => kind === 'video'),
      };
    }
    return this.#derived;
  }

  #tracksOf(entry: SessionEntry | undefined): IndexedTrack[] {
    const { participantId = '', state } = entry ?? {};
    return (state?.tracks ?? []).map(({ trackId, kind, source, feedId, mid, extensionId }) => {
      return { participantId, trackId, kind, source, feedId, mid, extensionId };
    });
  }
}

export function streamName({ feedId, mid }: Pick<IndexedTrack, 'feedId' | 'mid'>): string {
  return `${feedId}/${mid}`;
}

function sameLocations(before: readonly TrackState[], after: readonly TrackState[]): boolean {
  const isSame = (track: TrackState, other: TrackState | undefined) =>
    track.trackId === other?.trackId && track.feedId === other.feedId && track.mid === other.mid;
  return before.length === after.length && before.every((track, at) => isSame(track, after[at]));
}

function sameMutes(before: readonly TrackState[], after: readonly TrackState[]): boolean {
  return before.every(({ muted }, at) => muted === after[at]?.muted);
}

interface Speech {
  readonly version: number;
  /** The level of a track that carries speech, in dBov without the sign. */
  levelOf(trackKey: string): number | undefined;
  lastMs(trackKey: string): number;
}

/** How much louder a newcomer must be than a track that is heard already, in dB, if more tracks carry speech than can be heard. */
const LOUDER_DB = 6;

/**
 * The tracks of a room in the order in which receivers get them if there are more than a connection carries. It changes
 * with the speakers only in such rooms.
 */
export class TrackOrder {
  #basis = '';
  #version = 0;
  #audio: readonly IndexedTrack[] = [];
  #video: readonly IndexedTrack[] = [];

  constructor(
    private readonly index: TrackIndex,
    private readonly speakers: Speech,
  ) {}

  /** Grows when the order has changed. */
  get version(): number {
    this.#update();
    return this.#version;
  }

  /** Tracks that carry speech, then tracks that carried speech last, then by session. */
  get audio(): readonly IndexedTrack[] {
    this.#update();
    return this.#audio;
  }

  /** Screens, cameras of speakers, other cameras by session, and muted ones. */
  get video(): readonly IndexedTrack[] {
    this.#update();
    return this.#video;
  }

  #update(): void {
    const basis = `${this.index.version} ${this.index.muteVersion} ${this.speakers.version}`;
    if (basis === this.#basis) return;
    this.#basis = basis;
    const tracks = [...this.index.entries.values()];
    const audio = tracks.filter(({ kind }) => kind === 'audio');
    const video = tracks.filter(({ kind }) => kind === 'video');
    const isAudioCrowded = audio.length > PROTOCOL_LIMITS.audioSectionsMax;
    const isVideoCrowded = video.length > PROTOCOL_LIMITS.videoSectionsMax;
    const orderedAudio = isAudioCrowded ? this.#byLoudness(audio) : audio;
    const orderedVideo = isVideoCrowded ? this.#byInterest(video, audio) : video;
    if (isSame(this.#audio, orderedAudio) && isSame(this.#video, orderedVideo)) return;
    this.#audio = orderedAudio;
    this.#video = orderedVideo;
    this.#version += 1;
  }

  #byLoudness(audio: readonly IndexedTrack[]): IndexedTrack[] {
    const heard = new Set(this.#audio.slice(0, PROTOCOL_LIMITS.audioSectionsMax).map(trackKey));
    const rank = (track: IndexedTrack) => {
      const key = trackKey(track);
      const level = this.index.isMuted(track) ? undefined : this.speakers.levelOf(key);
      return {
        track,
        level: level === undefined ? Infinity : level - (heard.has(key) ? LOUDER_DB : 0),
        lastMs: this.speakers.lastMs(key),
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
      const key = trackKey(track);
      const lastMs = this.speakers.levelOf(key) === undefined ? this.speakers.lastMs(key) : Infinity;
      spokenMs.set(track.participantId, Math.max(lastMs, spokenMs.get(track.participantId) ?? -Infinity));
    }
    const rank = (track: IndexedTrack) => ({
      track,
      group: this.index.isMuted(track) ? 2 : track.source === 'screen' ? 0 : 1,
      spokenMs: spokenMs.get(track.participantId) ?? -Infinity,
    });
    return video
      .map(rank)
      .sort((a, b) => a.group - b.group || compare(b.spokenMs, a.spokenMs))
      .map(({ track }) => track);
  }
}

function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function isSame(a: readonly IndexedTrack[], b: readonly IndexedTrack[]): boolean {
  return a.length === b.length && a.every((track, at) => track === b[at]);
}
