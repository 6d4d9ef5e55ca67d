import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ERROR_TABLE, newId, REQUEST_ID_PATTERN, type ErrorCode } from '@callplane/core';

/** An error with which a server answers before its application sees the request, or instead of it. */
export interface Refusal {
  status: number;
  code: ErrorCode;
  /** Default: the message of the error table. */
  message?: string;
  requestId: string;
  headers?: Readonly<Record<string, string>>;
}

/** How long a connection may stay half open after the server has closed its side, in milliseconds. */
export const LINGER_MS = 1500;

const requestIds = new WeakMap<IncomingMessage, string>();

/** Returns the id of a request: a well-formed incoming `x-request-id`, or a new id, the same one at every call. */
export function requestIdOf(request: IncomingMessage): string {
  const incoming = request.headers['x-request-id'];
  if (typeof incoming === 'string' && REQUEST_ID_PATTERN.test(incoming)) return incoming;
  const known = requestIds.get(request);
  if (known !== undefined) return known;
  const made = newId('request');
  requestIds.set(request, made);
  return made;
}

/** Answers a request with a refusal. */
export function refuse(response: ServerResponse, refusal: Refusal): void {
  response.writeHead(refusal.status, refusalHeaders(refusal));
  response.end(refusalBody(refusal));
}

/** The body of a refusal, in the standard error shape. */
function refusalBody({ code, message = ERROR_TABLE[code].message, requestId }: Refusal): string {
  return JSON.stringify({ error: { code, message, requestId } });
}

/** The headers of a refusal. The connection closes after it. */
function refusalHeaders(refusal: Refusal): Record<string, string> {
  return {
    ...refusal.headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(refusalBody(refusal))),
    'x-request-id': refusal.requestId,
    connection: 'close',
  };
}

/** Writes a refusal to a connection without a `ServerResponse`, and ends the connection. */
export function refuseSocket(socket: Duplex, refusal: Refusal, lingerMs = LINGER_MS): void {
  const headers = Object.entries(refusalHeaders(refusal)).map(([name, value]) => `${name}: ${value}\r\n`);
  hangUp(
    socket,
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${headers.join('')}\r\n${refusalBody(refusal)}`,
    lingerMs,
  );
}

/**
 * Ends a connection: sends the last text and FIN, and destroys the socket once the peer has closed its side or
 * `lingerMs` has passed. `end` alone would leave the socket in FIN-WAIT-2 for as long as the peer stays silent.
 */
export function hangUp(socket: Duplex, lastText = '', lingerMs = LINGER_MS): void {
  // The peer may disconnect before the text arrives. An `error` event without a listener would end the process.
  socket.on('error', () => undefined);
  const timer = setTimeout(() => {
    // A reset leaves no connection behind in the kernel. It is only possible after the socket has sent its FIN.
    if (socket instanceof Socket && socket.writableFinished) socket.resetAndDestroy();
    else socket.destroy();
  }, lingerMs);
  socket.once('close', () => clearTimeout(timer));
  // Reads and drops input: the kernel answers unread input with a reset, and the peer would lose the text.
  socket.resume();
  socket.end(lastText);
}

/** A host name or an address, with or without a port. */
const HOST_PATTERN = /^[A-Za-z0-9._~%!$&'()*+,;=:[\]-]*$/;

/**
 * Returns what is wrong with the `Host` header of a request, or null. With two headers, or with a value that is no
 * host, a proxy and this server could see different hosts (RFC 9112, section 3.2).
 */
export function hostProblem(request: IncomingMessage): string | null {
  let count = 0;
  const { rawHeaders } = request;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n] ?? '';
    // Compares the length first for speed, because this runs for every header of every request.
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  if (count > 1) return 'must be sent once';
  if (count === 0) return isHttp11(request) ? 'is required' : null;
  return HOST_PATTERN.test(request.headers.host ?? '') ? null : 'must be a host name with an optional port';
}

/** Returns the refusal of a request with a wrong `Host` header, or null. For servers without middleware. */
export function hostRefusal(request: IncomingMessage): Omit<Refusal, 'requestId'> | null {
  const problem = hostProblem(request);
  if (problem === null) return null;
  return { status: 400, code: 'VALIDATION_FAILED', message: `The Host header ${problem}.` };
}

function isHttp11({ httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  return httpVersionMajor === 1 && httpVersionMinor >= 1;
}
