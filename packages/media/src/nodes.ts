import { EventEmitter } from 'node:events';
import { parseNodeUrl, type MediaNodeAddress } from './addresses.js';
import { MediaNode } from './janus/node.js';

/** Shortest time between two reads of the registry that unknown names cause, in milliseconds. */
const LOOK_UP_EVERY_MS = 500;

interface MediaNodesOptions {
  /** The nodes of MEDIA_NODES, which are always known. */
  addresses: readonly MediaNodeAddress[];
  /** The same secret on every node. */
  apiSecret: string;
  adminKey: string;
  random: () => number;
  /** Whether outdated nodes may be used. */
  allowOutdated?: boolean;
  /** Reads the nodes that have registered themselves. */
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

type Options = Omit<MediaNodesOptions, 'addresses'>;

/**
 * Every media node that this process knows, each with its own connection: the nodes of MEDIA_NODES, and of the registry
 * as it was read last.
 */
export class MediaNodes extends EventEmitter<MediaNodesEvents> {
  readonly #configured: ReadonlyMap<string, MediaNode>;
  readonly #registered = new Map<string, { url: string; node: MediaNode }>();
  readonly #options: Options | null;
  readonly #closing = new Set<Promise<void>>();
  #isClosed = false;
  #reading: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #lookedUpAtMs = -Infinity;

  /** Nodes that never change. */
  constructor(nodes: readonly MediaNode[], options: Options | null = null) {
    super();
    this.#configured = new Map(nodes.map((node) => [node.id, node]));
    this.#options = options;
    for (const node of nodes) this.#watch(node);
  }

  /**
   * Starts to connect to the configured nodes without waiting. Registered ones follow with the first `refresh`.
   * Without nodes there is no media server, and no node is ever up.
   */
  static open({ addresses, ...options }: MediaNodesOptions): MediaNodes {
    return new MediaNodes(
      addresses.map((address) => new MediaNode({ ...address, ...options })),
      options,
    );
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

  /** Whether MEDIA_NODES names the node. */
  isConfigured(id: string): boolean {
    return this.#configured.has(id);
  }

  all(): MediaNode[] {
    return [...this.#configured.values(), ...[...this.#registered.values()].map(({ node }) => node)];
  }

  /** The nodes that are up at this moment. */
  up(): MediaNode[] {
    return this.all().filter((node) => node.state === 'up');
  }

  /**
   * Reads the registry. At most one read runs: calls during it share the next one, which sees everything that was
   * written before them.
   * @throws errors of the registry; the nodes stay as they are.
   */
  refresh(): Promise<void> {
    if (this.#isClosed) return this.#reading ?? Promise.resolve();
    if (this.#reading === null) {
      this.#reading = this.#read().finally(() => (this.#reading = null));
      return this.#reading;
    }
    this.#next ??= this.#reading
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        return this.refresh();
      });
    return this.#next;
  }

  /** Reads the registry soon, because a room is on a node that this process does not know. Never throws. */
  refreshSoon(): void {
    const now = performance.now();
    if (now - this.#lookedUpAtMs < LOOK_UP_EVERY_MS) return;
    this.#lookedUpAtMs = now;
    // The periodic read reports errors of the registry.
    this.refresh().catch(() => undefined);
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.all().map((node) => node.close()), ...this.#closing]);
  }

  async #read(): Promise<void> {
    const { readRegistry } = this.#options ?? {};
    if (readRegistry === undefined) return;
    const found = await readRegistry();
    if (this.#isClosed) return;
    const wanted = new Map(found.flatMap(usable).filter(([id]) => !this.isConfigured(id)));
    for (const [id, { url, node }] of this.#registered) if (wanted.get(id) !== url) this.#remove(id, node);
    for (const [id, url] of wanted) if (!this.#registered.has(id)) this.#add({ id, url });
  }

  #add(address: MediaNodeAddress): void {
    const { apiSecret = '', adminKey = '', random = () => 0, allowOutdated } = this.#options ?? {};
    const node = new MediaNode({ ...address, apiSecret, adminKey, random, allowOutdated });
    this.#registered.set(address.id, { url: address.url, node });
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
}

/** Assumed for nodes that name no capacity, so that they can be compared with others. */
export const CAPACITY_DEFAULT = 500;

/**
 * Chooses the node for a new room: of the healthy nodes that are not draining, the one whose capacity is used least, or
 * null if there is none. So a full node gets a new room only if all are full.
 * A room weighs as much as a participant. Otherwise many rooms created at once would all land on one node before anyone
 * joins them.
 * Ties go to the lowest id, so that processes which choose at the same time agree.
 */
export function chooseNode(healthyIds: readonly string[], loads: ReadonlyMap<string, NodeLoad>): string | null {
  const used = (id: string) => {
    const load = loads.get(id);
    return load === undefined ? 0 : (load.sessions + load.rooms) / (load.capacity ?? CAPACITY_DEFAULT);
  };
  const [best] = healthyIds
    .filter((id) => loads.get(id)?.draining !== true)
    .sort((a, b) => used(a) - used(b) || (a < b ? -1 : 1));
  return best ?? null;
}
