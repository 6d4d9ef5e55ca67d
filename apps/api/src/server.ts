import { createServer, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type AddressInfo } from 'node:net';
import type { Logger } from '@callplane/runtime';
import type { Express } from 'express';
import { answerClientErrors } from './http/client-errors.js';

/** How long a request's headers, and all of it, may take to arrive, in milliseconds. */
const HEADERS_DEADLINE_MS = 10_000;
const REQUEST_DEADLINE_MS = 30_000;
/** Longer than a load balancer's own idle time, so that it never sends into a connection that closes (nginx: 60 s). */
const KEEP_ALIVE_MS = 75_000;
/** After that, how often what has become idle is looked for, in milliseconds. */
const LATE_IDLE_MS = 500;

export interface ListeningServer {
  port: number;
  /** Accepts no more and resolves when the requests under way are answered. */
  close(): Promise<void>;
}

/**
 * @param drainIdleMs while draining: how long an idle connection may still bring a request, in milliseconds. A load
 *   balancer keeps idle connections for a shorter time than this, so that it never sends into one that closes.
 */
export async function listen(
  app: Express,
  logger: Logger,
  address: { host: string; port: number },
  drainIdleMs: number,
): Promise<ListeningServer> {
  const server: Server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: HEADERS_DEADLINE_MS, requestTimeout: REQUEST_DEADLINE_MS },
    app,
  );
  answerClientErrors(server, logger);
  let draining = false;
  const underWay = new Set<ServerResponse>();
  server.prependListener('request', (_request, response: ServerResponse) => {
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
    close: () =>
      new Promise((resolve) => {
        draining = true;
        // Answers end their connection from now on, or a busy client would keep its own open for ever.
        for (const response of underWay) if (!response.headersSent) response.setHeader('connection', 'close');
        let closeIdle = setTimeout(() => {
          server.closeIdleConnections();
          // Those that were silent from their beginning, or answered since.
          closeIdle = setInterval(() => server.closeIdleConnections(), LATE_IDLE_MS);
        }, drainIdleMs);
        // Not http's own close(): it cuts idle connections at once, and with them a request that is just arriving.
        NetServer.prototype.close.call(server, () => {
          clearTimeout(closeIdle);
          resolve();
        });
      }),
  };
}
