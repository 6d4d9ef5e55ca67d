import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server as NetServer, type AddressInfo } from 'node:net';
import { KeyedPace, paceTimes, PublicError, unescaped, type Pace } from '@callplane/core';
import { createHttpServer, hostProblem, type Health, type Logger } from '@callplane/runtime';
import { FolderStore } from '@callplane/store';
import express, { type Express, type RequestHandler, type Response } from 'express';
import { consolePages } from './console/console-pages.js';
import { CONTEXT_ROUTE, readContext } from './context/context.routes.js';
import { JWKS_ROUTE, publicRouter } from './context/public.routes.js';
import type { Deps } from './deps.js';
import { authenticate, type AuthenticateOptions, type Directories } from './http/authenticate.js';
import { errorHandler, onlyMethods } from './http/errors.js';
import { rateLimit, type Bucket } from './http/rate-limit.js';
import { contextOf, requestContext, requestLog, type RequestMetrics } from './http/request-context.js';
import { refuseUnread, securityHeaders, UnreadAnswers } from './http/respond.js';
import { serveRoutes } from './http/serve.js';
import { docsRouter } from './openapi/docs.routes.js';
import { recordingFiles } from './recordings/file-links.js';
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
 * Builds the Express app. Under `/v1`, authentication (401) and rate limits (429) are checked before a route is looked
 * for.
 */
export function createApp(deps: Deps, settings: AppSettings): Express {
  const routes = apiRoutes(deps);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.set('query parser', 'simple');
  app.set('trust proxy', settings.trustProxy);

  const unknownKeyPace = new KeyedPace(paceTimes(settings.unknownKeys), ADDRESSES_MAX);
  const identify = (options?: AuthenticateOptions) =>
    authenticate(settings.callers, unknownKeyPace, settings.requests, options);
  const limit = rateLimit(deps.producer, deps.logger, settings.limits);
  const unread = new UnreadAnswers();

  app.use(requestContext(securityHeaders()), requestLog(deps.logger, settings.requests), requireOneHost);
  app.use('/v1', privateAnswers);
  // Two routes have checks of their own. Other methods of the same paths pass the checks of all routes.
  const signalingUrl = deps.console?.signalingUrl ?? null;
  app.get(CONTEXT_ROUTE.path, identify({ limitsUnknownKeys: false }), readContext(signalingUrl));
  app.post('/v1/console/sessions', identify({ acceptsLoginCode: true }));
  app.use('/v1', identify(), limit, refuseUnread(unread));
  app.use(serveRoutes(routes, unread));
  app.all(CONTEXT_ROUTE.path, onlyMethods(['get']));

  app.use(publicRouter({ health: settings.health, signingKeys: deps.signingKeys }));
  if (deps.recordings instanceof FolderStore) app.use(recordingFiles(deps, deps.recordings));
  if (deps.console !== null)
    app.use(
      '/console',
      consolePages(settings.consoleFolder, deps.console.signalingUrl, deps.recordings?.linkOrigin ?? null),
    );
  app.use(docsRouter());
  app.use(() => {
    throw new PublicError('ROUTE_NOT_FOUND');
  });
  app.use(errorHandler([CONTEXT_ROUTE, ...routes, JWKS_ROUTE]));
  return app;
}

/** Answers under `/v1` contain tokens, credentials and private data. */
const privateAnswers: RequestHandler = (request, response, next) => {
  const { headers } = contextOf(response);
  headers['cache-control'] = 'no-store';
  // The path of a gateway. The SDK asks whether a server answers, and browsers hide answers that other sites may not load.
  if (request.path === '/signaling') headers['cross-origin-resource-policy'] = 'cross-origin';
  next();
};

/**
 * The target of a request in the form that Express understands: a path that begins with a slash, with an optional
 * query. Express answers a target in which it finds no path with a page of its own, and skips every middleware: the
 * caller gets no error body, and the request has no log line and counts in no metric.
 */
function originForm(target: string): string {
  const origin = target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '');
  const path = origin.startsWith('/') ? origin : `/${origin}`;
  // A valid target has none of these characters. Express would give one that has them to Node's old parser of URLs,
  // which takes backslashes for slashes, and finds no path in some texts.
  return escapeUndecodable(path.replace(/[\s#]/g, encodeURIComponent));
}

/**
 * Escapes the percent signs of a path that is not valid percent-encoded UTF-8. Without this, Express would answer 400
 * before authorisation. The escaped path reaches validation as plain text and is rejected there.
 */
function escapeUndecodable(target: string): string {
  if (!target.includes('%')) return target;
  const end = target.indexOf('?');
  const path = end === -1 ? target : target.slice(0, end);
  return unescaped(path) === null ? path.replaceAll('%', '%25') + target.slice(path.length) : target;
}

/** Rejects a request whose `Host` is missing, repeated or malformed. Runs before all other checks of the request. */
const requireOneHost: RequestHandler = (request, _response, next) => {
  const message = hostProblem(request);
  if (message !== null) {
    throw new PublicError('VALIDATION_FAILED', {
      details: [{ path: 'headers.host', message }],
      headers: { connection: 'close' },
    });
  }
  next();
};

/**
 * Idle timeout of connections, in milliseconds. It is longer than the idle timeout of a load balancer (nginx: 60 s), so
 * that the balancer never sends a request into a closing connection.
 */
const KEEP_ALIVE_MS = 75_000;
/** After the drain period: interval between closings of idle connections, in milliseconds. */
const LATE_IDLE_MS = 500;

/**
 * Starts the HTTP server.
 * @param drainIdleMs how long the server keeps idle connections open while it drains, in milliseconds. It must exceed
 *   the idle timeout of the load balancer, so that the balancer never sends a request into a closing connection.
 */
export async function listen(
  app: Express,
  logger: Logger,
  address: { host: string; port: number },
  drainIdleMs: number,
) {
  const server = createHttpServer(app, {
    deadlines: { keepAliveMs: KEEP_ALIVE_MS },
    onRefused: ({ requestId, status, code }, parserCode, response) => {
      // The request log has no line for a request that never reached Express.
      if (response === null) logger.info('request', { requestId, status, errorCode: code, parserCode });
      else contextOf(response as Response).refusal = { status, errorCode: code, parserCode };
    },
  });
  let draining = false;
  const underWay = new Set<ServerResponse>();
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    request.url = originForm(request.url ?? '/');
    if (draining) response.setHeader('connection', 'close');
    underWay.add(response);
    response.once('close', () => underWay.delete(response));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    /** Stops accepting connections. Resolves when the running requests are answered. */
    close: () =>
      new Promise<void>((resolve) => {
        draining = true;
        // From now on, every answer closes its connection. Otherwise a busy client would never close its connection.
        for (const response of underWay) if (!response.headersSent) response.setHeader('connection', 'close');
        let closeIdle = setTimeout(() => {
          server.closeIdleConnections();
          // Repeat: other connections become idle later, and connections that never sent a request need closing too.
          closeIdle = setInterval(() => server.closeIdleConnections(), LATE_IDLE_MS);
        }, drainIdleMs);
        // Bypass `http.Server.close()`: it closes idle connections at once, and with them any request that is just
        // arriving.
        NetServer.prototype.close.call(server, () => {
          clearTimeout(closeIdle);
          resolve();
        });
      }),
  };
}
