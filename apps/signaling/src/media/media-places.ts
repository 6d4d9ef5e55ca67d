import { chooseNode, type MediaNode, type MediaNodes, type NodeLoad } from '@callplane/media';

/** For how long a reading of the loads serves, in milliseconds; what is placed meanwhile is counted here. */
const LOADS_FRESH_MS = 1000;

/** Where media goes: which media servers answer, since when one does not, and how full they are. */
export class MediaPlaces {
  readonly #nodes: MediaNodes;
  readonly #readLoads: () => Promise<ReadonlyMap<string, NodeLoad>>;
  readonly #downSinceMs = new Map<string, number>();
  readonly #startedAtMs = performance.now();
  readonly #listeners: ((nodeId: string) => void)[] = [];
  #loads = new Map<string, NodeLoad>();
  #loadsAtMs = -Infinity;

  constructor(nodes: MediaNodes, readLoads: () => Promise<ReadonlyMap<string, NodeLoad>>) {
    this.#nodes = nodes;
    this.#readLoads = readLoads;
    for (const node of nodes.all()) {
      if (node.state === 'down') this.#downSinceMs.set(node.id, this.#startedAtMs);
      node.on('up', () => {
        this.#downSinceMs.delete(node.id);
        this.#tell(node.id);
      });
      node.on('down', () => {
        if (!this.#downSinceMs.has(node.id)) this.#downSinceMs.set(node.id, performance.now());
        this.#tell(node.id);
      });
    }
  }

  /** A node went up or down. */
  onChange(listener: (nodeId: string) => void): void {
    this.#listeners.push(listener);
  }

  get anyUp(): boolean {
    return this.#nodes.up().length > 0;
  }

  /** The node of this name while it is up. */
  up(nodeId: string | null): MediaNode | null {
    const node = nodeId === null ? undefined : this.#nodes.get(nodeId);
    return node?.state === 'up' ? node : null;
  }

  /** For how long it has been away, in milliseconds; one that is not configured has been since the start. */
  downForMs(nodeId: string): number {
    if (this.up(nodeId) !== null) return 0;
    return performance.now() - (this.#downSinceMs.get(nodeId) ?? this.#startedAtMs);
  }

  /** The least loaded node that is up and takes rooms, or null. Never rejects: without loads any that is up will do. */
  async pick(): Promise<string | null> {
    const healthy = this.#nodes.up().map(({ id }) => id);
    if (healthy.length === 0) return null;
    if (performance.now() - this.#loadsAtMs > LOADS_FRESH_MS) {
      try {
        this.#loads = new Map([...(await this.#readLoads())].map(([id, load]) => [id, { ...load }]));
        this.#loadsAtMs = performance.now();
      } catch {
        // The database tells its own absence to whoever needs it.
      }
    }
    const best = chooseNode(healthy, this.#loads);
    if (best === null) return null;
    const load = this.#loads.get(best) ?? { rooms: 0, sessions: 0, draining: false };
    this.#loads.set(best, { ...load, rooms: load.rooms + 1 });
    return best;
  }

  #tell(nodeId: string): void {
    for (const listener of this.#listeners) listener(nodeId);
  }
}
