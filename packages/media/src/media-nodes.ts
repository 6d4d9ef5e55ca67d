import { parseUrl } from '@callplane/core';
import { JanusNode } from './janus/janus-node.js';
import type { MediaNode } from './media-node.js';

export interface MediaNodeAddress {
  id: string;
  url: string;
}

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;

/**
 * Parses MEDIA_NODES, a comma-separated list of `name=ws://host:port`.
 * @throws Error that says what is wrong. The message holds no part of a URL, so that it cannot leak credentials.
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
    if (seen.has(id)) throw new Error(`the name ${id} is used more than once`);
    seen.add(id);
    const address = entry.slice(sign + 1).trim();
    const url = parseUrl(address);
    if (url === null || !['ws:', 'wss:'].includes(url.protocol) || url.hostname === '') {
      throw new Error(`${id} must have a ws:// or wss:// URL`);
    }
    if (url.username !== '' || url.password !== '') throw new Error(`the URL of ${id} must not contain credentials`);
    return { id, url: url.href };
  });
}

export interface MediaNodesOptions {
  addresses: readonly MediaNodeAddress[];
  /** The same secret on every node. */
  apiSecret: string;
  adminKey: string;
  random: () => number;
}

/** Every media node that this process knows, each with its own connection. */
export class MediaNodes {
  readonly #nodes: ReadonlyMap<string, MediaNode>;

  constructor(nodes: readonly MediaNode[]) {
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
  }

  /**
   * Starts to connect to all nodes without waiting. Without addresses there is no media server, and no node is ever up.
   */
  static open({ addresses, ...shared }: MediaNodesOptions): MediaNodes {
    return new MediaNodes(addresses.map((address) => new JanusNode({ ...address, ...shared })));
  }

  /** Undefined if the node is not, or no longer, in MEDIA_NODES. */
  get(id: string): MediaNode | undefined {
    return this.#nodes.get(id);
  }

  all(): MediaNode[] {
    return [...this.#nodes.values()];
  }

  /** The nodes that are up at this moment. */
  up(): MediaNode[] {
    return this.all().filter((node) => node.state === 'up');
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await Promise.all(this.all().map((node) => node.close()));
  }
}
