import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server as NetServer, type AddressInfo } from 'node:net';
import { createHttpServer, type HttpDeadlines, type Logger } from '@callplane/runtime';
import type { Express, Response } from 'express';
import { contextOf } from './http/request-context.js';
import { originForm } from './http/transport.js';

/**
 * Idle timeout of connections, in milliseconds. It is longer than the idle timeout of a load balancer (nginx: 60 s), so
 * that the balancer never sends a request into a closing connection.
 */
const KEEP_ALIVE_MS = 75_000;
/** After the drain period: interval between closings of idle connections, in milliseconds. */
const LATE_IDLE_MS = 500;

export interface ListeningServer {
  port: number;
  /** Stops accepting connections. Resolves when the running requests are answered. */
  close(): Promise<void>;
}

/**
 * Starts the HTTP server.
 * @param drainIdleMs how long the server keeps idle connections open while it drains, in milliseconds. It must exceed
 *   the idle timeout of the load balancer, so that the balancer never sends a request into a closing connection.
 * @param deadlines overrides for HTTP_DEADLINES.
 */
export async function listen(
  app: Express,
  logger: Logger,
  address: { host: string; port: number },
  drainIdleMs: number,
  deadlines: Partial<HttpDeadlines> = {},
): Promise<ListeningServer> {
  const server = createHttpServer(app, {
    deadlines: { keepAliveMs: KEEP_ALIVE_MS, ...deadlines },
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
    close: () =>
      new Promise((resolve) => {
        draining = true;
        // From now on, every answer closes its connection. Otherwise a busy client would keep its connection open for
        // ever.
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
