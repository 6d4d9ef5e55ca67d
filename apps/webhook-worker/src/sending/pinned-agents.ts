import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { openTunnel, type Proxy } from './tunnel.js';

interface Agents {
  readonly http: http.Agent;
  readonly https: https.Agent;
}

/** Agents that connect to one validated address of one origin. */
export interface PinnedAgent {
  readonly agent: Agents;
  /** Agents for one request on a connection that no request has used. */
  fresh(): Agents;
}

/**
 * Idle connections are closed after this time, in milliseconds. It is shorter than the 5 s of common servers, because a
 * request on a connection that the server is closing fails and has to be sent again.
 */
const IDLE_MS = 2000;

/**
 * Agents by origin and validated address, so that an attempt reuses only connections to the address that it has just
 * checked. An agent that the cache drops is not destroyed: its request continues, and {@link IDLE_MS} closes its idle
 * connections.
 */
export class PinnedAgents {
  readonly #agents: LRUCache<string, Agents>;
  readonly #idlePerAgentMax: number;

  readonly #tunnel: Tunnel | null;

  /**
   * @param idlePerAgentMax idle connections to one address; as many as attempts can use at once.
   * @param tunnel the way out; null: directly.
   */
  constructor({
    max = 200,
    idlePerAgentMax = 4,
    tunnel = null,
  }: { max?: number; idlePerAgentMax?: number; tunnel?: Tunnel | null } = {}) {
    this.#agents = new LRUCache({ max });
    this.#idlePerAgentMax = idlePerAgentMax;
    this.#tunnel = tunnel;
  }

  /** Whether the proxy resolves host names instead of this process. */
  get proxyResolves(): boolean {
    return this.#tunnel?.proxy.resolves ?? false;
  }

  /** @param address a judged address, or a host name if the proxy resolves names. */
  of(url: URL, address: string): PinnedAgent {
    const key = `${url.origin} ${address}`;
    let agent = this.#agents.get(key);
    if (agent === undefined) {
      const settings = { keepAlive: true, maxFreeSockets: this.#idlePerAgentMax, timeout: IDLE_MS };
      agent = newAgents(address, settings, this.#tunnel);
      this.#agents.set(key, agent);
    }
    return { agent, fresh: () => newAgents(address, { keepAlive: false }, this.#tunnel) };
  }

  close(): Promise<void> {
    for (const agent of this.#agents.values()) {
      agent.http.destroy();
      agent.https.destroy();
    }
    this.#agents.clear();
    return Promise.resolve();
  }
}

export interface Tunnel {
  proxy: Proxy;
  /** How long the connection may take, in milliseconds. */
  deadlineMs: number;
}

function newAgents(address: string, settings: http.AgentOptions, tunnel: Tunnel | null): Agents {
  if (tunnel !== null) {
    const agents = { http: new http.Agent(settings), https: new https.Agent(settings) };
    agents.http.createConnection = through(tunnel, address, false);
    agents.https.createConnection = through(tunnel, address, true);
    return agents;
  }
  // Overrides every other look-up, so that a changed DNS answer cannot lead to an unchecked address.
  const options = { ...settings, lookup: pinnedTo(address) };
  return { http: new http.Agent(options), https: new https.Agent(options) };
}

function through({ proxy, deadlineMs }: Tunnel, host: string, isTls: boolean) {
  const connect = (options: ConnectionOptions, callback: (error: Error | null, socket?: Socket) => void): undefined => {
    const port = options.port ?? (isTls ? 443 : 80);
    const destination = { host, port, tls: isTls ? options : null };
    openTunnel(proxy, destination, deadlineMs).then((socket) => callback(null, socket), callback);
  };
  return connect as unknown as http.Agent['createConnection'];
}

function pinnedTo(address: string): LookupFunction {
  const family = isIP(address);
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
