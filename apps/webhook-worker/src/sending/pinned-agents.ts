import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';

interface Agents {
  readonly http: http.Agent;
  readonly https: https.Agent;
}

/** Agents that connect to one validated address of one origin. Call `release` after use. */
export interface PinnedAgent {
  readonly agent: Agents;
  /** Agents for one request on a connection that no request has used. */
  fresh(): Agents;
  release(): void;
}

/**
 * Idle connections are closed after this time, in milliseconds. It is shorter than the 5 s of common servers, because a
 * request on a connection that the server is closing fails and has to be sent again.
 */
const IDLE_MS = 2000;

interface Entry {
  readonly agent: Agents;
  users: number;
}

/**
 * Agents by origin and validated address, so that an attempt reuses only connections to the address that it has just
 * checked. Eviction removes the least recently used agent without users first.
 */
export class PinnedAgents {
  readonly #entries = new Map<string, Entry>();
  readonly #max: number;
  readonly #idlePerAgentMax: number;

  /** @param idlePerAgentMax idle connections to one address; as many as attempts can use at once. */
  constructor({ max = 200, idlePerAgentMax = 4 } = {}) {
    this.#max = max;
    this.#idlePerAgentMax = idlePerAgentMax;
  }

  acquire(url: URL, address: string): PinnedAgent {
    const key = `${url.origin} ${address}`;
    const entry = this.#entries.get(key) ?? newEntry(address, this.#idlePerAgentMax);
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.users += 1;
    this.#evict();
    return {
      agent: entry.agent,
      fresh: () => newAgents(address, { keepAlive: false }),
      release: () => {
        entry.users -= 1;
      },
    };
  }

  get size(): number {
    return this.#entries.size;
  }

  close(): Promise<void> {
    for (const { agent } of this.#entries.values()) destroy(agent);
    this.#entries.clear();
    return Promise.resolve();
  }

  #evict(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= this.#max) return;
      if (entry.users > 0) continue;
      this.#entries.delete(key);
      destroy(entry.agent);
    }
  }
}

function newEntry(address: string, idleMax: number): Entry {
  return { agent: newAgents(address, { keepAlive: true, maxFreeSockets: idleMax, timeout: IDLE_MS }), users: 0 };
}

function newAgents(address: string, settings: http.AgentOptions): Agents {
  // Overrides every other look-up, so that a changed DNS answer cannot lead to an unchecked address.
  const options = { ...settings, lookup: pinnedTo(address) };
  return { http: new http.Agent(options), https: new https.Agent(options) };
}

function destroy(agent: Agents): void {
  agent.http.destroy();
  agent.https.destroy();
}

function pinnedTo(address: string): LookupFunction {
  const family = isIP(address);
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
