import type { IncomingMessage, ServerResponse } from 'node:http';
import { addressKey, boundDetails, boundMessage, PublicError } from '@callplane/core';
import { hostRefusal, KeyedBound, requestIdOf, type Logger } from '@callplane/runtime';
import type { SignalingMetrics } from '../metrics.js';
import { FRAGMENT_TYPE, SDP_TYPE, WHIP_PATH, type WhipAnswered, type WhipCaller } from './whip-requests.js';
import type { WhipRequests } from './whip-requests.js';
import { toPublicError, whipError } from './whip-errors.js';

const OFFER_BYTES_MAX = 64 * 1024;
const FRAGMENT_BYTES_MAX = 16 * 1024;
/** Bytes of a body beyond its bound that are read, so that the client gets the answer. */
const DISCARDED_BYTES_MAX = 1024 * 1024;
/** Requests that hold a body or wait for the media server: of all environments, and of one. */
const REQUESTS_MAX = 256;
const REQUESTS_PER_ENVIRONMENT_MAX = 64;
const SESSION_PATH = /^\/v1\/whip\/(sess_[0-7][0-9a-z]{25})$/;

export interface WhipServerDeps {
  logger: Logger;
  metrics: Pick<SignalingMetrics, 'whipRequest'>;
  requests: WhipRequests;
  callerAddress: (request: IncomingMessage) => string | undefined;
  /** `*`, or origins as browsers send them. */
  allowedOrigins: readonly string[];
  /** Whether a further session may begin here. */
  hasRoom: () => boolean;
}

interface Call extends WhipCaller {
  request: IncomingMessage;
  /** Null at the endpoint. */
  sessionId: string | null;
  isWaiting: () => boolean;
}

/** The HTTP of RFC 9725: methods, types, bounds of bodies, CORS, and errors in the shape of the REST API. */
export class WhipServer {
  readonly #running = new KeyedBound({ max: REQUESTS_MAX, perKeyMax: REQUESTS_PER_ENVIRONMENT_MAX });

  constructor(private readonly deps: WhipServerDeps) {}

  /** @returns false if the request is for another part of the server */
  readonly handle = (request: IncomingMessage, response: ServerResponse): boolean => {
    const [path = ''] = (request.url ?? '').split('?');
    if (path !== WHIP_PATH && !path.startsWith(`${WHIP_PATH}/`)) return false;
    void this.#serve(request, response, path);
    return true;
  };

