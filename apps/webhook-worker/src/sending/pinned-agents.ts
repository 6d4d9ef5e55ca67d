import http, { type ClientRequest } from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';

/** Requests to one validated address of one origin. Call `release` after use. */
export interface PinnedAgent {
  /**
   * Begins a POST, whose body the caller sends.
   * @param isFresh takes a connection that no request has used.
   */
  post(headers: Record<string, string>, isFresh: boolean): ClientRequest;
  release(): void;
}

/**
 * Idle connections are closed after this time, in milliseconds. It is shorter than the 5 s of common servers, because a
 * request on a connection that the server is closing fails and has to be sent again.
 */
const IDLE_MS = 2000;

interface Entry {
  readonly agent: http.Agent;
  users: number;
}

interface Settings {
  /** Agents that are kept. */
  max?: number;
  /** Idle connections to one address; as many as attempts can use at once. */
  idlePerAgentMax?: number;
  /** Certificates to trust instead of those of the system; for tests. */
  certificateAuthority?: string;
}

/**
 * Agents by origin and validated address, so that an attempt reuses only connections to the address that it has just
 * checked. Eviction removes the least recently used agent without users first.
 */
export class PinnedAgents {
  readonly #entries = new Map<string, Entry>();
  readonly #max: number;
  readonly #options: https.AgentOptions;

  constructor({ max = 200, idlePerAgentMax = 4, certificateAuthority }: Settings = {}) {
    this.#max = max;
    this.#options = {
      maxFreeSockets: idlePerAgentMax,
      timeout: IDLE_MS,
      ...(certificateAuthority === undefined ? {} : { ca: certificateAuthority }),
    };
  }

  acquire(url: URL, address: string): PinnedAgent {
    const { Agent, request } = url.protocol === 'https:' ? https : http;
    // Overrides every other look-up, so that a changed DNS answer cannot lead to an unchecked address.
    const options = { ...this.#options, lookup: pinnedTo(address) };
    const key = `${url.origin} ${address}`;
    const entry = this.#entries.get(key) ?? { agent: new Agent({ ...options, keepAlive: true }), users: 0 };
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.users += 1;
    this.#evict();
    return {
      post: (headers, isFresh) =>
        request(url, { method: 'POST', headers, agent: isFresh ? new Agent(options) : entry.agent }),
      release: () => {
        entry.users -= 1;
      },
    };
  }

  close(): void {
    for (const { agent } of this.#entries.values()) agent.destroy();
    this.#entries.clear();
  }

  #evict(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= this.#max) return;
      if (entry.users > 0) continue;
      this.#entries.delete(key);
      entry.agent.destroy();
    }
  }
}

function pinnedTo(address: string): LookupFunction {
  const family = isIP(address);
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
