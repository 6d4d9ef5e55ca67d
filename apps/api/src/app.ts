import { KeyedPace, PublicError, type Pace } from '@callplane/core';
import type { Health } from '@callplane/runtime';
import express, { type Express } from 'express';
import { consolePages } from './console/console-pages.js';
import type { Deps } from './deps.js';
import { publicRouter } from './context/public.routes.js';
import { authenticate, type Directories } from './http/authenticate.js';
import { errorHandler } from './http/errors.js';
import { rateLimit, type Bucket } from './http/rate-limit.js';
import {
  requestContext,
  requestLog,
  signInRequests,
  unlimitedRequests,
  type RequestMetrics,
} from './http/request-context.js';
import { createRouter } from './http/router.js';
import { refuseUnread, securityHeaders, UnreadAnswers } from './http/respond.js';
import { noStore, requireOneHost, rewriteUndecodablePath } from './server.js';
import { docsRouter } from './openapi/docs.routes.js';
import { apiRoutes } from './routes.js';

/** Client addresses whose unknown keys one instance counts. */
const ADDRESSES_MAX = 10_000;

export interface AppSettings {
  callers: Directories;
  health: Health;
  requests: RequestMetrics;
  limits: { reads: Bucket; writes: Bucket };
  /** How often one client address may send unknown keys. */
  unknownKeys: Pace;
  /** The folder of the built console; null if there is none, or the console is switched off. */
  consoleFolder: string | null;
  /** Express's `trust proxy`. */
  trustProxy: number | string[] | false;
}

/**
 * Builds the Express app. The middleware checks authentication (401) and rate limits (429) before the router runs its
 * checks.
 */
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
  app.use(requireOneHost);
  app.use(rewriteUndecodablePath);
  const isUnlimited = unlimitedRequests(routes);
  const unknownKeyPace = new KeyedPace(settings.unknownKeys, ADDRESSES_MAX);
  const kinds = { isUnlimited, isSignIn: signInRequests(routes) };
  app.use('/v1', noStore, authenticate(settings.callers, unknownKeyPace, settings.requests, kinds));
  if (settings.limits.reads.perSecond > 0 || settings.limits.writes.perSecond > 0) {
    app.use('/v1', rateLimit(deps.producer, deps.logger, settings.limits, isUnlimited));
  }
  const unread = new UnreadAnswers();
  app.use('/v1', refuseUnread(unread, isUnlimited), createRouter(routes, '/v1', unread));
  app.use(publicRouter({ health: settings.health, signingKeys: deps.signingKeys }));
  if (deps.console !== null) app.use('/console', consolePages(settings.consoleFolder, deps.console.signalingUrl));
  app.use(docsRouter());
  app.use(() => {
    throw new PublicError('ROUTE_NOT_FOUND');
  });
  app.use(errorHandler);
  return app;
}
