import { kept, keptJson } from '../kept.js';
import type { ReceivedTrack } from '../peers/subscriber.js';
import type { Playback } from '../playback/playback.js';
import type * as protocol from '../protocol.generated.js';
import { keyOf } from '../subscriptions.js';
import type { Participant, QualityChange, RemoteTrack } from './participant.js';

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
  /** Because of the network, a video is received in full, in a lower quality (`reduced`), or not now (`paused`). */
  trackQuality: RemoteTrack;
  /** Those who speak at this moment, the loudest first. */
  activeSpeakersChanged: Participant[];
  /** How well you, or another participant, send and receive: `good`, `fair`, `poor` or `lost`. */
  connectionQuality: QualityChange;
}

/** Why a track is no longer listed: its participant no longer publishes it, has left, or is no longer shown. */
export type TrackGone = 'unpublished' | 'left' | 'hidden';

export interface RosterContext {
  emit: <Name extends keyof RosterEvents>(name: Name, event: RosterEvents[Name]) => void;
  onTrackGone: (track: protocol.TrackReference, why: TrackGone) => void;
  playback: Pick<Playback, 'open' | 'setMedia' | 'end'>;
}

/**
 * The other participants and their tracks, as the gateway reports them; in a paged room those that are shown. Each
 * participant, and each of its tracks, is an immutable object. Events tell the difference between two of them.
 */
export class Roster {
  /** By participant id, the viewers counted. */
  #participants = new Map<string, Participant>();
  /** Somebody has read the map, which must not change from then on. */
  #isShared = false;
  viewerCount = 0;
  #received = new Map<string, ReceivedTrack>();
  /** The levels of those who speak, by participant id, the loudest first. */
  #levels = new Map<string, number>();

  constructor(private readonly context: RosterContext) {}

  /** The same map until a participant changes. */
  get participants(): ReadonlyMap<string, Participant> {
    this.#isShared = true;
    return this.#participants;
  }

