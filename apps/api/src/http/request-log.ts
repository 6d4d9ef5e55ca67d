import type { Logger } from '@callplane/runtime';
import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';

/** One wide line per request, when its answer has been sent or its caller has gone. */
export function requestLog(logger: Logger) {
  return (request: Request, response: Response, next: NextFunction): void => {
    response.once('close', () => {
      const context = contextOf(response);
      const fields = {
        requestId: context.requestId,
        method: request.method,
        // The pattern where one matched: paths hold ids, and hostile ones hold anything.
        route: context.route,
        ...(context.route === null ? { path: request.path.slice(0, 200) } : {}),
        status: response.statusCode,
        durationMs: Math.round((performance.now() - context.startedAtMs) * 1000) / 1000,
        ...(response.writableFinished ? {} : { aborted: true }),
        ...(context.errorCode === null ? {} : { errorCode: context.errorCode }),
        ...(context.caller === null
          ? {}
          : {
              keyId: context.caller.keyId,
              environmentId: context.caller.environmentId,
              projectId: context.caller.projectId,
            }),
        ip: request.ip,
        ...context.logFields,
        ...(context.cause === null ? {} : { error: context.cause }),
      };
      if (response.statusCode >= 500) logger.error('request', fields);
      else logger.info('request', fields);
    });
    next();
  };
}
