import { parseUrl } from '@callplane/core';
import type { TurnServerState } from '@callplane/db';
import type { RelayCloser, RelayMetrics } from '../metrics.js';
import { closeRelays, type Which } from './close-relays.js';
import { TurnAdminError, type TurnServer } from './turn-admin.js';

/** Result of closing relays on one TURN server. */
interface CloseOutcome {
  address: string;
  state: TurnServerState;
  closed: number;
  error?: TurnAdminError;
}

/** The relays of all TURN servers with a configured administration interface. There may be no such server. */
export interface Relays {
  readonly isConfigured: boolean;
  /** State of each server, by its address, at the last call of `close`. */
  states(): ReadonlyMap<string, TurnServerState>;
  /**
   * Closes relays on all servers concurrently, so that a slow one does not delay the others.
   * @throws what `which` throws.
   */
  close(by: RelayCloser, which: Which): Promise<CloseOutcome[]>;
}

export function createRelays(servers: readonly TurnServer[], metrics: RelayMetrics): Relays {
  const states = new Map<string, TurnServerState>();
  const closeOn = async (server: TurnServer, which: Which): Promise<CloseOutcome> => {
    const { address } = server;
    try {
      return { address, state: 'up', closed: await closeRelays(server, which) };
    } catch (error) {
      if (!(error instanceof TurnAdminError)) throw error;
      return { address, state: error.kind, closed: 0, error };
    }
  };
  return {
    isConfigured: servers.length > 0,
    states: () => states,
    async close(by, which) {
      const outcomes = await Promise.all(servers.map((server) => closeOn(server, which)));
      for (const { address, state, closed } of outcomes) {
        states.set(address, state);
        metrics.closed(by, closed);
        if (state !== 'up') metrics.failed(by);
      }
      return outcomes;
    },
  };
}

/**
 * Parses TURN_ADMIN_URLS.
 * @throws Error that names the wrong entry or the missing setting.
 */
export function parseTurnServers(urls: readonly string[], password: string | undefined): TurnServer[] {
  if (urls.length === 0) return [];
  if (password === undefined) throw new Error('administration interfaces require TURN_ADMIN_PASSWORD');
  return urls.map((text, index) => {
    const url = parseUrl(text);
    if (url === null || url.protocol !== 'telnet:' || url.hostname === '' || url.port === '') {
      throw new Error(`entry ${index + 1} must be telnet://host:port`);
    }
    if (url.username !== '' || url.password !== '') {
      throw new Error(`entry ${index + 1} must not contain a password; set TURN_ADMIN_PASSWORD instead`);
    }
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    return { address: url.host, host, port: Number(url.port), password };
  });
}
