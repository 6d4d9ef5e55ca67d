import type { Clock, Permission } from '@callplane/core';
import { publishTracks, type Database, type HeldSession, type TracksOutcome, type TrackState } from '@callplane/db';
import type { Layer, ServerMessage } from '@callplane/protocol';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import pLimit from 'p-limit';
import type { SignalingMetrics } from '../metrics.js';
import type { RoomMember } from '../rooms/changes.js';
import type { Room } from '../rooms/room.js';
import type { Rooms } from '../rooms/rooms.js';
import type { Writes } from '../writes/writes.js';
import type { Forwards } from './forwards.js';
import type { MediaPlaces } from './places.js';
import type { DeclaredTrack } from './sdp-gate.js';

export interface Choice {
  /** False: the client declined it. */
  selected: boolean;
  layer: Layer | undefined;
  paused: boolean;
}

/**
 * Where a session's media is, as `participant_sessions.media` holds it. With it, another gateway takes over the peer
 * connections while media flows. A half that is negotiating is null. The tracks themselves are in `session_tracks`; the
 * media server tells which stream each section carries.
 */
export interface MediaRecord {
  /** Number of the session's connection whose gateway wrote this. Another gateway in between leaves it outdated. */
  connection: number;
  nodeId: string;
  generation: number;
  /** Id of the session on the media server that holds both handles. */
  janusSession: number;
  publisher: PublisherRecord | null;
  subscriber: SubscriberRecord | null;
  /** The client's choices, by track key. They hold even if the subscriber starts anew. */
  choices: readonly (readonly [string, Choice])[];
  /** Absent if the client's token names none. */
  region?: string;
  /** Only of clients that keep no connection. Null before the answer to the first offer. */
  whip?: WhipRecord | null;
}

/** The facts for a request of a client that keeps no connection, whichever gateway holds the session. */
export interface WhipRecord {
  handle: number;
  /** The last offer, as the gate has written it: the client restarts ICE with new credentials alone. */
  offer: string;
  tracks: readonly DeclaredTrack[];
  /** Whether no packet arrived when this was written. The media server reports that once, to one gateway. */
  isSilent?: boolean;
}

export interface PublisherRecord {
  handle: number;
  /** Never reused: a subscription to a feed id refers to one handle and no later one. */
  feedId: string;
  /** Identifies the client's RTCPeerConnection; see `CheckedOffer`. */
  peerConnection: string;
}

export interface SubscriberRecord {
  handle: number;
  offerId: number;
}

/** How long changes of records wait, so that one statement writes the records of many sessions. */
const WITHIN_MS = 250;
const AGAIN_MS = 1000;
const SESSIONS_PER_WRITE_MAX = 500;

/** A session whose media another gateway may take over. */
export interface RecordedSession {
  /** Fencing token of the session's writes. */
  readonly held: HeldSession;
  readonly roomId: string;
  /** Whether this gateway has let go of the session. Its media may be another gateway's then, so nothing is written. */
  readonly isGone: boolean;
  readonly media: { readonly record: MediaRecord | null };
}

export interface MediaOwner extends RoomMember, RecordedSession {
  readonly room: Room;
  readonly media: RoomMember['media'] & RecordedSession['media'];
  readonly permissions: readonly Permission[];
  /** Whether the session has a connection that got its welcome. */
  readonly isConnected: boolean;
  readonly autoSubscribe: boolean;
  readonly isHeadless?: boolean;
  send(message: ServerMessage): void;
}

/** Shared by the media of all sessions of a gateway. */
export interface MediaDeps {
  logger: Logger;
  places: MediaPlaces;
  rooms: Pick<Rooms, 'load'>;
  writes: MediaWrites;
  forwards: Forwards;
  metrics: Pick<SignalingMetrics, 'mediaClaim'>;
}

export function storedTracks({ room, participantId, sessionId }: MediaOwner): readonly TrackState[] {
  const own = room.sessionOf(participantId);
  return own?.sessionId === sessionId ? own.tracks : [];
}

/** Reads the room again. Returns whether this gateway still holds the session afterwards. */
export async function isStillLive({ rooms }: MediaDeps, session: MediaOwner): Promise<boolean> {
  await rooms.load(session.roomId);
  return !session.isGone && session.room.departureOf(session) === null;
}

export interface MediaWritesDeps {
  clock: Clock;
  database: Database;
  logger: Logger;
  producer: JobProducer;
  rooms: Pick<Rooms, 'changed'>;
  writes: Pick<Writes, 'mute'>;
  writeMedia: (records: { held: HeldSession; media: unknown }[]) => Promise<void>;
}

/** Writes the tracks of sessions, and where their media is: the latter a moment after it has changed. */
export class MediaWrites {
  readonly #changed = new Set<RecordedSession>();
  readonly #serially = pLimit(1);
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(private readonly deps: MediaWritesDeps) {}

  /** @returns false if this connection no longer holds the session */
  async publish(session: RecordedSession, tracks: TrackState[]): Promise<boolean> {
    const { clock, database } = this.deps;
    return this.#wrote(session, await publishTracks(database, session.held, tracks, clock.now()));
  }

  async unpublishAll(session: RecordedSession): Promise<void> {
    const { clock, database } = this.deps;
    this.#wrote(session, await publishTracks(database, session.held, [], clock.now()));
  }

  async setMuted({ held, roomId }: RecordedSession, trackId: string, muted: boolean): Promise<void> {
    await this.deps.writes.mute(roomId, { held, trackId, muted });
  }

  /** Call this when the record with which another gateway would continue the session's media has changed. */
  changed(session: RecordedSession): void {
    if (session.isGone || this.#isClosed) return;
    this.#changed.add(session);
    this.#schedule(WITHIN_MS);
  }

  /** Writes all changed records now, after a write that is under way. Never rejects: failed writes are repeated. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#serially(() => this.#writeAll());
  }

  close(): void {
    this.#isClosed = true;
    this.#changed.clear();
    clearTimeout(this.#timer);
  }

  #schedule(afterMs: number): void {
    this.#timer ??= setTimeout(() => void this.flush(), afterMs);
  }

  async #writeAll(): Promise<void> {
    const sessions = [...this.#changed];
    this.#changed.clear();
    for (let at = 0; at < sessions.length; at += SESSIONS_PER_WRITE_MAX) {
      // A session may have gone while the sessions before it were written.
      const held = sessions.slice(at, at + SESSIONS_PER_WRITE_MAX).filter(({ isGone }) => !isGone);
      try {
        await this.deps.writeMedia(held.map((session) => ({ held: session.held, media: session.media.record })));
      } catch (error) {
        const left = sessions.slice(at);
        this.deps.logger.warn('media records not written', { sessions: left.length, error });
        if (this.#isClosed) return;
        for (const session of left) this.#changed.add(session);
        this.#schedule(AGAIN_MS);
        return;
      }
    }
  }

  /**
   * After a commit: wakes deliveries and notifies other gateways, best effort. Sweeps and resyncs make up for a lost
   * notice.
   */
  #wrote({ roomId }: RecordedSession, { written, deliveries }: TracksOutcome): boolean {
    if (!written) return false;
    void this.deps.producer.wakeDeliveries(deliveries);
    void this.deps.rooms.changed(roomId);
    return true;
  }
}
