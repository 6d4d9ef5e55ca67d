import { placeRoom, type Database } from '@callplane/db';
import { chooseNode, type MediaNode, type MediaNodes, type NodeLoad } from '@callplane/media';
import type { Logger } from '@callplane/runtime';
import type { Room } from '../rooms/room.js';
import type { Rooms } from '../rooms/rooms.js';

/** How long the loads stay valid after a read, in milliseconds. Until then, rooms placed here are added to them. */
const LOADS_FRESH_MS = 1000;
/** Nodes whose last loss is remembered. Names of removed nodes would add up otherwise. */
const LOSSES_KEPT_MAX = 1000;

/** Chooses media servers for rooms. Knows which are up, since when the others are down, and how loaded they are. */
export class MediaPlaces {
  readonly #nodes: MediaNodes;
  readonly #readLoads: () => Promise<ReadonlyMap<string, NodeLoad>>;
  readonly #downSinceMs = new Map<string, number>();
  readonly #listeners: ((nodeId: string) => void)[] = [];
  #loads = new Map<string, NodeLoad>();
  #loadsAtMs = -Infinity;

  constructor(nodes: MediaNodes, readLoads: () => Promise<ReadonlyMap<string, NodeLoad>>) {
    this.#nodes = nodes;
    this.#readLoads = readLoads;
    for (const node of nodes.all()) this.#watch(node);
    nodes.on('added', (node) => this.#watch(node));
    nodes.on('removed', ({ id }) => {
      // Its rooms move as if it were down.
      this.#lost(id);
      this.#notify(id);
    });
  }

  /** Calls `listener` whenever a node goes up or down. */
  onChange(listener: (nodeId: string) => void): void {
    this.#listeners.push(listener);
  }

  get anyUp(): boolean {
    return this.#nodes.up().length > 0;
  }

  /**
   * The node with this id if it is up, else null. An unknown node may have been registered a moment ago, and another
   * gateway has placed the room on it: this one reads the registry soon.
   */
  up(nodeId: string | null): MediaNode | null {
    if (nodeId === null) return null;
    const node = this.#nodes.get(nodeId);
    if (node === undefined) this.#nodes.refreshSoon();
    return node?.state === 'up' ? node : null;
  }

  /** How long the node has been down, in milliseconds. An unknown node counts as down since the first call. */
  downForMs(nodeId: string): number {
    if (this.up(nodeId) !== null) return 0;
    return performance.now() - this.#lost(nodeId);
  }

  /** The least loaded node that is up and takes rooms, or null. Never rejects: a failed read leaves the old loads. */
  async pick(): Promise<string | null> {
    const healthy = this.#nodes.up().map(({ id }) => id);
    if (healthy.length === 0) return null;
    if (performance.now() - this.#loadsAtMs > LOADS_FRESH_MS) {
      try {
        this.#loads = new Map([...(await this.#readLoads())].map(([id, load]) => [id, { ...load }]));
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

  #watch(node: MediaNode): void {
    const { id } = node;
    const isKnown = (): boolean => this.#nodes.get(id) === node;
    if (node.state === 'down') this.#lost(id);
    node.on('up', () => {
      if (!isKnown()) return;
      this.#downSinceMs.delete(id);
      this.#notify(id);
    });
    node.on('down', () => {
      if (!isKnown()) return;
      this.#lost(id);
      this.#notify(id);
    });
  }

  /** @returns when the node was lost; now, if it was not lost before. */
  #lost(nodeId: string): number {
    const since = this.#downSinceMs.get(nodeId) ?? performance.now();
    this.#downSinceMs.set(nodeId, since);
    const [oldest] = this.#downSinceMs.keys();
    if (this.#downSinceMs.size > LOSSES_KEPT_MAX && oldest !== undefined) this.#downSinceMs.delete(oldest);
    return since;
  }

  #notify(nodeId: string): void {
    for (const listener of this.#listeners) listener(nodeId);
  }
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
  if (!deps.places.anyUp) return;
  for (const room of [...rooms.all]) if (needsPlace(deps.places, room, deadMs)) await move(deps, rooms, room);
}

function needsPlace(places: MediaPlaces, room: Room, deadMs: number): boolean {
  const { state } = room;
  if (state === null || room.isClosed || room.size === 0) return false;
  const { mediaNodeId } = state;
  return mediaNodeId === null || (places.up(mediaNodeId) === null && places.downForMs(mediaNodeId) > deadMs);
}

async function move({ database, logger, places }: MoveRoomsDeps, rooms: Rooms, room: Room): Promise<void> {
  const { roomId, state } = room;
  const to = await places.pick();
  if (state === null || to === null || to === state.mediaNodeId) return;
  const { mediaNodeId, mediaGeneration } = state;
  const placement = await placeRoom(database, roomId, { mediaNodeId, mediaGeneration }, to);
  if (placement.mediaGeneration === mediaGeneration + 1 && placement.mediaNodeId === to) {
    logger.info('room moved', { roomId, from: mediaNodeId, to });
  }
  await rooms.changed(roomId);
}

/** Logs which media servers this process knows and reaches. */
export function logMediaNodes(nodes: MediaNodes, logger: Logger): void {
  const watch = (node: MediaNode): void => {
    node.on('up', () => logger.info('media server up', { node: node.id }));
    node.on('down', (error) => logger.warn('media server down', { node: node.id, error }));
  };
  nodes.all().forEach(watch);
  nodes.on('added', (node) => {
    logger.info('media server registered', { node: node.id });
    watch(node);
  });
  nodes.on('removed', ({ id }) => logger.info('media server removed', { node: id }));
}
