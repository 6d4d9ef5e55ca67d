import type { Database } from '@callplane/db';
import { beat, removeInstance } from '@callplane/db';
import { Repeating } from '@callplane/runtime';
import type { ConnectionSettings } from './connections/connection.js';
import { Connections } from './connections/connections.js';
import type { Deps } from './deps.js';
import { moveRooms } from './media/recovery.js';
import { Heartbeat } from './sessions/heartbeat.js';
import { Sessions } from './sessions/sessions.js';

const HEARTBEAT_EVERY_MS = 2000;
const RESYNC_EVERY_MS = 5000;
const MOVE_ROOMS_EVERY_MS = 500;

export interface GatewaySettings {
  connections: Omit<ConnectionSettings, 'pingIntervalMs'>;
  mediaNodeDeadSeconds: number;
}

/** Everything between a WebSocket and the database: connections, sessions, rooms, and what repeats. */
export class Gateway {
  readonly sessions: Sessions;
  readonly connections: Connections;
  readonly #deps: Deps;
  readonly #heartbeats: Database;
  readonly #repeating: Repeating[];

  private constructor(deps: Deps, heartbeats: Database, settings: GatewaySettings) {
    this.#deps = deps;
    this.#heartbeats = heartbeats;
    const { logger, places } = deps;
    this.sessions = new Sessions(deps);
    const { rooms } = this.sessions;
    this.connections = new Connections(deps, this.sessions, {
      ...settings.connections,
      pingIntervalMs: deps.pingIntervalSeconds * 1000,
    });
    places.onChange((nodeId) => {
      for (const view of rooms.all) if (view.snapshot?.mediaNodeId === nodeId) view.mediaChanged();
    });
    const heartbeat = new Heartbeat(
      () => beat(heartbeats.hot, deps.instanceId),
      () => rooms.resync(),
      logger,
    );
    const repeat = (name: string, everyMs: number, work: () => Promise<void>): Repeating =>
      new Repeating(everyMs, work, (error) => logger.warn('repeated work failed', { work: name, error }));
    const look = async (): Promise<void> => {
      await rooms.resync();
      await this.sessions.disownGhosts();
    };
    this.#repeating = [
      repeat('heartbeat', HEARTBEAT_EVERY_MS, () => heartbeat.beat()),
      repeat('resync', RESYNC_EVERY_MS, look),
      repeat('placement', MOVE_ROOMS_EVERY_MS, () => moveRooms(deps, rooms, settings.mediaNodeDeadSeconds * 1000)),
    ];
  }

  /** @param heartbeats a connection of their own: a pool that is busy must not look like a dead instance. */
  static open(deps: Deps, heartbeats: Database, settings: GatewaySettings): Gateway {
    return new Gateway(deps, heartbeats, settings);
  }

  /** Redis is back: what was said meanwhile is lost. */
  resync(): void {
    this.sessions.rooms.resync().catch((error: unknown) => {
      this.#deps.logger.warn('rooms not read', { error });
    });
  }

  /** Sends every client to another instance; nobody leaves by it. Idempotent. */
  async close(): Promise<void> {
    this.sessions.startDraining();
    await this.connections.drain();
    await this.sessions.drain();
    await Promise.all(this.#repeating.map((one) => one.close()));
    await removeInstance(this.#heartbeats.hot, this.#deps.instanceId).catch((error: unknown) => {
      this.#deps.logger.warn('instance not removed', { error });
    });
  }
}