  async #serve(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { callerAddress, logger, metrics } = this.deps;
    const startedAtMs = performance.now();
    const requestId = requestIdOf(request);
    const address = callerAddress(request);
    const [, sessionId = null] = SESSION_PATH.exec(path) ?? [];
    const { authorization } = request.headers;
    const isWaiting = () => !response.closed;
    const call = { request, sessionId, address, addressKey: addressKey(address), authorization, isWaiting };
    let code: string | undefined;
    let cause: unknown;
    const answer = await this.#answer(call, path).catch((thrown: unknown): WhipAnswered => {
      const error = toPublicError(thrown);
      ({ code, cause } = error);
      return { status: error.status, ...errorAnswer(error, requestId) };
    });
    this.#send(request, response, requestId, answer);
    const method = METHODS.has(request.method ?? '') ? (request.method as string) : 'other';
    metrics.whipRequest(method, answer.status);
    const durationMs = Math.round((performance.now() - startedAtMs) * 10) / 10;
    const begun = String(answer.headers['location'] ?? '')
      .split('/')
      .at(-1);
    const fields = {
      requestId,
      method,
      sessionId: sessionId ?? begun,
      ip: address,
      status: answer.status,
      durationMs,
      code,
    };
    logger[code === 'INTERNAL' ? 'error' : 'info'](
      'whip request',
      cause === undefined ? fields : { ...fields, error: cause },
    );
  }

  async #answer(call: Call, path: string): Promise<WhipAnswered> {
    const { request, sessionId } = call;
    const badHost = hostRefusal(request);
    if (badHost !== null) throw new PublicError('VALIDATION_FAILED', { message: badHost.message ?? '' });
    if (path !== WHIP_PATH && sessionId === null) throw whipError('SESSION_NOT_FOUND');
    if (request.method === 'OPTIONS') return this.#options(call);
    const allow = sessionId === null ? 'OPTIONS, POST' : 'OPTIONS, PATCH, DELETE';
    const isAllowed = allow.split(', ').includes(request.method ?? '');
    if (!isAllowed) throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow } });
    if (this.#running.total >= REQUESTS_MAX) throw whipError('UNAVAILABLE');
    const { requests } = this.deps;
    const authentic = await requests.authenticate(call, sessionId === null);
    const giveBack = this.#running.take(authentic.claims.tenant.environmentId);
    if (giveBack === null) throw whipError('RATE_LIMITED');
    try {
      if (sessionId === null) {
        if (!this.deps.hasRoom()) throw whipError('UNAVAILABLE');
        const sdp = await bodyOf(request, SDP_TYPE, OFFER_BYTES_MAX);
        return await requests.start(authentic, call.address, sdp, call.isWaiting);
      }
      if (request.method === 'DELETE') return await requests.end(authentic, sessionId);
      const body = await bodyOf(request, FRAGMENT_TYPE, FRAGMENT_BYTES_MAX);
      return await requests.patch(authentic, call.address, { sessionId, match: matchOf(request), body });
    } finally {
      giveBack();
    }
  }

  /** A preflight of a browser has no token. */
  async #options(call: Call): Promise<WhipAnswered> {
    const headers = call.sessionId === null ? { 'accept-post': SDP_TYPE } : { 'accept-patch': FRAGMENT_TYPE };
    if (call.authorization === undefined || call.sessionId !== null) return { status: 200, headers };
    const { requests } = this.deps;
    const link = await requests.iceServers(await requests.authenticate(call, true), call.address);
    return { status: 200, headers: { ...headers, link } };
  }

  #send(request: IncomingMessage, response: ServerResponse, requestId: string, answer: WhipAnswered): void {
    const { status, headers, text = '' } = answer;
    // A chunked 201 makes ffmpeg fail, so each answer with a body has its length.
    const length = status === 204 ? {} : { 'content-length': Buffer.byteLength(text) };
    const more = { 'x-request-id': requestId, connection: 'close', ...length };
    response.writeHead(status, { ...headers, ...this.#cors(request), ...more });
    response.end(text);
    request.resume();
  }

  #cors({ headers: { origin } }: IncomingMessage): Record<string, string> {
    const { allowedOrigins } = this.deps;
    const isOpen = allowedOrigins.includes('*');
    if (!isOpen && (origin === undefined || !allowedOrigins.includes(origin))) return { vary: 'Origin' };
    return {
      'access-control-allow-origin': isOpen ? '*' : (origin as string),
      'access-control-allow-methods': 'OPTIONS, POST, PATCH, DELETE',
      'access-control-allow-headers': 'Authorization, Content-Type, ETag, If-Match',
      'access-control-expose-headers': 'Location, ETag, Link, Accept-Post, Accept-Patch, Retry-After, X-Request-Id',
      'access-control-max-age': '600',
      ...(isOpen ? {} : { vary: 'Origin' }),
    };
  }
}

/** @eyevinn/whip-web-client sends the tag in the header in which it got it. */
function matchOf({ headers }: IncomingMessage): string | undefined {
  return headers['if-match'] ?? headers.etag;
}

/** Others share one series of the metric. */
const METHODS = new Set(['OPTIONS', 'POST', 'PATCH', 'DELETE', 'GET', 'HEAD', 'PUT']);

function errorAnswer(
  { code, message, details, headers }: PublicError,
  requestId: string,
): Omit<WhipAnswered, 'status'> {
  const shown = details === undefined ? {} : { details: boundDetails(details) };
  const error = { code, message: boundMessage(message), requestId, ...shown };
  return {
    headers: { ...headers, 'content-type': 'application/json; charset=utf-8' },
    text: JSON.stringify({ error }),
  };
}

async function bodyOf(request: IncomingMessage, type: string, bytesMax: number): Promise<string> {
  const [given = ''] = (request.headers['content-type'] ?? '').split(';');
  if (given.trim().toLowerCase() !== type) {
    throw new PublicError('UNSUPPORTED_MEDIA_TYPE', {
      message: `Send the body as "Content-Type: ${type}".`,
      headers: type === SDP_TYPE ? { 'accept-post': type } : { 'accept-patch': type },
    });
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes <= bytesMax) chunks.push(chunk);
      else if (bytes > bytesMax + DISCARDED_BYTES_MAX) break;
    }
  } catch {
    // The client has gone, or was too slow.
    throw new PublicError('REQUEST_TIMEOUT');
  }
  if (bytes > bytesMax) {
    throw new PublicError('PAYLOAD_TOO_LARGE', { message: `The body may have ${bytesMax} bytes.` });
  }
  return Buffer.concat(chunks).toString('utf8');
}
