import { parseTraceparent, type Caller, type ErrorCode } from '@callplane/core';
import { isTracing, requestIdOf, startSpan, type Span } from '@callplane/runtime';
import type { NextFunction, Request, Response } from 'express';
import type { Route } from './route.js';

/** How the caller of a key or session is looked up. */
export interface LookUpOptions {
  /**
   * Whether the look-up may wait for others and share one statement with them. `true`: it fails as `UNAVAILABLE` while
   * too many wait. `if_room`: it then has a statement of its own.
   */
  inBatch?: boolean | 'if_room';
}

/** Looks up the caller of an API key. */
export interface CallerDirectory {
  /** Whether this process has found the key in the database before. Includes revoked and expired keys. */
  hasSeen(keyHash: Buffer): boolean;
  /** Returns null if the key is unknown, revoked or expired. */
  find(keyHash: Buffer, options?: LookUpOptions): Promise<Caller | null>;
}

/** State of one request. Middleware fills it in; handlers and the request log read it. */
export interface RequestContext {
  readonly requestId: string;
  /**
   * W3C Trace Context of what the request causes: that of its span, or without OpenTelemetry that of its header. Null if
   * the header is missing or malformed.
   */
  readonly traceparent: string | null;
  /** Null without OpenTelemetry. */
  readonly span: Span | null;
  readonly startedAtMs: number;
  /** Address of the client. Express finds it anew at each access, and a socket that has closed no longer knows it. */
  readonly ip: string | undefined;
  caller: Caller | null;
  /** Whether the key of the caller is still valid. Looks it up again if the result in the cache is too old. */
  isKeyValid: (options?: LookUpOptions) => Promise<boolean>;
  /** Time that the request waited as its caller wished, in milliseconds. */
  waitedMs: number;
  /** Pattern of the matched route; null until a route matches. */
  route: string | null;
  errorCode: string | null;
  /** Set if the HTTP server has answered in place of Express, because the body was late or broken. */
  refusal: { status: number; errorCode: ErrorCode; parserCode: string | undefined } | null;
  /** The internal cause of an error: logged, never sent. */
  cause: unknown;
  readonly logFields: Record<string, unknown>;
  /** Headers of the answer. `respond.ts` writes all of them in one call. */
  readonly headers: Record<string, string>;
}

/**
 * Creates the context of each request. Keeps a well-formed incoming `x-request-id`, otherwise generates one.
 * @param headers that every answer carries.
 */
export function requestContext(headers: Readonly<Record<string, string>>) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const requestId = requestIdOf(request);
    const { traceparent } = request.headers;
    const sent = traceparent === undefined ? null : parseTraceparent(traceparent);
    const span = spanOf(request, sent);
    const context: RequestContext = {
      requestId,
      traceparent: span === null ? sent : span.traceparent,
      span,
      startedAtMs: performance.now(),
      ip: request.ip,
      caller: null,
      isKeyValid: () => Promise.resolve(false),
      waitedMs: 0,
      route: null,
      errorCode: null,
      refusal: null,
      cause: null,
      logFields: {},
      headers: { ...headers, 'x-request-id': requestId },
    };
    response.locals['context'] = context;
    next();
  };
}

/** Balancers check health every few seconds: no trace shows that. */
const UNTRACED: ReadonlySet<string> = new Set(['/livez', '/readyz']);

function spanOf(request: Request, parent: string | null): Span | null {
  if (!isTracing() || UNTRACED.has(request.path)) return null;
  return startSpan(request.method, {
    kind: 'server',
    parent,
    attributes: { 'http.request.method': request.method, 'url.scheme': request.protocol },
  });
}

export function contextOf(response: Response): RequestContext {
  return response.locals['context'] as RequestContext;
}

export function isRead({ method }: Pick<Request, 'method'>): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Whether a request is for one of some routes. */
export type MatchesRoute = (request: Pick<Request, 'method' | 'baseUrl' | 'path'>) => boolean;

/** Finds the routes with `rateLimited: false`. */
export function unlimitedRequests(routes: readonly Route[]): MatchesRoute {
  return requestsOf(routes.filter(({ rateLimited }) => rateLimited === false));
}

/** Finds the routes with `acceptsLoginCode`. */
export function signInRequests(routes: readonly Route[]): MatchesRoute {
  return requestsOf(routes.filter(({ acceptsLoginCode }) => acceptsLoginCode === true));
}

/**
 * Authentication and rate limits apply before a route is matched, so paths are compared as text.
 * @throws Error if a route has a parameter in its path.
 */
function requestsOf(routes: readonly Route[]): MatchesRoute {
  const known = new Set<string>();
  for (const { method, path } of routes) {
    if (path.includes('{')) throw new Error(`${path} cannot be compared as text: its path has a parameter`);
    known.add(`${method} ${path}`);
  }
  return (request) => {
    const method = isRead(request) ? 'get' : request.method.toLowerCase();
    return known.has(`${method} ${request.baseUrl}${request.path}`);
  };
}
