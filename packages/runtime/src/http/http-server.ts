import { ERROR_TABLE, newId, REQUEST_ID_PATTERN, type ErrorCode } from '@callplane/core';
import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** How long a connection may stay half open after the server has closed its side, in milliseconds. */
const LINGER_MS = 1500;

/**
 * Deadlines for callers, in milliseconds. A silent connection is gone after 10 seconds: 8 for its headers, 0.5 until the
 * check, 1.5 to read the answer.
 */
export const HTTP_DEADLINES = {
  /** From the first byte (or from the connection, if no byte arrives) to the end of the headers. */
  headersMs: 8_000,
  /** From the first byte to the end of the whole request. */
  requestMs: 30_000,
  /** How long a connection may be idle between two requests. */
  keepAliveMs: 5_000,
  /** How long a caller may leave an answer unread. Longer than the server needs for any answer. */
  stalledMs: 60_000,
  /** Interval of the checks for connections that have passed a deadline. Node's default is 30 seconds. */
  checkEveryMs: 500,
  lingerMs: LINGER_MS,
};
export type HttpDeadlines = typeof HTTP_DEADLINES;

export interface HttpServerOptions {
  deadlines?: Partial<HttpDeadlines>;
  /**
   * Called for every refusal that this server writes in place of the listener: of a request that Node's parser rejects,
   * and of a late one. A connection that cannot take an answer is closed without a call.
   * @param response the response of the request if the listener has received it, because only its body is late or
   *   broken; else null.
   */
  onRefused?: (refusal: Refusal, parserCode: string | undefined, response: ServerResponse | null) => void;
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

interface Exchanges {
  /** Exchanges whose answer has not ended, oldest first. A pipelining caller has several. */
  open: Set<Exchange>;
  /** The newest exchange. Its answer may have ended before its body arrived. */
  newest: Exchange | null;
  isRefused: boolean;
}

/**
 * Creates Node's HTTP server with enforced deadlines. Requests that its parser refuses get the standard error shape.
 * The listener has to check the `Host` header (`hostProblem`), because Node's own answer has another shape.
 */
export function createHttpServer(listener: RequestListener, options: HttpServerOptions = {}): Server {
  const deadlines = { ...HTTP_DEADLINES, ...options.deadlines };
  const server = createServer(
    {
      headersTimeout: deadlines.headersMs,
      requestTimeout: deadlines.requestMs,
      keepAliveTimeout: deadlines.keepAliveMs,
      connectionsCheckingInterval: deadlines.checkEveryMs,
      requireHostHeader: false,
    },
    listener,
  );
  server.timeout = deadlines.stalledMs;
  const connections = new WeakMap<Socket, Exchanges>();
  const exchangesOf = (socket: Socket): Exchanges => {
    let exchanges = connections.get(socket);
    if (exchanges === undefined) {
      const open = new Set<Exchange>();
      exchanges = { open, newest: null, isRefused: false };
      connections.set(socket, exchanges);
      socket.once('close', () => closeWaiting(open));
    }
    return exchanges;
  };
  server.prependListener('request', (request, response: ServerResponse) => {
    const exchanges = exchangesOf(request.socket);
    const exchange = { request, response };
    exchanges.newest = exchange;
    exchanges.open.add(exchange);
    response.once('close', () => exchanges.open.delete(exchange));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const exchanges = exchangesOf(socket);
    // Node reports a late connection at every check, and a broken one at every further packet.
    if (exchanges.isRefused) return;
    exchanges.isRefused = true;
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    refuseAfterAnswers(
      socket,
      exchanges,
      (broken) => {
        const requestId = broken === null ? newId('request') : requestIdOf(broken.request);
        const refusal = { ...refusalFor(error.code), requestId };
        options.onRefused?.(refusal, error.code, broken?.response ?? null);
        refuseSocket(socket, refusal, deadlines.lingerMs);
      },
      deadlines.lingerMs,
    );
  });
  // Serve requests with an unknown `Expect` header. Node would answer 417 in a format of its own.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  // Without a listener, Node closes the connection without an answer.
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    const refusal: Refusal = { status: 405, code: 'METHOD_NOT_ALLOWED', requestId: requestIdOf(request) };
    const exchanges = exchangesOf(socket);
    exchanges.isRefused = true;
    refuseAfterAnswers(socket, exchanges, () => refuseSocket(socket, refusal, deadlines.lingerMs), deadlines.lingerMs);
  });
  return server;
}

/**
 * Closes the answers that waited behind another answer of a connection that is closed. Node gives the connection to one
 * answer at a time and closes that one alone. Without this function, log lines, streams and unread bytes of the others
 * would never end. Sets the two fields that Node sets.
 */
function closeWaiting(open: ReadonlySet<Exchange>): void {
  for (const { response } of [...open]) {
    if (response.socket !== null || response.closed) continue;
    Object.assign(response, { destroyed: true, _closed: true });
    response.emit('close');
  }
}

/**
 * Refuses a bad request once the requests before it are answered. If the bad request is one whose body is late or
 * broken, the listener has received it: it is the newest exchange, and `refuse` gets it. If the listener has answered
 * it already, it gets no second answer.
 */
function refuseAfterAnswers(
  socket: Socket,
  { open, newest }: Exchanges,
  refuse: (broken: Exchange | null) => void,
  lingerMs: number,
): void {
  const broken = newest !== null && !newest.request.complete ? newest : null;
  const finish = (): void => {
    if ([...open].some((exchange) => exchange !== broken)) return;
    for (const stop of stops) stop();
    // An earlier answer with `connection: close` has already ended the connection.
    if (socket.destroyed) return;
    if (!socket.writable || broken?.response.headersSent === true) hangUp(socket, '', lingerMs);
    else refuse(broken);
  };
  // The listener above that deletes the exchange was added first, so the exchange is no longer open when this one runs.
  const stops = [...open].map(({ response }) => {
    response.once('close', finish);
    return () => response.off('close', finish);
  });
  finish();
}

function refusalFor(parserCode: string | undefined): { status: number; code: ErrorCode; message?: string } {
  switch (parserCode) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, code: 'HEADERS_TOO_LARGE' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, code: 'REQUEST_TIMEOUT' };
    default:
      return { status: 400, code: 'VALIDATION_FAILED', message: 'The request is not well-formed HTTP.' };
  }
}

/** An error with which a server answers before its application sees the request, or instead of it. */
export interface Refusal {
  status: number;
  code: ErrorCode;
  /** Default: the message of the error table. */
  message?: string;
  requestId: string;
  headers?: Readonly<Record<string, string>>;
}

/**
 * Returns the id of a request: a well-formed incoming `x-request-id`, or a new id, which takes the place of the header,
 * so that every call returns the same one.
 */
export function requestIdOf({ headers }: IncomingMessage): string {
  const incoming = headers['x-request-id'];
  if (typeof incoming === 'string' && REQUEST_ID_PATTERN.test(incoming)) return incoming;
  return (headers['x-request-id'] = newId('request'));
}

export function refuse(response: ServerResponse, refusal: Refusal): void {
  response.writeHead(refusal.status, refusalHeaders(refusal));
  response.end(refusalBody(refusal));
}

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
function hangUp(socket: Duplex, lastText = '', lingerMs = LINGER_MS): void {
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
 * Returns the fault of the `Host` header of a request, or null. With two headers, or with a value that is no
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
