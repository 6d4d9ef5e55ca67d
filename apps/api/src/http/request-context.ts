import { parseTraceparent, traceIdOf, type Caller, type ErrorCode } from '@callplane/core';
import {
  isTracing,
  requestIdOf,
  SECONDS_BUCKETS,
  startSpan,
  type Logger,
  type Metrics,
  type Span,
} from '@callplane/runtime';
import type { Request, RequestHandler, Response } from 'express';

export interface LookUpOptions {
  /**
   * Whether the look-up may wait for others and share one statement with them. `true`: it fails as `UNAVAILABLE` while
   * too many wait. `if_room`: it then has a statement of its own.
   */
  inBatch?: boolean | 'if_room';
  /** Whether it keeps a console session from ending for want of requests. */
  isRequest?: boolean;
}

export interface CallerDirectory {
  /** Whether this process has found the key in the database before. Includes revoked and expired keys. */
  hasSeen(keyHashHex: string): boolean;
  /** Returns null if the key is unknown, revoked or expired. */
  find(keyHashHex: string, options?: LookUpOptions): Promise<Caller | null>;
}

/** State of one request. Middleware fills it in; handlers and the request log read it. */
export interface RequestContext {
  readonly requestId: string;
  /**
   * `traceparent` for work that this request causes. Without OpenTelemetry, the one of its header; null if the header
   * is missing or malformed.
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
  readonly headers: Record<string, string>;
}

/**
 * Creates the context of each request. Keeps a well-formed incoming `x-request-id`, otherwise generates one.
 * @param headers that every answer carries.
 */
export function requestContext(headers: Readonly<Record<string, string>>): RequestHandler {
  return (request, response, next) => {
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
const HEALTH_ROUTES: ReadonlySet<string | null> = new Set(['/livez', '/readyz']);

function spanOf(request: Request, parent: string | null): Span | null {
  if (!isTracing() || HEALTH_ROUTES.has(request.path)) return null;
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

/** Writes one wide log line and the metrics of each request, once the answer is sent or the caller disconnects. */
export function requestLog(logger: Logger, metrics: RequestMetrics): RequestHandler {
  return (request, response, next) => {
    response.once('close', () => {
      const context = contextOf(response);
      const { caller, refusal } = context;
      const status = refusal?.status ?? response.statusCode;
      const durationMs = performance.now() - context.startedAtMs;
      metrics.answered(request.method, context.route, status, durationMs - context.waitedMs);
      // Fields are assigned one by one because this code runs for every request.
      const fields: Record<string, unknown> = {
        requestId: context.requestId,
        method: request.method,
        // The pattern instead of the path: paths contain ids or arbitrary hostile text.
        route: context.route,
        status,
        durationMs: Math.round(durationMs * 1000) / 1000,
        ip: context.ip,
      };
      if (context.waitedMs > 0) fields['waitedMs'] = Math.round(context.waitedMs);
      if (context.traceparent !== null) fields['traceId'] = traceIdOf(context.traceparent);
      if (context.span !== null) fields['spanId'] = context.span.spanId;
      if (context.route === null) fields['path'] = request.originalUrl.split('?', 1)[0]?.slice(0, 200);
      if (refusal !== null) fields['parserCode'] = refusal.parserCode;
      else if (!response.writableFinished) fields['aborted'] = true;
      const errorCode = refusal?.errorCode ?? context.errorCode;
      if (errorCode !== null) fields['errorCode'] = errorCode;
      if (caller !== null) {
        fields['keyId'] = caller.keyId;
        fields['environmentId'] = caller.environmentId;
        fields['projectId'] = caller.projectId;
        if (caller.session !== undefined) fields['consoleSessionId'] = caller.session.id;
      }
      Object.assign(fields, context.logFields);
      if (context.cause !== null) fields['error'] = context.cause;
      if (context.span !== null) endSpan(context.span, request.method, context, { status, errorCode });
      if (status >= 500) logger.error('request', fields);
      // At level `debug`: each balancer checks health every few seconds, which would dominate the log of a quiet API.
      else if (status === 200 && HEALTH_ROUTES.has(context.route)) logger.debug('request', fields);
      else logger.info('request', fields);
    });
    next();
  };
}

/** Only failures of the service count as errors of the span, as the semantic conventions for servers say. */
function endSpan(
  span: Span,
  method: string,
  { route, caller, requestId }: RequestContext,
  { status, errorCode }: { status: number; errorCode: string | null },
): void {
  span.end({
    ...(route === null ? {} : { name: `${method} ${route}` }),
    attributes: {
      'http.route': route ?? undefined,
      'http.response.status_code': status,
      'callplane.request.id': requestId,
      'callplane.environment.id': caller?.environmentId,
      'callplane.error.code': errorCode ?? undefined,
    },
    error: status >= 500 ? String(status) : null,
  });
}

/**
 * `no_key`: the key is missing or malformed. `invalid_key`: the key is unknown, revoked or expired. `too_many`: the key
 * is unknown and its address has sent too many unknown keys.
 */
const AUTHENTICATION_FAILURES = ['no_key', 'invalid_key', 'too_many'] as const;
type AuthenticationFailure = (typeof AUTHENTICATION_FAILURES)[number];

export type RequestMetrics = ReturnType<typeof requestMetrics>;

/** The request metrics of the API. docs/operations/monitoring.md explains how to read them. */
export function requestMetrics(metrics: Metrics) {
  const requests = metrics.counter({
    name: 'callplane_http_requests_total',
    help: 'Requests, by route pattern, method and response status.',
    labels: ['method', 'route', 'status'],
  });
  const duration = metrics.histogram({
    name: 'callplane_http_request_duration_seconds',
    help: 'Time from the request headers to the end of the response, without the time that it waited for events, in seconds.',
    labels: ['method', 'route'],
    buckets: SECONDS_BUCKETS,
  });
  const unauthenticated = metrics.counter({
    name: 'callplane_http_authentication_failures_total',
    help: 'Requests refused because of their API key, by reason.',
    labels: ['reason'],
    known: AUTHENTICATION_FAILURES.map((reason) => ({ reason })),
  });
  return {
    /** Counts a request under `/v1` that was refused before its caller was known. */
    unauthenticated: (reason: AuthenticationFailure): void => unauthenticated.inc({ reason }),
    /** @param route the matched pattern; null if no route matched. */
    answered: (method: string, route: string | null, status: number, durationMs: number): void => {
      // All unmatched paths share one label: paths contain ids or arbitrary hostile text, and each would be a new
      // series.
      const labels = { method, route: route ?? 'other', status };
      requests.inc(labels);
      duration.observe({ method, route: labels.route }, durationMs / 1000);
    },
  };
}
