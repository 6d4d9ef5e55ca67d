import { EventEmitter } from 'node:events';
import { sharedParts } from '@callplane/core';
import { parseNodeUrl, type MediaNodeAddress } from './addresses.js';
import { MediaNode } from './janus/node.js';
import { JANUS_VERSION_MIN } from './janus/version.js';

interface MediaNodesOptions {
  /** The nodes of MEDIA_NODES, which are always known. */
  addresses: readonly MediaNodeAddress[];
  /** The same secret on every node. */
  apiSecret: string;
  adminKey: string;
  random: () => number;
  allowOutdated?: boolean;
  readRegistry?: (() => PromiseLike<readonly MediaNodeAddress[]>) | undefined;
}

interface MediaNodesEvents {
  up: [node: MediaNode];
  down: [node: MediaNode, error: Error];
  outdated: [node: MediaNode, version: string];
  /** A node has been registered. It is not up yet. */
  added: [node: MediaNode];
  /** A node is no longer registered, or has another address. It emits no `down`, and its handles have ended. */
  removed: [node: MediaNode];
}

/** The nodes that have registered themselves, and the function that connects to one. */
interface Registry {
  read(): PromiseLike<readonly MediaNodeAddress[]>;
  connect(address: MediaNodeAddress): MediaNode;
}

/**
 * Every media node that this process knows, each with its own connection: the nodes of MEDIA_NODES, and of the registry
 * as it was read last.
 */
export class MediaNodes extends EventEmitter<MediaNodesEvents> {
  readonly #configured: ReadonlyMap<string, MediaNode>;
  readonly #registered = new Map<string, { url: string; node: MediaNode }>();
  readonly #closing = new Set<Promise<void>>();
  #isClosed = false;
  #reading = Promise.resolve();
  #next: Promise<void> | null = null;

  /** @param registry null: the nodes never change */
  constructor(
    nodes: readonly MediaNode[],
    private readonly registry: Registry | null = null,
  ) {
    super();
    this.#configured = new Map(nodes.map((node) => [node.id, node]));
    for (const node of nodes) this.#watch(node);
  }

  /**
   * Starts to connect to the configured nodes without waiting. Registered ones follow with the first `refresh`.
   * Without nodes there is no media server, and no node is ever up.
   */
  static open({ addresses, readRegistry: read, ...options }: MediaNodesOptions): MediaNodes {
    const connect = (address: MediaNodeAddress) => new MediaNode({ ...address, ...options });
    return new MediaNodes(addresses.map(connect), read === undefined ? null : { read, connect });
  }

  /** Undefined if MEDIA_NODES does not name the node, and it was not registered when the registry was read last. */
  get(id: string): MediaNode | undefined {
    return this.#configured.get(id) ?? this.#registered.get(id)?.node;
  }

  /**
   * The node with this name, which may have been registered a moment ago.
   * @throws errors of the registry
   */
  async lookUp(id: string): Promise<MediaNode | undefined> {
    if (this.get(id) === undefined) await this.refresh();
    return this.get(id);
  }

  isConfigured(id: string): boolean {
    return this.#configured.has(id);
  }

  all(): MediaNode[] {
    return [...this.#configured.values(), ...[...this.#registered.values()].map(({ node }) => node)];
  }

  up(): MediaNode[] {
    return this.all().filter((node) => node.state === 'up');
  }

  /**
   * Checks that a node is up and that none runs an outdated Janus, refused or allowed.
   * @throws Error without an `up` node, with `reason: 'outdated'`, and the nodes in its message.
   */
  ping(): Promise<void> {
    const outdated = this.all().filter(({ isOutdated }) => isOutdated);
    if (outdated.length > 0) {
      const versions = outdated.map(({ id, version }) => `${id} runs Janus ${version ?? ''}`).join(', ');
      const error = new Error(`${versions}, before ${JANUS_VERSION_MIN}`);
      return Promise.reject(Object.assign(error, { reason: 'outdated' }));
    }
    return this.up().length > 0 ? Promise.resolve() : Promise.reject(new Error('no media server is up'));
  }

  /**
   * Reads the registry. At most one read runs: calls during it share the next one, which sees everything that was
   * written before them.
   * @throws errors of the registry; the nodes stay as they are.
   */
  refresh(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#next ??= this.#reading
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        return (this.#reading = this.#read());
      });
    return this.#next;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.all().map((node) => node.close()), ...this.#closing]);
  }

