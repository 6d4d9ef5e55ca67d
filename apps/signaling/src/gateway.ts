import type { BucketSettings } from '@callplane/core';
import { beat, removeInstance, writeMedia, type Database } from '@callplane/db';
import { Repeating } from '@callplane/runtime';
import { Arrivals } from './arrivals/arrival.js';
import type { ClientHandler } from './clients/client.js';
import { Connections } from './connections/door.js';
import { Forwards, type ForwardsDeps } from './media/forwards.js';
import { MediaWrites } from './media/media-writes.js';
import { moveRooms } from './media/places.js';
import { SessionMedia } from './media/session-media.js';
import type { SignalingMetrics } from './metrics.js';
import { Dispatch, type DispatchDeps } from './requests/requests.js';
import { Rooms, type RoomsDeps } from './rooms/rooms.js';
import { Heartbeat } from './sessions/heartbeat.js';
import { Sessions, type SessionsDeps } from './sessions/sessions.js';
import { Qualities } from './sessions/quality-seconds.js';
import { WhipClients } from './whip/whip-clients.js';
import { WhipRequests } from './whip/whip-requests.js';
import { Writes, type WritesDeps } from './writes/writes.js';

const HEARTBEAT_EVERY_MS = 2000;
const RESYNC_EVERY_MS = 5000;
const MOVE_ROOMS_EVERY_MS = 500;
/** Well below the time that a forward without receivers stays. */
const KEEP_FORWARDS_EVERY_MS = 2500;

type Built = 'arrivals' | 'heartbeat' | 'mediaWrites' | 'qualities' | 'rooms' | 'sessions' | 'writes';

export type Deps = Omit<DispatchDeps & SessionsDeps & RoomsDeps & WritesDeps & ForwardsDeps, Built> & {
  metrics: SignalingMetrics;
  /** Limit of a connection's messages and pings. */
  connectionLimit: BucketSettings;
  mediaNodeDeadSeconds: number;
};

export class Gateway {
  readonly sessions: Sessions;
  /** Handles clients of any transport. */
  readonly clients: ClientHandler;
  /** The clients over WebSockets. */
  readonly connections: Connections;
  /** The clients over HTTP. */
  readonly encoders: WhipClients;
  readonly whip: WhipRequests;
  readonly rooms: Rooms;
  readonly forwards: Forwards;
  readonly #arrivals = new Arrivals();
  readonly #mediaWrites: MediaWrites;
  readonly #heartbeat: Heartbeat;
  readonly #repeating: Repeating[];

  /** @param heartbeats a separate database connection, so that a busy pool cannot make this instance look dead */
  constructor(
    private readonly deps: Deps,
    private readonly heartbeats: Database,
  ) {
    this.rooms = new Rooms(deps, (member, departure) => this.sessions.onDeparture(member, departure));
    this.#heartbeat = new Heartbeat(
      () => beat(heartbeats.sql, deps.instanceId),
      () => this.rooms.resync(),
      deps.logger,
    );
    const writes = new Writes(deps, this.rooms);
    this.#mediaWrites = new MediaWrites({
      ...deps,
      rooms: this.rooms,
      writes,
      writeMedia: (records) => writeMedia(deps.database.sql, records),
    });
    this.forwards = new Forwards(deps);
    const mediaDeps = { ...deps, rooms: this.rooms, writes: this.#mediaWrites, forwards: this.forwards };
    const shared = { ...deps, rooms: this.rooms, writes, mediaWrites: this.#mediaWrites, heartbeat: this.#heartbeat };
    const qualities = new Qualities(shared);
    this.sessions = new Sessions({ ...shared, qualities }, (session) => new SessionMedia(mediaDeps, session));
    const arriving = { ...shared, sessions: this.sessions, arrivals: this.#arrivals };
    this.clients = new Dispatch({ ...arriving, qualities });
    this.encoders = new WhipClients(arriving, this.clients);
    this.whip = new WhipRequests({ ...arriving, clients: this.encoders });
    this.connections = new Connections(
      deps.logger,
      { general: deps.connectionLimit, pingIntervalMs: deps.pingIntervalSeconds * 1000 },
      this.clients,
    );
    deps.places.onChange((nodeId) => {
      for (const room of this.rooms.all) {
        const { mediaNodeId = null, furtherNodeIds = [] } = room.state ?? {};
        if (mediaNodeId === nodeId || furtherNodeIds.includes(nodeId)) room.mediaChanged();
      }
    });
    this.#repeating = this.#startRepeating();
  }

  /** Reads all rooms again when Redis is back, because notices sent during the outage are lost. */
  resync(): void {
    this.rooms.resync().catch((error: unknown) => {
      this.deps.logger.warn('room resync failed', { error });
    });
  }

  /**
   * Drains this instance: its clients resume their sessions on other instances. Clients that are joining or resuming get
   * their welcome first. Idempotent.
   */
  async close(): Promise<void> {
    this.#arrivals.isDraining = true;
    await this.encoders.close();
    const arrived = this.#arrivals.settled();
    await this.connections.sendAway((connection) => !this.#arrivals.has(connection));
    await arrived;
    await this.connections.sendAway();
    await this.connections.close();
    // A join that was cut off may still end its session. That write must begin before the sessions drain.
    await this.#arrivals.settled();
    await this.sessions.drain();
    this.#mediaWrites.close();
    this.forwards.close();
    await Promise.all(this.#repeating.map((one) => one.close()));
    this.rooms.close();
    await removeInstance(this.heartbeats.sql, this.deps.instanceId).catch((error: unknown) => {
      this.deps.logger.warn('instance row not removed', { error });
    });
  }

  #startRepeating(): Repeating[] {
    const deps = this.deps;
    const repeat = (name: string, everyMs: number, work: () => Promise<void>): Repeating =>
      new Repeating(everyMs, work, (error) => deps.logger.warn('periodic task failed', { task: name, error }));
    const resync = async (): Promise<void> => {
      await this.rooms.resync();
      await this.sessions.disownGhosts((sessionId) => this.#arrivals.isResuming(sessionId));
    };
    return [
      repeat('heartbeat', HEARTBEAT_EVERY_MS, () => this.#heartbeat.beat()),
      repeat('resync', RESYNC_EVERY_MS, resync),
      repeat('forwards', KEEP_FORWARDS_EVERY_MS, () => this.forwards.keep()),
      repeat('placement', MOVE_ROOMS_EVERY_MS, () => moveRooms(deps, this.rooms, deps.mediaNodeDeadSeconds * 1000)),
    ];
  }
}
