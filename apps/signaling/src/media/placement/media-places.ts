import { chooseNode, type MediaNode, type MediaNodes, type NodeLoad } from '@callplane/media';
import pLimit from 'p-limit';
import type { Turns } from '@callplane/runtime';

/** How long the loads stay valid after a read, in milliseconds. Until then, rooms placed here are added to them. */
const LOADS_FRESH_MS = 1000;
/** Requests at once that end sessions which a lost connection has left on media servers. */
export const LOST_SESSION_ENDS_MAX = 100;

/** Chooses media servers for rooms. Knows which are up, since when the others are down, and how loaded they are. */
export class MediaPlaces {
  readonly #nodes: MediaNodes;
  readonly #readLoads: () => Promise<ReadonlyMap<string, NodeLoad>>;
  readonly #downSinceMs = new Map<string, number>();
  readonly #startedAtMs = performance.now();
  readonly #listeners: ((nodeId: string) => void)[] = [];
  /** Limits the requests that end lost sessions, so that they do not delay those of clients that come back. */
  readonly endings: Turns = pLimit(LOST_SESSION_ENDS_MAX);
  #loads = new Map<string, NodeLoad>();
  #loadsAtMs = -Infinity;

  constructor(nodes: MediaNodes, readLoads: () => Promise<ReadonlyMap<string, NodeLoad>>) {
    this.#nodes = nodes;
    this.#readLoads = readLoads;
    for (const node of nodes.all()) {
      if (node.state === 'down') this.#downSinceMs.set(node.id, this.#startedAtMs);
      node.on('up', () => {
        this.#downSinceMs.delete(node.id);
        this.#notify(node.id);
      });
      node.on('down', () => {
        if (!this.#downSinceMs.has(node.id)) this.#downSinceMs.set(node.id, performance.now());
        this.#notify(node.id);
      });
    }
  }

  /** Calls `listener` whenever a node goes up or down. */
  onChange(listener: (nodeId: string) => void): void {
    this.#listeners.push(listener);
  }

  get anyUp(): boolean {
    return this.#nodes.up().length > 0;
  }

  /** The node with this id if it is up, else null. */
  up(nodeId: string | null): MediaNode | null {
    const node = nodeId === null ? undefined : this.#nodes.get(nodeId);
    return node?.state === 'up' ? node : null;
  }

  /** How long the node has been down, in milliseconds. A node that is not configured counts as down since the start. */
  downForMs(nodeId: string): number {
    if (this.up(nodeId) !== null) return 0;
    return performance.now() - (this.#downSinceMs.get(nodeId) ?? this.#startedAtMs);
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
    const load = this.#loads.get(best) ?? { rooms: 0, sessions: 0, draining: false };
    this.#loads.set(best, { ...load, rooms: load.rooms + 1 });
    return best;
  }

  #notify(nodeId: string): void {
    for (const listener of this.#listeners) listener(nodeId);
  }
}
