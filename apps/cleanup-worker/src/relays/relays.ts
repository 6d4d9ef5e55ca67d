import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parseUrl, sessionOfUsername } from '@callplane/core';
import type { TurnServerState } from '@callplane/db';
import type { RelayCloser, RelayMetrics } from '../metrics.js';

interface CloseOutcome {
  address: string;
  state: TurnServerState;
  closed: number;
  error?: TurnAdminError;
}

export type Relays = ReturnType<typeof createRelays>;

/** The relays of all TURN servers with a configured administration interface. There may be no such server. */
export function createRelays(servers: readonly TurnServer[], metrics: RelayMetrics) {
  const states = new Map<string, TurnServerState>();
  const closeOn = async (server: TurnServer, by: RelayCloser, which: Which): Promise<CloseOutcome> => {
    const { address } = server;
    try {
      return { address, state: 'up', closed: await closeRelays(server, which, by === 'sweep') };
    } catch (error) {
      if (!(error instanceof TurnAdminError)) throw error;
      return { address, state: error.kind, closed: 0, error };
    }
  };
  return {
    isConfigured: servers.length > 0,
    /** State of each server, by its address, at the last call of `close`. */
    states: (): ReadonlyMap<string, TurnServerState> => states,
    /**
     * Closes relays on all servers concurrently, so that a slow one does not delay the others; in a sweep, also relays
     * that a peer connection has replaced.
     * @throws every error of `which`.
     */
    async close(by: RelayCloser, which: Which): Promise<CloseOutcome[]> {
      const outcomes = await Promise.all(servers.map((server) => closeOn(server, by, which)));
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

type Which = (sessionIds: string[]) => Promise<readonly string[]>;

/** coturn closes a relay in another thread. Interval between checks that it is closed, in milliseconds. */
const LOOK_EVERY_MS = 50;

/** Of a peer connection: the latest one, and the one before it, which carries the media until the latest one does. */
const CREDENTIALS_KEPT = 2;

/**
 * Closes relays of a TURN server and waits until they are closed. Relays that a client allocates meanwhile are left to
 * the next call, so that a client that keeps allocating cannot keep this call busy.
 * @returns the number of closed relays.
 * @throws TurnAdminError
 */
export async function closeRelays(server: TurnServer, which: Which, closesReplaced = false): Promise<number> {
  return inTurnAdmin(server, async (run) => {
    const all = await usernamesOf(run);
    const bySession = groupBy(all, (username) => sessionOfUsername(username) ?? '');
    const sessions = bySession.size === 0 ? [] : await which([...bySession.keys()]);
    const usernames = new Set(sessions.flatMap((sessionId) => bySession.get(sessionId) ?? []));
    if (closesReplaced) for (const username of await replacedOf(run, all)) usernames.add(username);
    const left = new Map<string, Set<string>>();
    let closed = 0;
    for (const username of usernames) {
      const ids = new Set((await relaysOf(run, username)).keys());
      closed += ids.size;
      if (ids.size > 0) left.set(username, ids);
      for (const id of ids) await run(`cs ${id}`);
    }
    // `inTurnAdmin` limits the time of the whole dialog, and with it this loop.
    while (left.size > 0) {
      for (const [username, ids] of left) {
        const present = await relaysOf(run, username);
        if ([...ids].every((id) => !present.has(id))) left.delete(username);
      }
      if (left.size > 0) await delay(LOOK_EVERY_MS);
    }
    return closed;
  });
}

/** `pu` prints one line per user with a relay, such as `    user: <1795301187:sess_…>, 2 sessions`. */
async function usernamesOf(run: RunCommand): Promise<string[]> {
  const lines = (await run('pu')).matchAll(/^ +user: <([^<>\r\n]*)>, \d+ sessions\r?$/gm);
  // Skips credentials of environments and of other services that share the server.
  return [...lines].map(([, username = '']) => username).filter((username) => sessionOfUsername(username) !== null);
}

/** The credentials of peer connections that have relays of at least two later ones. */
async function replacedOf(run: RunCommand, usernames: readonly string[]): Promise<string[]> {
  const replaced: string[] = [];
  for (const [subject, own] of groupBy(usernames, (username) => username.slice(username.indexOf(':') + 1))) {
    // Credentials of a session as a whole replace none: an application may use several.
    if (own.length <= CREDENTIALS_KEPT || !subject.includes(':')) continue;
    const ages: { username: string; seconds: number }[] = [];
    // The expiry is of no use here: gateways' clocks differ.
    for (const username of own) ages.push({ username, seconds: Math.min(...(await relaysOf(run, username)).values()) });
    ages.sort((a, b) => a.seconds - b.seconds);
    replaced.push(...ages.slice(CREDENTIALS_KEPT).map(({ username }) => username));
  }
  return replaced;
}

function groupBy<T>(values: readonly T[], keyOf: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

/** `ps <username>` prints a relay as in `RELAY`, with further lines. */
const RELAY =
  /^ +\d+\) id=(\d{1,20}), user <([^<>\r\n]*)>:\r?\n[^]*?^ +started(?:: undefined time| (\d+) secs ago)\r?$/gm;

/** @returns the age of each relay in seconds, by its id */
async function relaysOf(run: RunCommand, username: string): Promise<Map<string, number>> {
  const relays = (await run(`ps ${username}`)).matchAll(RELAY);
  // The age of a relay of this moment is undefined.
  return new Map([...relays].flatMap(([, id = '', user, age = 0]) => (user === username ? [[id, Number(age)]] : [])));
}

/** The administration interface of a coturn: an unencrypted text protocol over TCP, protected by a password. */
export interface TurnServer {
  /** Host and port. */
  address: string;
  host: string;
  port: number;
  password: string;
}

/** `down`: the port refuses connections, so no coturn runs. `unreachable`: any other failure, or a wrong password. */
class TurnAdminError extends Error {
  readonly kind: 'down' | 'unreachable';

  constructor(kind: 'down' | 'unreachable', address: string, problem: string) {
    super(`coturn at ${address}: ${problem}`);
    this.kind = kind;
  }
}

/** Sends one command and resolves to its output. */
type RunCommand = (command: string) => Promise<string>;

/** Bounds of one dialog. `pu` has the longest output, about 50 bytes for each user with a relay. */
const CONNECT_WITHIN_MS = 2000;
const DIALOG_WITHIN_MS = 5000;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

const PROMPT = /(?:^|\n)> $/;
const PASSWORD_PROMPT = /Enter password: \s*$/;

/**
 * Logs in, runs `work` and disconnects.
 * @throws TurnAdminError at any point of the work. It never contains the password or output.
 */
async function inTurnAdmin<T>(server: TurnServer, work: (run: RunCommand) => Promise<T>): Promise<T> {
  const socket = connect({ host: server.host, port: server.port });
  let output = '';
  let failure: TurnAdminError | null = null;
  let waiting: { until: RegExp; resolve: (output: string) => void; reject: (error: Error) => void } | null = null;

  const fail = (kind: TurnAdminError['kind'], problem: string) => {
    failure ??= new TurnAdminError(kind, server.address, problem);
    waiting?.reject(failure);
    waiting = null;
    socket.destroy();
  };
  const resolveWaiting = () => {
    if (waiting === null || !waiting.until.test(output.slice(-64))) return;
    const { resolve } = waiting;
    waiting = null;
    resolve(output);
  };
  const read = (until: RegExp) =>
    new Promise<string>((resolve, reject) => {
      if (failure !== null) {
        reject(failure);
        return;
      }
      waiting = { until, resolve, reject };
      resolveWaiting();
    });

  const connectTimer = setTimeout(() => fail('unreachable', 'connection timed out'), CONNECT_WITHIN_MS);
  const dialogTimer = setTimeout(() => fail('unreachable', 'response timed out'), DIALOG_WITHIN_MS);
  socket.once('connect', () => clearTimeout(connectTimer));
  socket.on('data', (chunk) => {
    output += chunk.toString('latin1');
    if (output.length > OUTPUT_BYTES_MAX) fail('unreachable', 'too much output');
    else resolveWaiting();
  });
  socket.on('error', (error: NodeJS.ErrnoException) =>
    fail(error.code === 'ECONNREFUSED' ? 'down' : 'unreachable', error.code ?? 'connection failed'),
  );
  socket.on('close', () => fail('unreachable', 'connection closed'));

  const run = (command: string, until = PROMPT) => {
    output = '';
    socket.write(`${command}\r\n`);
    return read(until);
  };
  try {
    await read(PASSWORD_PROMPT);
    // coturn answers a wrong password with another password prompt.
    const answer = await run(server.password, /(?:(?:^|\n)> |Enter password: \s*)$/);
    if (!PROMPT.test(answer)) throw new TurnAdminError('unreachable', server.address, 'password refused');
    return await work(run);
  } finally {
    clearTimeout(connectTimer);
    clearTimeout(dialogTimer);
    socket.removeAllListeners('close');
    socket.destroy();
  }
}
