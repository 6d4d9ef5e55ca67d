import { PublicError } from '@callplane/core';
import type { Health } from '@callplane/runtime';
import express, { type Express } from 'express';
import type { Deps } from './deps.js';
import { publicRouter } from './context/public.routes.js';
import { authenticate, type CallerDirectory } from './http/authenticate.js';
import { errorHandler } from './http/errors.js';
import { rateLimit, type Bucket } from './http/rate-limit.js';
import { requestContext } from './http/request-context.js';
import { requestLog } from './http/request-log.js';
import type { RequestMetrics } from './http/request-metrics.js';
import { createRouter } from './http/router.js';
import { securityHeaders } from './http/security-headers.js';
import { noStore, rewriteUndecodablePath } from './http/transport.js';
import { docsRouter } from './openapi/docs.routes.js';
import { openApiDocument } from './openapi/document.js';
import { apiRoutes } from './routes.js';

export interface AppSettings {
  callers: CallerDirectory;
  health: Health;
  requests: RequestMetrics;
  limits: { reads: Bucket; writes: Bucket };
  /** Express's `trust proxy`. */
  trustProxy: number | string[] | false;
}

/** The middleware in the order of judgement: 401, 429, then what the router says. */
export function createApp(deps: Deps, settings: AppSettings): Express {
  const routes = apiRoutes(deps);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.set('query parser', 'simple');
  app.set('trust proxy', settings.trustProxy);

  app.use(requestContext(securityHeaders()));
  app.use(requestLog(deps.logger, settings.requests));
  app.use(rewriteUndecodablePath);
  app.use('/v1', noStore, authenticate(settings.callers));
  if (settings.limits.reads.perSecond > 0 || settings.limits.writes.perSecond > 0) {
    app.use('/v1', rateLimit(deps.producer.redis, deps.logger, settings.limits));
  }
  app.use('/v1', createRouter(routes, '/v1'));
  app.use(publicRouter({ health: settings.health, signingKeys: deps.signingKeys }));
  app.use(docsRouter(openApiDocument(routes)));
  app.use(() => {
    throw new PublicError('ROUTE_NOT_FOUND');
  });
  app.use(errorHandler);
  return app;
}
