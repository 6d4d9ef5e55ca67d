import { placeRoom, type Database } from '@callplane/db';
import {
  chooseNode,
  JANUS_VERSION_MIN,
  MediaError,
  type MediaNode,
  type MediaNodes,
  type MediaSession,
  type NodeLoad,
} from '@callplane/media';
import type { Logger } from '@callplane/runtime';
import { RequestFailure } from '../clients/client.js';
import type { Room } from '../rooms/room.js';
import type { Rooms } from '../rooms/rooms.js';

/** How long the loads stay valid after a read, in milliseconds. Until then, rooms placed here are added to them. */
const LOADS_FRESH_MS = 1000;

/** The room's current media server and the generation of the placement. */
export interface MediaPlace {
  readonly node: MediaNode;
  readonly generation: number;
  /**
   * The session's own session on the media server, which holds both peer connections. The first call opens it.
   * @throws MediaError
   */
  session(): Promise<MediaSession>;
}

export class MediaPlaces {
  #loads = new Map<string, NodeLoad>();
  #loadsAtMs = -Infinity;

  constructor(
    private readonly nodes: MediaNodes,
    private readonly readLoads: () => Promise<ReadonlyMap<string, NodeLoad>>,
  ) {}

  onChange(listener: (nodeId: string) => void): void {
    this.nodes.on('up', ({ id }) => listener(id));
    this.nodes.on('down', ({ id }) => listener(id));
    this.nodes.on('removed', ({ id }) => listener(id));
  }

  get anyUp(): boolean {
    return this.nodes.up().length > 0;
  }

  /** The node with this id if it is up, else null. */
  up(nodeId: string | null): MediaNode | null {
    const node = this.nodes.get(nodeId ?? '');
    return node?.state === 'up' ? node : null;
  }

  /**
   * Whether the node has been down for longer than this time, or is no longer registered. Reads the registry if the node
   * is unknown: another gateway may have placed the room on a server that was registered a moment ago.
   * @throws if the registry has to be read and cannot be
   */
  async isLost(nodeId: string, deadMs: number): Promise<boolean> {
    const node = await this.nodes.lookUp(nodeId);
    return node === undefined || node.downForMs > deadMs;
  }

  /** The least loaded node that is up and takes rooms, or null. Never rejects: a failed read leaves the old loads. */
  async pick(): Promise<string | null> {
    const healthy = this.nodes.up().map(({ id }) => id);
    if (healthy.length === 0) return null;
    if (performance.now() - this.#loadsAtMs > LOADS_FRESH_MS) {
      try {
        this.#loads = new Map([...(await this.readLoads())].map(([id, load]) => [id, { ...load }]));
        this.#loadsAtMs = performance.now();
      } catch {
        // Placement works with old loads. The caller's own statements report that the database is unavailable.
      }
    }
    const best = chooseNode(healthy, this.#loads);
    if (best === null) return null;
    const load = this.#loads.get(best) ?? { rooms: 0, sessions: 0, draining: false, capacity: null };
    this.#loads.set(best, { ...load, rooms: load.rooms + 1 });
    return best;
  }
}

/** The failure of a client's request that the media server cannot handle. */
export function mediaUnavailable(cause?: unknown): RequestFailure {
  return new RequestFailure('media_unavailable', undefined, undefined, { cause });
}

/** The failure of a client's request for an error of the media server; any other error stays as it is. */
export function toFailure(error: unknown): unknown {
  if (!(error instanceof MediaError)) return error;
  if (error.code === 'invalid_sdp') {
    return new RequestFailure('invalid_sdp', 'The media server refused the session description.', undefined, {
      cause: error,
    });
  }
  if (error.code === 'closed') return new RequestFailure('conflict', undefined, undefined, { cause: error });
  return mediaUnavailable(error);
}

interface MoveRoomsDeps {
  database: Database;
  logger: Logger;
  places: MediaPlaces;
}

/**
 * Moves rooms to a working media server: rooms that have none, and rooms whose media server has been down for longer
 * than `deadMs`. If several instances try, one moves the room and all of them follow.
 */
export async function moveRooms(deps: MoveRoomsDeps, rooms: Rooms, deadMs: number): Promise<void> {
  for (const room of [...rooms.all]) if (await needsPlace(deps.places, room, deadMs)) await move(deps, rooms, room);
}

async function needsPlace(places: MediaPlaces, room: Room, deadMs: number): Promise<boolean> {
  const { state } = room;
  if (state === null || room.isClosed || room.size === 0) return false;
  return state.mediaNodeId === null || (await places.isLost(state.mediaNodeId, deadMs));
}

async function move({ database, logger, places }: MoveRoomsDeps, rooms: Rooms, room: Room): Promise<void> {
  const { roomId, state } = room;
  const to = await places.pick();
  if (state === null || to === null || to === state.mediaNodeId) return;
  const { mediaNodeId, mediaGeneration } = state;
  const placement = await placeRoom(database.sql, roomId, { mediaNodeId, mediaGeneration }, to);
  if (placement.mediaGeneration === mediaGeneration + 1 && placement.mediaNodeId === to) {
    logger.info('room moved', { roomId, from: mediaNodeId, to });
  }
  await rooms.changed(roomId);
}

export function logMediaNodes(nodes: MediaNodes, logger: Logger): void {
  nodes.on('up', ({ id }) => logger.info('media server up', { node: id }));
  nodes.on('down', ({ id }, error) => logger.warn('media server down', { node: id, error }));
  nodes.on('outdated', ({ id }, version) =>
    logger.warn('media server outdated', { node: id, version, needed: JANUS_VERSION_MIN }),
  );
  nodes.on('added', ({ id }) => logger.info('media server registered', { node: id }));
  nodes.on('removed', ({ id }) => logger.info('media server removed', { node: id }));
}
