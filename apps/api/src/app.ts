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
  contextOf,
  requestContext,
  requestLog,
  signInRequests,
  unlimitedRequests,
  type RequestMetrics,
} from './http/request-context.js';
import { serveRoutes } from './http/router.js';
import { refuseUnread, securityHeaders, UnreadAnswers } from './http/respond.js';
import { requireOneHost } from './server.js';
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
 * Builds the Express app. Authentication (401) and rate limits (429) are checked before a route is looked for. The steps
 * of a request are two middlewares: Express takes several microseconds for each.
 */
export function createApp(deps: Deps, settings: AppSettings): Express {
  const routes = apiRoutes(deps);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.set('query parser', 'simple');
  app.set('trust proxy', settings.trustProxy);

  const open = requestContext(securityHeaders());
  const log = requestLog(deps.logger, settings.requests);
  app.use((request, response, next) => {
    open(request, response);
    log(request, response);
    requireOneHost(request);
    next();
  });
  const isUnlimited = unlimitedRequests(routes);
  const unknownKeyPace = new KeyedPace(settings.unknownKeys, ADDRESSES_MAX);
  const kinds = { isUnlimited, isSignIn: signInRequests(routes) };
  const identify = authenticate(settings.callers, unknownKeyPace, settings.requests, kinds);
  const isLimited = settings.limits.reads.perSecond > 0 || settings.limits.writes.perSecond > 0;
  const limit = isLimited ? rateLimit(deps.producer, deps.logger, settings.limits, isUnlimited) : null;
  const unread = new UnreadAnswers();
  const requireRoom = refuseUnread(unread, isUnlimited);
  const serve = serveRoutes(routes, '/v1', unread);
  app.use('/v1', async (request, response) => {
    // Answers under `/v1` contain tokens, credentials and private data.
    contextOf(response).headers['cache-control'] = 'no-store';
    await identify(request, response);
    if (limit !== null) await limit(request, response);
    requireRoom(request, response);
    await serve(request, response);
  });
  app.use(publicRouter({ health: settings.health, signingKeys: deps.signingKeys }));
  if (deps.console !== null) app.use('/console', consolePages(settings.consoleFolder, deps.console.signalingUrl));
  app.use(docsRouter());
  app.use(() => {
    throw new PublicError('ROUTE_NOT_FOUND');
  });
  app.use(errorHandler);
  return app;
}
