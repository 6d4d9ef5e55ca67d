import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { LRUCache } from 'lru-cache';

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

  /** @param idlePerAgentMax idle connections to one address; as many as attempts can use at once. */
  constructor({ max = 200, idlePerAgentMax = 4 } = {}) {
    this.#agents = new LRUCache({ max });
    this.#idlePerAgentMax = idlePerAgentMax;
  }

  of(url: URL, address: string): PinnedAgent {
    const key = `${url.origin} ${address}`;
    let agent = this.#agents.get(key);
    if (agent === undefined) {
      agent = newAgents(address, { keepAlive: true, maxFreeSockets: this.#idlePerAgentMax, timeout: IDLE_MS });
      this.#agents.set(key, agent);
    }
    return { agent, fresh: () => newAgents(address, { keepAlive: false }) };
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

function newAgents(address: string, settings: http.AgentOptions): Agents {
  // Overrides every other look-up, so that a changed DNS answer cannot lead to an unchecked address.
  const options = { ...settings, lookup: pinnedTo(address) };
  return { http: new http.Agent(options), https: new https.Agent(options) };
}

function pinnedTo(address: string): LookupFunction {
  const family = isIP(address);
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
