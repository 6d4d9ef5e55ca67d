import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { PROTOCOL_LIMITS, SUBPROTOCOL } from '@callplane/protocol';
import { hostRefusal, refuseSocket, requestIdOf, type Logger, type Refusal } from '@callplane/runtime';
import proxyAddr from 'proxy-addr';
import { WebSocketServer, type WebSocket } from 'ws';
import { DRAINS, type Client, type ClientHandler } from '../clients/client.js';
import { Connection, type ConnectionSettings } from './connection.js';
import { Outbox } from './outbox.js';

const SIGNALING_PATH = '/v1/signaling';

/**
 * ws refuses larger frames by itself, with close code 1009 and no `closing` message. The gateway reads a frame between
 * the protocol's limit and this one, so that it can tell the sender the reason.
 */
const FRAME_BYTES_HARD_MAX = 4 * PROTOCOL_LIMITS.frameBytesMax;
/** Fragments of one message. Each costs an object until the message is complete, and browsers send few. */
const FRAGMENTS_MAX = 64;
/** Frame headers and control frames that a client may send besides its first message, in bytes. */
const FIRST_FRAME_OVERHEAD_BYTES = 4096;
const CHECK_EVERY_MS = 1000;
/** Time over which a drain spreads its closes, in milliseconds, so that clients do not reconnect all at once. */
const DRAIN_OVER_MS = 1500;

export interface UpgradeSettings {
  /** `*`, or origins as browsers send them. */
  allowedOrigins: readonly string[];
  connectionsMax: number;
  isDraining: () => boolean;
  callerAddress: CallerAddress;
}

/** Accepts WebSocket upgrades. Checks their path, sub-protocol and origin, and the number of open connections. */
export function acceptUpgrades(
  server: Server,
  connections: Pick<Connections, 'count' | 'accept'>,
  settings: UpgradeSettings,
): void {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // A connection answers pings itself, so that no answers pile up for a client that reads nothing.
    autoPong: false,
    maxPayload: FRAME_BYTES_HARD_MAX,
    maxFragments: FRAGMENTS_MAX,
    maxBufferedChunks: 4096,
    handleProtocols: () => SUBPROTOCOL,
  });
  sockets.on('headers', (headers, request) => headers.push(`x-request-id: ${requestIdOf(request)}`));
  server.on('upgrade', (request, socket, head) => {
    // Until ws takes the socket, no other listener handles its errors, and an unhandled 'error' event ends the process.
    socket.on('error', () => socket.destroy());
    // The count is exact: a handshake completes in the event-loop tick of its request.
    const refusal = refusalOf(request, connections.count, settings);
    if (refusal !== null) {
      refuseSocket(socket, { ...refusal, requestId: requestIdOf(request) });
      return;
    }
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      const connection = connections.accept({ webSocket: accepted, socket }, settings.callerAddress(request));
      limitFirstMessage(socket, head.length, connection);
    });
  });
}

/**
 * Bounds the bytes that a connection may send before its first message is complete. ws reports complete messages only,
 * and many connections with unfinished ones would fill the memory of the process.
 */
function limitFirstMessage(socket: Duplex, headBytes: number, connection: Connection): void {
  let bytes = headBytes;
  const count = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (connection.isIntroduced || !connection.isOpen) socket.off('data', count);
    else if (bytes > PROTOCOL_LIMITS.firstFrameBytesMax + FIRST_FRAME_OVERHEAD_BYTES) {
      socket.off('data', count);
      connection.close('message_too_large', { cause: `The first message is incomplete after ${bytes} bytes.` });
      // The gateway reads nothing more. The connection's close timer terminates the socket.
      socket.pause();
    }
  };
  socket.on('data', count);
}

