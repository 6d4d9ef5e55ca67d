import { Playback } from '../playback/playback.js';
import type { ReceivedTrack } from '../peers/subscriber.js';
import type * as protocol from '../protocol.generated.js';
import { referenceTo, type Participant, type QualityChange, type RemoteTrack } from './participant.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type OwnTrack = Mutable<RemoteTrack>;
type OwnParticipant = Mutable<Omit<Participant, 'tracks' | 'audioLevel'>> & {
  readonly audioLevel: number;
  tracks: Map<string, OwnTrack>;
};

export interface RosterEvents {
  /** A participant has joined. */
  participantJoined: Participant;
  /** Metadata, name or `connected` has changed. */
  participantUpdated: Participant;
  participantLeft: Participant;
  /** Only in a paged room: the participant is still there, but its changes are no longer reported. */
  participantHidden: Participant;
  trackPublished: RemoteTrack;
  trackUnpublished: RemoteTrack;
  /** Muted or unmuted. */
  trackUpdated: RemoteTrack;
  /** The track is received from now on and has a `mediaStreamTrack`. */
  trackSubscribed: RemoteTrack;
  /** The track is no longer received. */
  trackUnsubscribed: RemoteTrack;
  /** Those who speak at this moment, the loudest first. */
  activeSpeakersChanged: Participant[];
  /** How well you, or another participant, send and receive: `good`, `fair`, `poor` or `lost`. */
  connectionQuality: QualityChange;
}

type Emit = <Name extends keyof RosterEvents>(name: Name, event: RosterEvents[Name]) => void;

/** Called when a track is no longer listed: its participant no longer publishes it, has left, or is no longer shown. */
type OnTrackGone = (track: protocol.TrackReference, why: 'unpublished' | 'left' | 'hidden') => void;

/** The other participants and their tracks, as the gateway reports them; in a paged room those that are shown. */
export class Roster {
  readonly #participants = new Map<string, OwnParticipant>();
  readonly #emit: Emit;
  readonly #onTrackGone: OnTrackGone;
  readonly #playback: Playback;
  #received: ReceivedTrack[] = [];
  /** The levels of those who speak, by participant id, the loudest first. */
  #levels = new Map<string, number>();

  constructor(emit: Emit, onTrackGone: OnTrackGone = () => undefined, playback = new Playback()) {
    this.#emit = emit;
    this.#onTrackGone = onTrackGone;
    this.#playback = playback;
  }

  get participants(): ReadonlyMap<string, Participant> {
    return this.#participants;
  }

