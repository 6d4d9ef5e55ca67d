import type { ReceivedTrack } from '../peers/subscriber.js';
import type * as protocol from '../protocol.generated.js';
import type { Participant, RemoteTrack } from './participant.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type OwnTrack = Mutable<RemoteTrack>;
type OwnParticipant = Mutable<Omit<Participant, 'tracks'>> & { tracks: Map<string, OwnTrack> };

export interface RosterEvents {
  /** Somebody has joined. */
  participantJoined: Participant;
  /** Metadata or `connected` has changed. */
  participantUpdated: Participant;
  participantLeft: Participant;
  trackPublished: RemoteTrack;
  trackUnpublished: RemoteTrack;
  /** Muted or unmuted. */
  trackUpdated: RemoteTrack;
  /** Is received from now on: `mediaStreamTrack` is there. */
  trackSubscribed: RemoteTrack;
  /** Is received no more. */
  trackUnsubscribed: RemoteTrack;
}

type Emit = <Name extends keyof RosterEvents>(name: Name, event: RosterEvents[Name]) => void;

/** Who else is in the room and what they publish, as the gateway tells it. */
export class Roster {
  readonly #participants = new Map<string, OwnParticipant>();
  readonly #emit: Emit;
  #received: ReceivedTrack[] = [];

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  get participants(): ReadonlyMap<string, Participant> {
    return this.#participants;
  }

  /** The whole truth, at a welcome: tells the difference to what was known. */
  replace(all: protocol.RemoteParticipant[]): void {
    const present = new Set(all.map(({ participantId }) => participantId));
    for (const { participantId, sessionId } of [...this.#participants.values()]) {
      if (!present.has(participantId)) this.left(participantId, sessionId);
    }
    for (const one of all) this.upsert(one);
  }

  /** One that joined, or anything about it that has changed. */
  upsert(told: protocol.RemoteParticipant): void {
    const known = this.#participants.get(told.participantId);
    if (known !== undefined && known.sessionId !== told.sessionId) this.left(told.participantId, known.sessionId);
    if (known?.sessionId !== told.sessionId) {
      this.#join(told);
      return;
    }
    const trackIds = new Set(told.tracks.map(({ trackId }) => trackId));
    for (const trackId of [...known.tracks.keys()]) {
      if (!trackIds.has(trackId)) this.unpublished(told.participantId, trackId);
    }
    for (const track of told.tracks) this.published(told.participantId, track);
    const { connected, metadata, name } = told;
    const isSame =
      known.connected === connected &&
      known.name === name &&
      JSON.stringify(known.metadata) === JSON.stringify(metadata);
    if (isSame) return;
    Object.assign(known, { connected, metadata, name });
    this.#emit('participantUpdated', known);
  }

  /** Nothing, when it is another session than the one that is known: that one has been replaced already. */
  left(participantId: string, sessionId: string): void {
    const known = this.#participants.get(participantId);
    if (known?.sessionId !== sessionId) return;
    for (const trackId of [...known.tracks.keys()]) this.unpublished(participantId, trackId);
    this.#participants.delete(participantId);
    this.#emit('participantLeft', known);
  }

  /** A new track, or a change of one that is known. */
  published(participantId: string, told: protocol.Track): void {
    const participant = this.#participants.get(participantId);
    if (participant === undefined) return;
    const known = participant.tracks.get(told.trackId);
    if (known === undefined) {
      const track: OwnTrack = { participant, ...told, mediaStreamTrack: undefined };
      participant.tracks.set(told.trackId, track);
      this.#emit('trackPublished', track);
      this.#deliver(track);
    } else if (known.muted !== told.muted) {
      known.muted = told.muted;
      this.#emit('trackUpdated', known);
    }
  }

  unpublished(participantId: string, trackId: string): void {
    const participant = this.#participants.get(participantId);
    const track = participant?.tracks.get(trackId);
    if (participant === undefined || track === undefined) return;
    // Published again under the same id it comes with an offer of its own.
    this.#received = this.#received.filter((one) => one.participantId !== participantId || one.trackId !== trackId);
    this.#setMedia(track, undefined);
    participant.tracks.delete(trackId);
    this.#emit('trackUnpublished', track);
  }

  /** All that is received from now on; may name tracks that are not known yet. */
  receive(received: ReceivedTrack[]): void {
    this.#received = received;
    for (const { tracks } of this.#participants.values()) {
      for (const track of tracks.values()) this.#deliver(track);
    }
  }

  #join(told: protocol.RemoteParticipant): void {
    const { tracks, joinedAt, ...rest } = told;
    const participant: OwnParticipant = { ...rest, joinedAt: new Date(joinedAt), tracks: new Map() };
    this.#participants.set(told.participantId, participant);
    this.#emit('participantJoined', participant);
    for (const track of tracks) this.published(told.participantId, track);
  }

  #deliver(track: OwnTrack): void {
    const found = this.#received.find(
      ({ participantId, trackId }) => participantId === track.participant.participantId && trackId === track.trackId,
    );
    this.#setMedia(track, found?.mediaStreamTrack);
  }

  #setMedia(track: OwnTrack, media: MediaStreamTrack | undefined): void {
    if (track.mediaStreamTrack === media) return;
    if (track.mediaStreamTrack !== undefined) {
      track.mediaStreamTrack = undefined;
      this.#emit('trackUnsubscribed', track);
    }
    if (media === undefined) return;
    track.mediaStreamTrack = media;
    this.#emit('trackSubscribed', track);
  }
}
