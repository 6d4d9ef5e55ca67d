import type { ParticipantMetadata } from '../metadata.js';
import type { QualityLevel, TrackKind, TrackReference, TrackSource } from '../protocol.generated.js';

/** Another participant in the room, as of one moment: a change makes another object. */
export interface Participant {
  readonly participantId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly externalId: string | null;
  /** The `role` of the token request, by default `participant`. It grants nothing. */
  readonly role: string;
  readonly metadata: ParticipantMetadata;
  readonly joinedAt: Date;
  /** False while its connection is lost and it may still reconnect. */
  readonly connected: boolean;
  /** How well it sends and receives, as its SDK measures it; undefined until it reports. */
  readonly connectionQuality: QualityLevel | undefined;
  /** Whether the gateway reports the participant among those who speak. */
  readonly isSpeaking: boolean;
  /** By track id. */
  readonly tracks: ReadonlyMap<string, RemoteTrack>;
  /**
   * @returns from 0 to 1: how loud the participant's microphone is played at this moment; while it is not received, how
   *   loud the participant was when it began to speak.
   */
  readonly audioLevel: () => number;
}

/** How much of a track the network carries. `paused`: nothing, so that the audio stays clean. */
export type TrackQuality = 'full' | 'reduced' | 'paused';

/** A track that another participant publishes, as of one moment: a change makes another object. */
export interface RemoteTrack extends Readonly<TrackReference> {
  readonly kind: TrackKind;
  readonly source: TrackSource;
  /** Whether its publisher has muted it. */
  readonly muted: boolean;
  /** Present while the track is received. */
  readonly mediaStreamTrack: MediaStreamTrack | undefined;
  readonly quality: TrackQuality;
  /** Whether its frames cannot be decrypted. Nothing of it is played then. */
  readonly isUndecryptable: boolean;
  /** Whether an element plays it. */
  readonly isPlaying: boolean;
  /**
   * Plays the track in the element, or in a new `<audio>` or `<video>`. The element follows the track: media may come
   * later, and new media after a loss of the media server. The function stays the same while the track is published.
   * @returns the element, for the page to insert.
   */
  readonly attach: (element?: HTMLMediaElement) => HTMLMediaElement;
  /** @returns the elements that played the track, for the page to remove: all, or the given one. */
  readonly detach: (element?: HTMLMediaElement) => HTMLMediaElement[];
}

export interface QualityChange {
  /** Undefined if the level is your own. */
  participant: Participant | undefined;
  participantId: string;
  /** `lost`: no media passes at present. */
  level: QualityLevel;
}
