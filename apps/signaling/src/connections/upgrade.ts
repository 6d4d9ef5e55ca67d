import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { PROTOCOL_LIMITS, SUBPROTOCOL } from '@callplane/protocol';
import { WebSocketServer } from 'ws';
import type { CallerAddress } from './caller-address.js';
import type { Connections } from './connections.js';

export const SIGNALING_PATH = '/v1/signaling';

/**
 * What ws refuses by itself, without a word but the close code 1009. A frame between the protocol's limit and this is
 * read, so that its sender can be told.
 */
const FRAME_BYTES_HARD_MAX = 4 * PROTOCOL_LIMITS.frameBytesMax;

export interface UpgradeSettings {
  /** `*`, or origins as browsers send them. */
  allowedOrigins: readonly string[];
  connectionsMax: number;
  isDraining: () => boolean;
  callerAddress: CallerAddress;
}

/** Lets WebSockets in: the path, the sub-protocol, the page that they come from, and how many there are. */
export function acceptUpgrades(server: Server, connections: Connections, settings: UpgradeSettings): void {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES_HARD_MAX,
    handleProtocols: () => SUBPROTOCOL,
  });
  // How many are let in but not yet counted: a handshake ends in the same turn, so none ever is.
  server.on('upgrade', (request, socket, head) => {
    // Until ws has it nobody else listens, and an error without a listener ends the process.
    socket.on('error', () => socket.destroy());
    const refusal = judge(request, connections.count, settings);
    if (refusal !== null) {
      refuse(socket, refusal);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      connections.accept(accepted, settings.callerAddress(request));
    });
  });
}

function judge(request: IncomingMessage, count: number, settings: UpgradeSettings): string | null {
  if (request.url?.split('?')[0] !== SIGNALING_PATH) return '404 Not Found';
  if (settings.isDraining() || count >= settings.connectionsMax) return '503 Service Unavailable';
  const { origin } = request.headers;
  if (origin !== undefined && !settings.allowedOrigins.includes('*') && !settings.allowedOrigins.includes(origin)) {
    return '403 Forbidden';
  }
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());
  return offered.includes(SUBPROTOCOL) ? null : '400 Bad Request';
}

function refuse(socket: Duplex, status: string): void {
  const retry = status.startsWith('503') ? 'retry-after: 1\r\n' : '';
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n${retry}\r\n`);
}
