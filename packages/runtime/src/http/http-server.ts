import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { newId, type ErrorCode } from '@callplane/core';
import { hangUp, LINGER_MS, refuseSocket, requestIdOf, type Refusal } from './refusal.js';

/** Deadlines for callers, in milliseconds. */
export interface HttpDeadlines {
  /** From the first byte (or from the connection, if no byte arrives) to the end of the headers. */
  headersMs: number;
  /** From the first byte to the end of the whole request. */
  requestMs: number;
  /** How long a connection may be idle between two requests. */
  keepAliveMs: number;
  /** How long a caller may leave an answer unread. Longer than the server needs for any answer. */
  stalledMs: number;
  /** Interval of the checks for connections that have passed a deadline. Node's default is 30 seconds. */
  checkEveryMs: number;
  /** How long a connection may stay half open after its last answer. */
  lingerMs: number;
}

/** A silent connection is gone after 10 seconds: 8 for its headers, 0.5 until the check, 1.5 to read the answer. */
export const HTTP_DEADLINES: HttpDeadlines = {
  headersMs: 8_000,
  requestMs: 30_000,
  keepAliveMs: 5_000,
  stalledMs: 60_000,
  checkEveryMs: 500,
  lingerMs: LINGER_MS,
};

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

/** A request and the answer to it. */
interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

/** The exchanges of a connection. */
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
    refuseInTurn(
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
    refuseInTurn(socket, exchanges, () => refuseSocket(socket, refusal, deadlines.lingerMs), deadlines.lingerMs);
  });
  return server;
}

/**
 * Closes the answers that waited behind another answer of a connection that is closed. Node gives the connection to one
 * answer at a time and closes that one alone, so that whatever ends with the others would stay for ever: log lines,
 * streams, and the bytes of unread answers. Sets the two fields that Node sets.
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
function refuseInTurn(
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
