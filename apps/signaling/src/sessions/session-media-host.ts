import type { Clock, Permission } from '@callplane/core';
import {
  publishTracks,
  unpublishAll,
  type Database,
  type RoomPlacement,
  type TracksOutcome,
  type TrackState,
} from '@callplane/db';
import type { ServerMessage } from '@callplane/protocol';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { MediaState } from '../media/handover/media-state.js';
import type { MediaStateWrites } from '../media/handover/media-state-writes.js';
import type { ClaimOutcome } from '../media/handover/media-state.js';
import type { MediaHost } from '../media/media-host.js';
import type { Rooms } from '../rooms/rooms.js';
import { trackKey, type TrackIndex } from '../rooms/tracks.js';
import type { TrackOrder } from '../rooms/tracks.js';
import type { Writes } from '../writes/writes.js';
import type { Session } from './session.js';

export interface MediaHostDeps {
  clock: Clock;
  database: Database;
  logger: Logger;
  mediaWrites: MediaStateWrites;
  metrics: {
    /** Counts media that another gateway has handed over, by outcome. */
    mediaClaim(outcome: ClaimOutcome): void;
  };
  producer: JobProducer;
  rooms: Rooms;
  writes: Writes;
}

/** Half a second of audio, and in rooms with many publishers longer. */
const AUDIO_ACTIVE_PACKETS_MIN = 25;
const AUDIO_ACTIVE_PACKETS_MAX = 250;
/** Publishers up to which half a second is enough. */
const TALKING_PUBLISHERS = 100;

/**
 * Audio packets whose average level decides whether a track carries speech. The media server tells every publisher of the room
 * when that changes for one of them, so the time between two changes grows with the number of publishers.
 */
function audioActivePacketsIn(publishers: number): number {
  const packets = Math.round((AUDIO_ACTIVE_PACKETS_MIN * publishers) / TALKING_PUBLISHERS);
  return Math.min(AUDIO_ACTIVE_PACKETS_MAX, Math.max(AUDIO_ACTIVE_PACKETS_MIN, packets));
}

/** What a session's media needs of the session and its room. */
export class SessionMediaHost implements MediaHost {
  readonly #deps: MediaHostDeps;
  readonly #session: Session;

  constructor(deps: MediaHostDeps, session: Session) {
    this.#deps = deps;
    this.#session = session;
  }

  get sessionId(): string {
    return this.#session.sessionId;
  }

  get participantId(): string {
    return this.#session.participantId;
  }

  get roomId(): string {
    return this.#session.roomId;
  }

  get permissions(): readonly Permission[] {
    return this.#session.permissions;
  }

  get connectionNumber(): number {
    return this.#session.connectionNumber;
  }

  get isConnected(): boolean {
    return this.#session.isConnected;
  }

  get autoSubscribe(): boolean {
    return this.#session.autoSubscribe;
  }

  get audioActivePackets(): number {
    return audioActivePacketsIn(this.#session.room.tracks.publishers.all.length);
  }

  get logger(): Logger {
    return this.#deps.logger;
  }

  send(message: ServerMessage): void {
    this.#session.send(message);
  }

  placement(): RoomPlacement | null {
    return this.#session.room.state;
  }

  storedTracks(): readonly TrackState[] {
    const own = this.#session.room.sessionOf(this.participantId);
    return own?.sessionId === this.sessionId ? own.tracks : [];
  }

  tracks(): TrackIndex {
    return this.#session.room.tracks;
  }

  order(): TrackOrder {
    return this.#session.room.order;
  }

  speaking(trackId: string, level: number | null): void {
    const { room, participantId } = this.#session;
    room.speakers.note(trackKey(participantId, trackId), level);
  }

  mediaChanged(): void {
    // A session that is gone here may be another gateway's by now.
    if (!this.#session.isGone) this.#deps.mediaWrites.changed(this.#session);
  }

  writeMedia(): Promise<boolean> {
    return this.#deps.mediaWrites.writeNow(this.#session);
  }

  claimed(outcome: ClaimOutcome): void {
    this.#deps.metrics.mediaClaim(outcome);
  }

  layersChanged(layers: ReadonlyMap<string, number>): void {
    if (!this.#session.isGone) this.#session.room.layers.note(this.sessionId, layers);
  }

  async publishTracks(tracks: TrackState[], media: MediaState | null): Promise<boolean> {
    const { clock, database, mediaWrites } = this.#deps;
    mediaWrites.overwritten(this.#session);
    try {
      return this.#wrote(await publishTracks(database, this.#session.held, tracks, clock.now(), media));
    } finally {
      mediaWrites.overwritten(this.#session);
    }
  }

  async unpublishAll(): Promise<void> {
    const { clock, database } = this.#deps;
    this.#wrote(await unpublishAll(database, this.#session.held, clock.now()));
  }

  setTrackMuted(trackId: string, muted: boolean): Promise<boolean> {
    const { held, roomId } = this.#session;
    return this.#deps.writes.mute(roomId, { held, trackId, muted });
  }

  async stillLive(): Promise<boolean> {
    const { room, roomId } = this.#session;
    await this.#deps.rooms.load(roomId);
    return !this.#session.isGone && room.departureOf(this.#session) === null;
  }

  /**
   * After a commit: wakes deliveries and notifies other instances, best effort. Sweeps and resyncs make up for a lost
   * notice.
   */
  #wrote({ written, deliveries }: TracksOutcome): boolean {
    if (!written) return false;
    void this.#deps.producer.wakeDeliveries(deliveries);
    void this.#deps.rooms.changed(this.#session.roomId);
    return true;
  }
}
