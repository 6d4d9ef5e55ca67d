import { JanusNode } from './janus/janus-node.js';
import type { MediaNode } from './media-node.js';

export interface MediaNodeAddress {
  id: string;
  url: string;
}

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;

/**
 * Parses MEDIA_NODES, a list of `name=ws://host:port` with commas between. Throws an Error that says what is wrong;
 * it holds no part of a URL but its host.
 */
export function parseMediaNodes(text: string): MediaNodeAddress[] {
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const seen = new Set<string>();
  return entries.map((entry, index) => {
    const sign = entry.indexOf('=');
    const id = sign === -1 ? '' : entry.slice(0, sign).trim();
    if (!NAME.test(id)) {
      throw new Error(
        `entry ${index + 1} must be name=ws://host:port, with a name of letters a to z, digits and hyphens`,
      );
    }
    if (seen.has(id)) throw new Error(`the name ${id} is there twice`);
    seen.add(id);
    const address = entry.slice(sign + 1).trim();
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (url === undefined || !['ws:', 'wss:'].includes(url.protocol) || url.hostname === '') {
      throw new Error(`${id} must have a ws:// or wss:// URL`);
    }
    if (url.username !== '' || url.password !== '') throw new Error(`the URL of ${id} must not hold credentials`);
    return { id, url: url.href };
  });
}

export interface MediaNodesOptions {
  addresses: readonly MediaNodeAddress[];
  /** The same on every node. */
  apiSecret: string;
  adminKey: string;
  random: () => number;
}

/** Every media node that this process knows, each with a connection of its own. */
export class MediaNodes {
  readonly #nodes: ReadonlyMap<string, MediaNode>;

  constructor(nodes: readonly MediaNode[]) {
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
  }

  /** Connects to all of them; does not wait. Without addresses there is no media server, and nothing is ever up. */
  static open({ addresses, ...shared }: MediaNodesOptions): MediaNodes {
    return new MediaNodes(addresses.map((address) => new JanusNode({ ...address, ...shared })));
  }

  /** Undefined for a node that is not (any more) in MEDIA_NODES. */
  get(id: string): MediaNode | undefined {
    return this.#nodes.get(id);
  }

  all(): MediaNode[] {
    return [...this.#nodes.values()];
  }

  /** Those that answer at this moment. */
  up(): MediaNode[] {
    return this.all().filter((node) => node.state === 'up');
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await Promise.all(this.all().map((node) => node.close()));
  }
}
