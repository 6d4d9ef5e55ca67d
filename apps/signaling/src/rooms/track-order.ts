import { PROTOCOL_LIMITS } from '@callplane/protocol';
import type { Speakers } from './speakers.js';
import { trackKey, type IndexedTrack, type TrackIndex } from './track-index.js';

/** How much louder a newcomer must be than a track that is heard already, in dB, if more tracks carry speech than can be heard. */
const LOUDER_DB = 6;

/**
 * The tracks of a room in the order in which receivers get them if there are more than a connection carries. It changes
 * with the speakers only in such rooms.
 */
export class TrackOrder {
  readonly #index: TrackIndex;
  readonly #speakers: Speakers;
  #basis = '';
  #version = 0;
  #audio: readonly IndexedTrack[] = [];
  #video: readonly IndexedTrack[] = [];
  #isCrowded = false;

  constructor(index: TrackIndex, speakers: Speakers) {
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