  async #read(): Promise<void> {
    if (this.registry === null) return;
    const found = await this.registry.read();
    if (this.#isClosed) return;
    const listed = new Map(found.flatMap(usable).filter(([id]) => !this.isConfigured(id)));
    for (const [id, { url, node }] of this.#registered) if (listed.get(id) !== url) this.#remove(id, node);
    for (const [id, url] of listed) if (!this.#registered.has(id)) this.#add(id, url, this.registry);
  }

  #add(id: string, url: string, registry: Registry): void {
    const node = registry.connect({ id, url });
    this.#registered.set(id, { url, node });
    this.#watch(node);
    this.emit('added', node);
  }

  #watch(node: MediaNode): void {
    node.on('up', () => this.emit('up', node));
    node.on('down', (error) => this.emit('down', node, error));
    node.on('outdated', (version) => this.emit('outdated', node, version));
  }

  #remove(id: string, node: MediaNode): void {
    this.#registered.delete(id);
    const closed = node.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
    this.emit('removed', node);
  }
}

/** A row that an operator wrote by hand may have a URL that no process can use: it counts as not registered. */
function usable({ id, url }: MediaNodeAddress): [string, string][] {
  try {
    return [[id, parseNodeUrl(id, url)]];
  } catch {
    return [];
  }
}

/** The load of one media node, as the database counts it. */
export interface NodeLoad {
  rooms: number;
  /** Live sessions in those rooms. */
  sessions: number;
  /** A draining node gets no new rooms. */
  draining: boolean;
  /** Number of participants that the node is meant for; null: unknown. */
  capacity: number | null;
  region: string | null;
}

type Loads = ReadonlyMap<string, NodeLoad>;

/** Assumed for nodes that name no capacity, so that they can be compared with others. */
export const CAPACITY_DEFAULT = 500;

/**
 * Chooses the node for a new room: of the healthy nodes that are neither draining nor full, the nearest ones, and of
 * these the one whose capacity is used least. If all are full, the least used one. Null if there is none.
 * A room weighs as much as a participant. Otherwise many rooms created at once would all land on one node before anyone
 * joins them.
 * Ties go to the lowest id, so that processes which choose at the same time agree.
 * @param region of the client; null: every node is equally near
 */
export function chooseNode(healthyIds: readonly string[], loads: Loads, region: string | null): string | null {
  const usable = usableOf(healthyIds, loads);
  return leastUsed(nearestFree(usable, loads, region), loads) ?? leastUsed(usable, loads);
}

export interface SpreadRoom {
  /** The room's own node, and the further ones that it uses. */
  nodeIds: readonly string[];
  /** Nodes that the room may use. */
  nodesMax: number;
}

/**
 * Chooses the node for a session: of the nodes that the room uses or may add, the nearest ones that are not full. Of
 * these the room's own node, or else the least used one that the room uses, in the order of the list at a tie, or else
 * the least used other one. If all are full, the least used node of the room.
 * @param region of the client; null: every node is equally near
 * @returns null if none of these nodes is healthy
 */
export function chooseForSession(
  healthyIds: readonly string[],
  loads: Loads,
  { nodeIds, nodesMax }: SpreadRoom,
  region: string | null,
): string | null {
  const usable = usableOf(healthyIds, loads);
  const own = nodeIds.filter((id) => usable.includes(id));
  const others = nodeIds.length < nodesMax ? usable.filter((id) => !nodeIds.includes(id)) : [];
  const nearest = nearestFree([...own, ...others], loads, region);
  const [home] = nodeIds;
  if (home !== undefined && nearest.includes(home)) return home;
  const ofRoom = nearest.filter((id) => nodeIds.includes(id));
  return leastUsed(ofRoom, loads) ?? leastUsed(nearest, loads) ?? leastUsed(own, loads);
}

function usableOf(healthyIds: readonly string[], loads: Loads): string[] {
  return healthyIds.filter((id) => loads.get(id)?.draining !== true).sort();
}

function nearestFree(ids: readonly string[], loads: Loads, region: string | null): string[] {
  const free = ids.filter((id) => usedOf(loads, id) < 1);
  const nearness = (id: string) => sharedParts(region, loads.get(id)?.region ?? null);
  const nearest = Math.max(...free.map(nearness));
  return free.filter((id) => nearness(id) === nearest);
}

function leastUsed(ids: readonly string[], loads: Loads): string | null {
  const [least = null] = [...ids].sort((a, b) => usedOf(loads, a) - usedOf(loads, b));
  return least;
}

function usedOf(loads: Loads, id: string): number {
  const load = loads.get(id);
  return load === undefined ? 0 : (load.sessions + load.rooms) / (load.capacity ?? CAPACITY_DEFAULT);
}
