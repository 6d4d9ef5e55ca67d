import { traceIdOf } from '@callplane/core';
import { type Logger, type Metrics, SECONDS_BUCKETS, type Span } from '@callplane/runtime';
import type { NextFunction, Request, Response } from 'express';
import { contextOf, type RequestContext } from './request-context.js';

const HEALTH_ROUTES: ReadonlySet<string | null> = new Set(['/livez', '/readyz']);

/** Writes one wide log line and the metrics of each request, once the answer is sent or the caller disconnects. */
export function requestLog(logger: Logger, metrics: RequestMetrics) {
  return (request: Request, response: Response, next: NextFunction): void => {
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
      if (context.route === null) fields['path'] = request.path.slice(0, 200);
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

export interface RequestMetrics {
  /** @param route the matched pattern; null if no route matched. */
  answered(method: string, route: string | null, status: number, durationMs: number): void;
  /** Counts a request under `/v1` that was refused before its caller was known. */
  unauthenticated(reason: AuthenticationFailure): void;
}

/** The request metrics of the API. docs/operations/monitoring.md explains how to read them. */
export function requestMetrics(metrics: Metrics): RequestMetrics {
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
    unauthenticated: (reason) => unauthenticated.inc({ reason }),
    answered: (method, route, status, durationMs) => {
      // All unmatched paths share one label: paths contain ids or arbitrary hostile text, and each would be a new
      // series.
      const labels = { method, route: route ?? 'other', status };
      requests.inc(labels);
      duration.observe({ method, route: labels.route }, durationMs / 1000);
    },
  };
}
