import { traceIdOf } from '@callplane/core';
import type { Logger } from '@callplane/runtime';
import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';
import type { RequestMetrics } from './request-metrics.js';

const HEALTH_ROUTES: ReadonlySet<string | null> = new Set(['/livez', '/readyz']);

/** One wide line per request, and its count, when its answer has been sent or its caller has gone. */
export function requestLog(logger: Logger, metrics: RequestMetrics) {
  return (request: Request, response: Response, next: NextFunction): void => {
    response.once('close', () => {
      const context = contextOf(response);
      const { caller } = context;
      const durationMs = performance.now() - context.startedAtMs;
      metrics.answered(request.method, context.route, response.statusCode, durationMs);
      // Built field by field: this runs for every request.
      const fields: Record<string, unknown> = {
        requestId: context.requestId,
        method: request.method,
        // The pattern where one matched: paths hold ids, and hostile ones hold anything.
        route: context.route,
        status: response.statusCode,
        durationMs: Math.round(durationMs * 1000) / 1000,
        ip: request.ip,
      };
      if (context.traceparent !== null) fields['traceId'] = traceIdOf(context.traceparent);
      if (context.route === null) fields['path'] = request.path.slice(0, 200);
      if (!response.writableFinished) fields['aborted'] = true;
      if (context.errorCode !== null) fields['errorCode'] = context.errorCode;
      if (caller !== null) {
        fields['keyId'] = caller.keyId;
        fields['environmentId'] = caller.environmentId;
        fields['projectId'] = caller.projectId;
      }
      Object.assign(fields, context.logFields);
      if (context.cause !== null) fields['error'] = context.cause;
      if (response.statusCode >= 500) logger.error('request', fields);
      // A health check every few seconds from each balancer would be most of a quiet API's log.
      else if (response.statusCode === 200 && HEALTH_ROUTES.has(context.route)) logger.debug('request', fields);
      else logger.info('request', fields);
    });
    next();
  };
}
