import { beat, removeInstance, writeMedia, type Database } from '@callplane/db';
import { Repeating, type Turns } from '@callplane/runtime';
import pLimit from 'p-limit';
import { Admissions } from './admission/admissions.js';
import { Arrivals } from './admission/arrivals.js';
import { Joins } from './admission/joins.js';
import { Resumptions } from './admission/resumptions.js';
import type { ConnectionSettings } from './connections/connection.js';
import { Connections } from './connections/connections.js';
import type { Deps } from './deps.js';
import { MediaStateWrites } from './media/handover/media-state-writes.js';
import { moveRooms } from './media/placement/move-rooms.js';
import { SessionMedia } from './media/session-media.js';
import { Dispatch } from './requests/dispatch.js';
import { Rooms } from './rooms/rooms.js';
import { disownGhosts } from './sessions/ghosts.js';
import { Heartbeat } from './sessions/heartbeat.js';
import { metadataWrites, muteWrites } from './sessions/room-writes.js';
import { SessionMediaHost } from './sessions/session-media-host.js';
import { Sessions } from './sessions/sessions.js';

const HEARTBEAT_EVERY_MS = 2000;
const RESYNC_EVERY_MS = 5000;
const MOVE_ROOMS_EVERY_MS = 500;

export interface GatewaySettings {
  connections: Omit<ConnectionSettings, 'pingIntervalMs'>;
  mediaNodeDeadSeconds: number;
  /** Interval of the periodic resync. Tests lengthen it, so that only a notice can have an effect. Default 5000. */
  resyncEveryMs?: number;
}

/** Owns this instance's connections, sessions, rooms and periodic work: heartbeat, resync and room placement. */
export class Gateway {
  readonly sessions: Sessions;
  readonly connections: Connections;
  readonly rooms: Rooms;
  readonly #arrivals = new Arrivals();
  readonly #deps: Deps;
  readonly #mediaWrites: MediaStateWrites;
  readonly #heartbeats: Database;
  readonly #heartbeat: Heartbeat;
  readonly #repeating: Repeating[];

  /** @param heartbeats a separate database connection, so that a busy pool cannot make this instance look dead */
  constructor(deps: Deps, heartbeats: Database, settings: GatewaySettings) {
    this.#deps = deps;
    this.#heartbeats = heartbeats;
    this.rooms = new Rooms(deps, (member, departure) => this.sessions.onDeparture(member, departure));
    this.#mediaWrites = new MediaStateWrites(
      (states, settings) => writeMedia(deps.database, states, settings),
      deps.logger,
    );
    this.#heartbeat = new Heartbeat(
      () => beat(heartbeats.sql, deps.instanceId),
      () => this.rooms.resync(),
      deps.logger,
    );
    const sessionDeps = { ...deps, mediaWrites: this.#mediaWrites, heartbeat: this.#heartbeat };
    const mediaDeps = { ...sessionDeps, muteWrites: muteWrites(deps, this.rooms) };
    this.sessions = new Sessions(
      sessionDeps,
      this.rooms,
      this.#turns(2),
      (session) => new SessionMedia(deps.places, new SessionMediaHost(mediaDeps, this.rooms, session)),
    );
    this.connections = new Connections(
      deps,
      { ...settings.connections, pingIntervalMs: deps.pingIntervalSeconds * 1000 },
      this.#dispatch(),
    );
    deps.places.onChange((nodeId) => {
      for (const room of this.rooms.all) if (room.state?.mediaNodeId === nodeId) room.mediaChanged();
    });
    this.#repeating = this.#startRepeating(settings);
  }

  /** Reads all rooms again when Redis is back, because notices sent during the outage are lost. */
  resync(): void {
    this.rooms.resync().catch((error: unknown) => {
      this.#deps.logger.warn('room resync failed', { error });
    });
  }

  /**
   * Drains this instance: its clients resume their sessions on other instances. No participant leaves. Clients that are
   * joining or resuming get their welcome first. Idempotent.
   */
  async close(): Promise<void> {
    this.#arrivals.startDraining();
    const arrived = this.#arrivals.settled();
    await this.connections.sendAway((connection) => !this.#arrivals.has(connection));
    await arrived;
    await this.connections.sendAway();
    await this.connections.close();
    // A join that was cut off may still end its session. That write must begin before the sessions drain.
    await this.#arrivals.settled();
    await this.sessions.drain();
    this.#mediaWrites.close();
    await Promise.all(this.#repeating.map((one) => one.close()));
    this.rooms.close();
    await removeInstance(this.#heartbeats.sql, this.#deps.instanceId).catch((error: unknown) => {
      this.#deps.logger.warn('instance row not removed', { error });
    });
  }

  #dispatch(): Dispatch {
    const deps = this.#deps;
    // Joins and resumptions share one half of the database pool, so that departures and requests keep the other half.
    const arrivalTurns = this.#turns(2);
    return new Dispatch({
      ...deps,
      rooms: this.rooms,
      sessions: this.sessions,
      qualities: this.sessions.qualities,
      arrivals: this.#arrivals,
      admissions: new Admissions(deps, this.#turns(4)),
      metadataWrites: metadataWrites(deps, this.rooms),
      joins: new Joins(deps, arrivalTurns),
      resumptions: new Resumptions(deps, arrivalTurns),
    });
  }

  /** Limits work to a part of the database pool. */
  #turns(divisor: number): Turns {
    return pLimit(Math.max(1, Math.floor(this.#deps.databasePoolMax / divisor)));
  }

  #startRepeating({ mediaNodeDeadSeconds, resyncEveryMs = RESYNC_EVERY_MS }: GatewaySettings): Repeating[] {
    const deps = this.#deps;
    const repeat = (name: string, everyMs: number, work: () => Promise<void>): Repeating =>
      new Repeating(everyMs, work, (error) => deps.logger.warn('periodic task failed', { task: name, error }));
    const isHeld = (sessionId: string): boolean =>
      this.sessions.get(sessionId) !== undefined || this.#arrivals.isResuming(sessionId);
    const resync = async (): Promise<void> => {
      await this.rooms.resync();
      await disownGhosts(deps, this.sessions.writes, isHeld);
    };
    return [
      repeat('heartbeat', HEARTBEAT_EVERY_MS, () => this.#heartbeat.beat()),
      repeat('resync', resyncEveryMs, resync),
      repeat('placement', MOVE_ROOMS_EVERY_MS, () => moveRooms(deps, this.rooms, mediaNodeDeadSeconds * 1000)),
    ];
  }
}
