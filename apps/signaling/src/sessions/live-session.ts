import { issueTurnCredentials, presentRoom, type Permission, type Tenant } from '@callplane/core';
import {
  publishTracks,
  setTrackMuted,
  unpublishAll,
  type HeldSession,
  type RoomSnapshot,
  type TrackState,
  type WakeableDelivery,
} from '@callplane/db';
import type { ServerMessage, ServerMessages } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import type { Connection } from '../connections/connection.js';
import type { Deps } from '../deps.js';
import { SessionMedia, type MediaHost } from '../media/session-media.js';
import type { RoomMember, RoomView } from '../rooms/room-view.js';
import type { Rooms } from '../rooms/rooms.js';

export interface SessionFacts {
  sessionId: string;
  tenant: Tenant;
  roomId: string;
  participantId: string;
  permissions: readonly Permission[];
  connectionNumber: number;
  autoSubscribe: boolean;
}

type SessionDeps = Pick<
  Deps,
  'clock' | 'database' | 'logger' | 'places' | 'producer' | 'turn' | 'reconnectGraceSeconds' | 'pingIntervalSeconds'
>;

/** A session that this instance holds: with a connection, or in its grace period after it lost one. */
export class LiveSession implements RoomMember, MediaHost {
  readonly sessionId: string;
  readonly tenant: Tenant;
  readonly roomId: string;
  readonly participantId: string;
  readonly permissions: readonly Permission[];
  readonly view: RoomView;
  readonly media: SessionMedia;
  readonly #deps: SessionDeps;
  readonly #rooms: Rooms;
  connectionNumber: number;
  autoSubscribe: boolean;
  /** Gone from this instance, whatever became of it. */
  ended = false;
  graceTimer: NodeJS.Timeout | undefined;
  #connection: Connection | null = null;
  /** What comes before the welcome is part of it, and not said twice. */
  #welcomed = false;

  constructor(deps: SessionDeps, rooms: Rooms, view: RoomView, facts: SessionFacts) {
    this.#deps = deps;
    this.#rooms = rooms;
    this.view = view;
    this.sessionId = facts.sessionId;
    this.tenant = facts.tenant;
    this.roomId = facts.roomId;
    this.participantId = facts.participantId;
    this.permissions = facts.permissions;
    this.connectionNumber = facts.connectionNumber;
    this.autoSubscribe = facts.autoSubscribe;
    this.media = new SessionMedia(deps.places, this);
  }

  get logger(): Logger {
    return this.#deps.logger;
  }

  get connection(): Connection | null {
    return this.#connection;
  }

  get isConnected(): boolean {
    return this.#connection !== null && this.#welcomed;
  }

  /** Who may write: the connection that has the session. */
  get held(): HeldSession {
    return { sessionId: this.sessionId, connection: this.connectionNumber };
  }

  attach(connection: Connection): void {
    this.#connection = connection;
    this.#welcomed = false;
  }

  detach(): void {
    this.#connection = null;
    this.#welcomed = false;
    this.media.paused();
  }

  /** @returns false when the session is not in the room (any more). */
  welcome(how: {
    replyTo: string | undefined;
    resumed: boolean;
    resumeSecret: string;
    mediaContinued: boolean;
  }): boolean {
    const { snapshot } = this.view;
    const present = this.view.presentTo(this.sessionId);
    if (snapshot === null || present === null) return false;
    this.#connection?.sendBulk({
      type: 'welcome',
      ...(how.replyTo === undefined ? {} : { replyTo: how.replyTo }),
      resumed: how.resumed,
      sessionId: this.sessionId,
      resumeSecret: how.resumeSecret,
      reconnectGraceSeconds: this.#deps.reconnectGraceSeconds,
      room: presentRoom(snapshot.tenant, snapshot.room),
      ...present,
      permissions: [...this.permissions],
      ...this.iceServers(),
      media: { state: this.media.state, continued: how.mediaContinued },
      pingIntervalSeconds: this.#deps.pingIntervalSeconds,
    });
    this.#welcomed = true;
    return true;
  }

  iceServers(): Pick<ServerMessages['iceServers'], 'iceServers' | 'iceServersExpireAt'> {
    const issued = issueTurnCredentials(this.#deps.turn, this.sessionId, this.#deps.clock.now());
    return { iceServers: issued.iceServers, iceServersExpireAt: issued.expiresAt.toISOString() };
  }

  tellText(text: string): void {
    if (this.#welcomed) this.#connection?.sendText(text);
  }

  send(message: ServerMessage): void {
    if (this.#welcomed) this.#connection?.send(message);
  }

  onRoom(): void {
    if (!this.ended) this.media.follow();
  }

  snapshot(): RoomSnapshot | null {
    return this.view.snapshot;
  }

  async publishTracks(tracks: TrackState[]): Promise<boolean> {
    return this.#wrote(await publishTracks(this.#deps.database, this.held, tracks, this.#deps.clock.now()));
  }

  async unpublishAll(): Promise<void> {
    this.#wrote(await unpublishAll(this.#deps.database, this.held, this.#deps.clock.now()));
  }

  async setTrackMuted(trackId: string, muted: boolean): Promise<boolean> {
    return this.#wrote(await setTrackMuted(this.#deps.database, this.held, trackId, muted));
  }

  async stillLive(): Promise<boolean> {
    await this.#rooms.load(this.roomId);
    return !this.ended && this.view.sessionOf(this.participantId)?.sessionId === this.sessionId;
  }

  /**
   * After a commit: others are told, best effort; sweeps find what is not. A feed that takes another's place writes no
   * event, so the room's number would not show it.
   */
  #wrote({ written, deliveries }: { written: boolean; deliveries: WakeableDelivery[] }): boolean {
    if (!written) return false;
    void this.#deps.producer.wakeDeliveries(deliveries);
    void this.#rooms.changed(this.roomId, false);
    return true;
  }
}