  get activeSpeakers(): Participant[] {
    return [...this.#levels.keys()].flatMap((id) => this.#participants.get(id) ?? []);
  }

  speak(speakers: protocol.SpeakersMessage['speakers']): void {
    const before = this.#levels;
    this.#levels = new Map(speakers.map(({ participantId, level }) => [participantId, level]));
    for (const id of [...before.keys(), ...this.#levels.keys()]) this.#change(id, { isSpeaking: this.#levels.has(id) });
    this.context.emit('activeSpeakersChanged', this.activeSpeakers);
  }

  rate(reports: protocol.QualityMessage['participants']): void {
    for (const { participantId, level } of reports) this.#change(participantId, { connectionQuality: level });
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
        const { participantId, sessionId, tracks } = change;
        const known = this.#participants.get(participantId);
        if (known?.sessionId === sessionId) this.#change(participantId, { tracks: this.#tracksOf(known, tracks) });
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

  upsert(participant: protocol.RemoteParticipant): void {
    const { participantId, sessionId, joinedAt, metadata, tracks, role = 'participant', ...current } = participant;
    const known = this.#participants.get(participantId);
    const isNew = known?.sessionId !== sessionId;
    if (known !== undefined && isNew) this.remove(participantId, known.sessionId, 'left');
    const before: Participant | undefined = isNew ? undefined : known;
    const fresh = {
      participantId,
      sessionId,
      joinedAt: new Date(joinedAt),
      isSpeaking: this.#levels.has(participantId),
      connectionQuality: undefined,
      audioLevel: () => this.#levelOf(participantId),
    };
    this.#set(participantId, before, {
      ...(before ?? fresh),
      ...current,
      role,
      metadata: keptJson(before?.metadata, metadata),
      tracks: this.#tracksOf({ participantId, tracks: before?.tracks }, tracks),
    });
  }

  /**
   * Ignores a session other than the known one, which has already been replaced. A hidden participant stays in the room,
   * and its media may still arrive: it is there when the participant is shown again.
   */
  remove(participantId: string, sessionId: string, why: 'left' | 'hidden'): void {
    const known = this.#participants.get(participantId);
    if (known?.sessionId === sessionId) this.#set(participantId, known, undefined, why);
  }

  receive(received: ReceivedTrack[]): void {
    this.#received = new Map(received.map((one) => [keyOf(one), one]));
    const changed = [...this.#participants.values()]
      .flatMap(({ tracks }) => [...tracks.values()])
      .filter((track) => track.mediaStreamTrack !== this.#mediaOf(track));
    // A media section that carries another track ends the earlier one first.
    for (const track of changed) this.changeTrack(track, { mediaStreamTrack: undefined });
    for (const track of changed) this.changeTrack(track, { mediaStreamTrack: this.#mediaOf(track) });
  }

  /** Changes nothing if the track is no longer listed. */
  changeTrack({ participantId, trackId }: protocol.TrackReference, change: Partial<RemoteTrack>): void {
    const tracks = this.#participants.get(participantId)?.tracks;
    const before = tracks?.get(trackId);
    if (before === undefined) return;
    const after = kept(before, { ...before, ...change });
    if (after !== before) this.#change(participantId, { tracks: new Map(tracks).set(trackId, after) });
  }

  #change(participantId: string, change: Partial<Participant>): void {
    const before = this.#participants.get(participantId);
    if (before !== undefined) this.#set(participantId, before, { ...before, ...change });
  }

  #tracksOf(
    {
      participantId,
      tracks: before,
    }: Pick<Participant, 'participantId'> & { tracks: Participant['tracks'] | undefined },
    tracks: protocol.Track[],
  ): Participant['tracks'] {
    const after = tracks.map(({ trackId, muted, ...track }): [string, RemoteTrack] => {
      const known = before?.get(trackId);
      if (known !== undefined) return [trackId, kept(known, { ...known, muted })];
      const reference = { participantId, trackId };
      const { attach, detach } = this.context.playback.open(reference, track.kind);
      const mediaStreamTrack = this.#mediaOf(reference);
      const fresh = {
        mediaStreamTrack,
        quality: 'full' as const,
        isPlaying: false,
        isUndecryptable: false,
        attach,
        detach,
      };
      return [trackId, { ...reference, ...track, muted, ...fresh }];
    });
    return kept(before, new Map(after));
  }

  #set(participantId: string, before: Participant | undefined, now: Participant | undefined, why?: TrackGone): void {
    const after = now === undefined ? undefined : kept(before, now);
    if (after === before) return;
    if (this.#isShared) this.#participants = new Map(this.#participants);
    this.#isShared = false;
    if (after === undefined) this.#participants.delete(participantId);
    else this.#participants.set(participantId, after);
    this.viewerCount += viewersIn(after) - viewersIn(before);
    this.#report(before, after, why);
  }

  /** Emits the differences. */
  #report(before: Participant | undefined, after: Participant | undefined, why: TrackGone = 'unpublished'): void {
    const { emit } = this.context;
    if (before === undefined && after !== undefined) emit('participantJoined', after);
    for (const track of before?.tracks.values() ?? []) {
      if (after?.tracks.has(track.trackId) !== true) this.#unpublished(track, why);
    }
    for (const track of after?.tracks.values() ?? []) this.#reportTrack(before?.tracks.get(track.trackId), track);
    if (before === undefined) return;
    if (after === undefined) {
      emit(why === 'left' ? 'participantLeft' : 'participantHidden', before);
      return;
    }
    const { participantId, connected, name, metadata, connectionQuality: level } = after;
    if (connected !== before.connected || name !== before.name || metadata !== before.metadata)
      emit('participantUpdated', after);
    if (level !== before.connectionQuality && level !== undefined)
      emit('connectionQuality', { participant: after, participantId, level });
  }

  #reportTrack(before: RemoteTrack | undefined, after: RemoteTrack): void {
    const { emit } = this.context;
    if (before === undefined) emit('trackPublished', after);
    else {
      if (before.muted !== after.muted) emit('trackUpdated', after);
      if (before.quality !== after.quality) emit('trackQuality', after);
    }
    if (before?.mediaStreamTrack === after.mediaStreamTrack) return;
    this.context.playback.setMedia(after, after.mediaStreamTrack);
    emit(after.mediaStreamTrack === undefined ? 'trackUnsubscribed' : 'trackSubscribed', after);
  }

  #unpublished(before: RemoteTrack, why: TrackGone): void {
    const { emit, onTrackGone, playback } = this.context;
    const track = { ...before, mediaStreamTrack: undefined };
    // If the track is published again under the same id, a new offer brings its media.
    if (why !== 'hidden') this.#received.delete(keyOf(track));
    playback.setMedia(track, undefined);
    if (before.mediaStreamTrack !== undefined) emit('trackUnsubscribed', track);
    emit('trackUnpublished', track);
    playback.end(track);
    onTrackGone(track, why);
  }

  #levelOf(participantId: string): number {
    const tracks = this.#participants.get(participantId)?.tracks.values() ?? [];
    const microphone = [...tracks].find(({ source }) => source === 'microphone');
    const received = microphone === undefined ? undefined : this.#received.get(keyOf(microphone));
    return received?.audioLevel() ?? this.#levels.get(participantId) ?? 0;
  }

  #mediaOf(track: protocol.TrackReference): MediaStreamTrack | undefined {
    return this.#received.get(keyOf(track))?.mediaStreamTrack;
  }
}

function viewersIn(participant: Participant | undefined): number {
  return participant?.tracks.size === 0 && isEmpty(participant.metadata) ? 1 : 0;
}

export function isEmpty(metadata: object): boolean {
  return Object.keys(metadata).length === 0;
}