function refusalOf(
  request: IncomingMessage,
  count: number,
  settings: UpgradeSettings,
): Omit<Refusal, 'requestId'> | null {
  const badHost = hostRefusal(request);
  if (badHost !== null) return badHost;
  if (request.url?.split('?')[0] !== SIGNALING_PATH) return { status: 404, code: 'ROUTE_NOT_FOUND' };
  const message = unavailability(count, settings);
  if (message !== null) return { status: 503, code: 'UNAVAILABLE', message, headers: { 'retry-after': '1' } };
  const { origin } = request.headers;
  if (origin !== undefined && !settings.allowedOrigins.includes('*') && !settings.allowedOrigins.includes(origin)) {
    return { status: 403, code: 'ORIGIN_NOT_ALLOWED' };
  }
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());
  if (offered.includes(SUBPROTOCOL)) return null;
  return { status: 400, code: 'VALIDATION_FAILED', message: `Offer the WebSocket sub-protocol ${SUBPROTOCOL}.` };
}

function unavailability(count: number, settings: UpgradeSettings): string | null {
  if (settings.isDraining()) return 'The gateway is shutting down. Connect again to reach another instance.';
  if (count < settings.connectionsMax) return null;
  return 'The gateway has reached its connection limit. Try again shortly.';
}

export class Connections {
  readonly #connections = new Set<Connection>();
  readonly #timer: NodeJS.Timeout;
  #accepted = 0;

  constructor(
    private readonly logger: Logger,
    private readonly settings: ConnectionSettings,
    private readonly handler: ClientHandler,
  ) {
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      for (const connection of this.#connections) connection.check(nowMs);
      Outbox.cutStalled();
    }, CHECK_EVERY_MS);
  }

  /** Number of WebSockets. One counts until its socket is closed. */
  get count(): number {
    return this.#connections.size;
  }

  accept(sockets: { webSocket: WebSocket; socket: Duplex }, address: string | undefined): Connection {
    this.#accepted += 1;
    const client = { id: `conn_${this.#accepted}`, address };
    const connection = new Connection(client, sockets, this.settings, this.handler);
    this.#connections.add(connection);
    void connection.closed().then(() => this.#onClosed(connection));
    return connection;
  }

  /** Closes connections with the reason `drain`, spread over DRAIN_OVER_MS. */
  async sendAway(isMeant: (client: Client) => boolean = () => true): Promise<void> {
    const open = [...this.#connections].filter((connection) => connection.isOpen && isMeant(connection));
    const pauseMs = Math.min(DRAIN_OVER_MS / Math.max(open.length, 1), 50);
    // Timers fire at most once per millisecond, so that many connections have to close in groups.
    const together = Math.ceil(open.length / (DRAIN_OVER_MS / Math.max(pauseMs, 1)));
    for (const [at, connection] of open.entries()) {
      if (at > 0 && at % together === 0) await delay(pauseMs);
      connection.close('drain', { cause: DRAINS });
    }
  }

  /** Logs how a connection ended, and why. The socket's close code is part of the line. */
  #onClosed(connection: Connection): void {
    this.#connections.delete(connection);
    // A client beyond a limit reconnects often. The limit's own log line, whose rate is bounded, covers it.
    if (connection.ending === 'too_many_attempts') return;
    this.logger.info('connection', {
      connectionId: connection.id,
      reason: connection.ending,
      ...connection.logFields,
      durationMs: Math.round(performance.now() - connection.openedAtMs),
      ...connection.traffic,
    });
  }

  /** Resolves when all sockets are closed. Call it after {@link sendAway}. */
  async close(): Promise<void> {
    await Promise.all([...this.#connections].map((connection) => connection.closed()));
    clearInterval(this.#timer);
  }
}

export type CallerAddress = (request: IncomingMessage) => string | undefined;

/**
 * @param trusted TRUST_PROXY: addresses and ranges of proxies, or their number. If it is empty, `X-Forwarded-For` is
 *   ignored.
 * @throws TypeError if an entry is not an address.
 */
export function createCallerAddress(trusted: readonly string[]): CallerAddress {
  const [first = ''] = trusted;
  const isNumber = trusted.length === 1 && /^\d+$/.test(first);
  const trust = isNumber
    ? (_address: string, hop: number): boolean => hop < Number(first)
    : proxyAddr.compile([...trusted]);
  return (request) => (request.socket.remoteAddress === undefined ? undefined : proxyAddr(request, trust));
}