  get activeSpeakers(): Participant[] {
    return [...this.#levels.keys()].flatMap((id) => this.#participants.get(id) ?? []);
  }

  speak(speakers: protocol.SpeakersMessage['speakers']): void {
    this.#levels = new Map(speakers.map(({ participantId, level }) => [participantId, level]));
    for (const one of this.#participants.values()) one.isSpeaking = this.#levels.has(one.participantId);
    this.#emit('activeSpeakersChanged', this.activeSpeakers);
  }

  rate(reports: protocol.QualityMessage['participants']): void {
    for (const { participantId, level } of reports) {
      const participant = this.#participants.get(participantId);
      if (participant === undefined || participant.connectionQuality === level) continue;
      participant.connectionQuality = level;
      this.#emit('connectionQuality', { participant, participantId, level });
    }
  }

  replace(all: protocol.RemoteParticipant[]): void {
    const present = new Set(all.map(({ participantId }) => participantId));
    for (const { participantId, sessionId } of [...this.#participants.values()]) {
      if (!present.has(participantId)) this.remove(participantId, sessionId, 'left');
    }
    for (const one of all) this.upsert(one);
  }

  apply(change: protocol.Change): void {
    switch (change.kind) {
      case 'participant':
        this.upsert(change.participant);
        break;
      case 'tracks': {
        const known = this.#participants.get(change.participantId);
        if (known?.sessionId === change.sessionId) this.#align(known, change.tracks);
        break;
      }
      case 'left':
      case 'hidden':
        this.remove(change.participantId, change.sessionId, change.kind);
        break;
      default:
      // Of a later version of the protocol.
    }
  }

  upsert(current: protocol.RemoteParticipant): void {
    const known = this.#participants.get(current.participantId);
    if (known?.sessionId !== current.sessionId) {
      if (known !== undefined) this.remove(current.participantId, known.sessionId, 'left');
      this.#join(current);
      return;
    }
    this.#align(known, current.tracks);
    const { connected, metadata, name } = current;
    const isSame =
      known.connected === connected &&
      known.name === name &&
      JSON.stringify(known.metadata) === JSON.stringify(metadata);
    if (isSame) return;
    Object.assign(known, { connected, metadata, name });
    this.#emit('participantUpdated', known);
  }

  /**
   * Ignores a session other than the known one, which has already been replaced. A hidden participant stays in the room,
   * and its media may still arrive: it is there when the participant is shown again.
   */
  remove(participantId: string, sessionId: string, why: 'left' | 'hidden'): void {
    const known = this.#participants.get(participantId);
    if (known?.sessionId !== sessionId) return;
    for (const track of [...known.tracks.values()]) this.#unpublish(track, why);
    this.#participants.delete(participantId);
    this.#emit(why === 'left' ? 'participantLeft' : 'participantHidden', known);
  }

  #align(participant: OwnParticipant, tracks: protocol.Track[]): void {
    const trackIds = new Set(tracks.map(({ trackId }) => trackId));
    for (const track of [...participant.tracks.values()]) {
      if (!trackIds.has(track.trackId)) this.#unpublish(track, 'unpublished');
    }
    for (const track of tracks) this.#publish(participant, track);
  }

  #publish(participant: OwnParticipant, current: protocol.Track): void {
    const known = participant.tracks.get(current.trackId);
    if (known === undefined) {
      const track: OwnTrack = {
        participant,
        ...current,
        mediaStreamTrack: undefined,
        attach: (element) => this.#playback.attach(track, element),
        detach: (element) => this.#playback.detach(track, element),
      };
      participant.tracks.set(current.trackId, track);
      this.#emit('trackPublished', track);
      this.#deliver(track);
    } else if (known.muted !== current.muted) {
      known.muted = current.muted;
      this.#emit('trackUpdated', known);
    }
  }

  #unpublish(track: OwnTrack, why: 'unpublished' | 'left' | 'hidden'): void {
    // If the track is published again under the same id, a new offer brings its media.
    if (why !== 'hidden') this.#received = this.#received.filter((one) => !isSame(one, track));
    this.#setMedia(track, undefined);
    this.#participants.get(track.participant.participantId)?.tracks.delete(track.trackId);
    this.#emit('trackUnpublished', track);
    this.#playback.detach(track);
    this.#onTrackGone(referenceTo(track), why);
  }

  receive(received: ReceivedTrack[]): void {
    this.#received = received;
    const tracks = [...this.#participants.values()].flatMap((one) => [...one.tracks.values()]);
    // A media section that carries another track ends the earlier one first.
    for (const track of tracks) {
      if (track.mediaStreamTrack !== this.#mediaOf(track)?.mediaStreamTrack) this.#setMedia(track, undefined);
    }
    for (const track of tracks) this.#deliver(track);
  }

  #join(current: protocol.RemoteParticipant): void {
    const { tracks, joinedAt, ...rest } = current;
    const levelOf = (one: OwnParticipant) => this.#levelOf(one);
    const participant: OwnParticipant = {
      ...rest,
      joinedAt: new Date(joinedAt),
      isSpeaking: this.#levels.has(current.participantId),
      get audioLevel() {
        return levelOf(this);
      },
      connectionQuality: undefined,
      tracks: new Map(),
    };
    this.#participants.set(current.participantId, participant);
    this.#emit('participantJoined', participant);
    for (const track of tracks) this.#publish(participant, track);
  }

  #levelOf(participant: OwnParticipant): number {
    const microphone = [...participant.tracks.values()].find(({ source }) => source === 'microphone');
    const received = microphone === undefined ? undefined : this.#mediaOf(microphone);
    return received?.audioLevel() ?? this.#levels.get(participant.participantId) ?? 0;
  }

  #mediaOf(track: OwnTrack): ReceivedTrack | undefined {
    return this.#received.find((one) => isSame(one, track));
  }

  #deliver(track: OwnTrack): void {
    this.#setMedia(track, this.#mediaOf(track)?.mediaStreamTrack);
  }

  #setMedia(track: OwnTrack, media: MediaStreamTrack | undefined): void {
    if (track.mediaStreamTrack === media) return;
    if (track.mediaStreamTrack !== undefined) {
      track.mediaStreamTrack = undefined;
      this.#playback.update(track);
      this.#emit('trackUnsubscribed', track);
    }
    if (media === undefined) return;
    track.mediaStreamTrack = media;
    this.#playback.update(track);
    this.#emit('trackSubscribed', track);
  }
}

function isSame(received: ReceivedTrack, { participant, trackId }: OwnTrack): boolean {
  return received.participantId === participant.participantId && received.trackId === trackId;
}
