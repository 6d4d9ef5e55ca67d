import { addRoomNode, placeRoom, removeRoomNode, type Database } from '@callplane/db';
import {
  chooseForSession,
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

/**
 * A media server that refuses connections has lost its rooms with its process: it counts as lost after this part of the
 * time, but not before a service manager may have started it again.
 */
const REFUSING_PART = 0.2;
const REFUSING_MS_MIN = 1000;

/** The current media server of a session, and the generation of its room's placement. */
export interface MediaPlace {
  readonly node: MediaNode;
  /** Zero on a further media server of the room: a session there does not move with the room. */
  readonly generation: number;
  /**
   * The session's own session on the media server, which holds both peer connections. The first call opens it.
   * @throws MediaError
   */
  session(): Promise<MediaSession>;
}

/** A media server, and the generation of the room's placement, which is zero for a further one of the room. */
export interface Where {
  nodeId: string | null;
  generation: number;
}

/** A session on a further media server stays there when that becomes the room's own. */
export function isElsewhere(before: Where, after: Where): boolean {
  if (before.nodeId !== after.nodeId) return true;
  return before.generation !== 0 && after.generation !== 0 && before.generation !== after.generation;
}

export class MediaPlaces {
  #loads = new Map<string, NodeLoad>();
  #loadsAtMs = -Infinity;

  constructor(
    private readonly nodes: MediaNodes,
    private readonly readLoads: () => Promise<ReadonlyMap<string, NodeLoad>>,
    /** Media servers that a room may use. */
    readonly nodesPerRoomMax = 1,
    /** Assumed for clients whose token names no region. */
    private readonly region: string | null = null,
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
   * Whether the node has been down for longer than this time, or a part of it if it refuses connections, or is no longer
   * registered. Reads the registry if the node is unknown: another gateway may have placed the room on a server that was
   * registered a moment ago.
   * @throws if the registry has to be read and cannot be
   */
  async isLost(nodeId: string, deadMs: number): Promise<boolean> {
    const node = await this.nodes.lookUp(nodeId);
    if (node === undefined) return true;
    return node.downForMs > (node.isRefusing ? Math.max(REFUSING_MS_MIN, deadMs * REFUSING_PART) : deadMs);
  }

  /**
   * The node for a room: near the region, up, and not draining; null if there is none. Never rejects: a failed read
   * leaves the old loads.
   */
  async pick(region: string | null): Promise<string | null> {
    if (!this.anyUp) return null;
    await this.#freshen();
    const best = chooseNode(this.#healthy(), this.#loads, region ?? this.region);
    if (best !== null) this.#count(best, 'rooms');
    return best;
  }

  /** The node for a room that leaves this node. */
  async pickNear(nodeId: string | null): Promise<string | null> {
    await this.#freshen();
    return this.pick(this.#loads.get(nodeId ?? '')?.region ?? null);
  }

  /**
   * Chooses the node for a new session, perhaps one that the room does not use yet.
   * @param nodeIds of the room, its own first
   */
  async pickFor(nodeIds: readonly string[], region: string | null): Promise<string | null> {
    await this.#freshen();
    return this.#choose(nodeIds, this.nodesPerRoomMax, region);
  }

  /** The node for a session that has to move: one that the room uses. */
  moveTo(nodeIds: readonly string[], region: string | null): string | null {
    return this.#choose(nodeIds, nodeIds.length, region);
  }

  #choose(nodeIds: readonly string[], nodesMax: number, region: string | null): string | null {
    const room = { nodeIds, nodesMax };
    const chosen = chooseForSession(this.#healthy(), this.#loads, room, region ?? this.region);
    if (chosen !== null) this.#count(chosen, 'sessions');
    return chosen;
  }

  #healthy(): string[] {
    return this.nodes.up().map(({ id }) => id);
  }

  #count(id: string, what: 'rooms' | 'sessions'): void {
    const load = this.#loads.get(id) ?? { rooms: 0, sessions: 0, draining: false, capacity: null, region: null };
    this.#loads.set(id, { ...load, [what]: load[what] + 1 });
  }

  async #freshen(): Promise<void> {
    if (performance.now() - this.#loadsAtMs > LOADS_FRESH_MS) {
      try {
        this.#loads = new Map([...(await this.readLoads())].map(([id, load]) => [id, { ...load }]));
        this.#loadsAtMs = performance.now();
      } catch {
        // Placement works with old loads. The caller's own statements report that the database is unavailable.
      }
    }
  }
}

interface SpreadDeps {
  database: Database;
  logger: Logger;
  places: MediaPlaces;
  rooms: Pick<Rooms, 'changed'>;
}

/**
 * Chooses the media server for a new session of a room. If all servers of the room are full, or another one is nearer, it
 * adds one to the room. Never rejects: the room's own server does.
 * @param region of the client, if its token names one
 * @returns a further media server of the room; null for its own
 */
export async function placeSession(
  { database, logger, places, rooms }: SpreadDeps,
  room: Room,
  region: string | null,
): Promise<string | null> {
  const own = room.state?.mediaNodeId ?? null;
  if (own === null || places.nodesPerRoomMax === 1) return null;
  const further = () => room.state?.furtherNodeIds ?? [];
  const chosen = await places.pickFor([own, ...further()], region);
  if (chosen === null || chosen === own) return null;
  if (!further().includes(chosen)) {
    try {
      const version = await addRoomNode(database.sql, room.roomId, chosen, places.nodesPerRoomMax);
      if (version !== null) logger.info('room spreads', { roomId: room.roomId, to: chosen });
      await rooms.changed(room.roomId);
    } catch (error) {
      logger.warn('room does not spread', { roomId: room.roomId, to: chosen, error });
    }
  }
  return further().includes(chosen) ? chosen : null;
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
  for (const room of [...rooms.all]) {
    if (await needsPlace(deps.places, room, deadMs)) await move(deps, rooms, room);
    for (const nodeId of room.isClosed ? [] : (room.state?.furtherNodeIds ?? [])) {
      if (await deps.places.isLost(nodeId, deadMs)) await leave(deps, rooms, room, nodeId);
    }
  }
}

/** The sessions on the lost server move to others of the room. */
async function leave(
  { database, logger }: MoveRoomsDeps,
  rooms: Rooms,
  { roomId }: Room,
  nodeId: string,
): Promise<void> {
  const left = await removeRoomNode(database.sql, nodeId, roomId);
  if (left.length > 0) logger.info('room left media server', { roomId, from: nodeId });
  await rooms.changed(roomId);
}

async function needsPlace(places: MediaPlaces, room: Room, deadMs: number): Promise<boolean> {
  const { state } = room;
  if (state === null || room.isClosed || room.size === 0) return false;
  return state.mediaNodeId === null || (await places.isLost(state.mediaNodeId, deadMs));
}

async function move({ database, logger, places }: MoveRoomsDeps, rooms: Rooms, room: Room): Promise<void> {
  const { roomId, state } = room;
  const to = await places.pickNear(state?.mediaNodeId ?? null);
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
