import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from '@callplane/runtime';
import type { Express } from 'express';
import { answerClientErrors } from './http/client-errors.js';

/** How long a request's headers, and all of it, may take to arrive, in milliseconds. */
const HEADERS_DEADLINE_MS = 10_000;
const REQUEST_DEADLINE_MS = 30_000;
/** Longer than a load balancer's own idle time, so that it never sends into a connection that closes (nginx: 60 s). */
const KEEP_ALIVE_MS = 75_000;

export interface ListeningServer {
  port: number;
  /** Accepts no more and resolves when the requests under way are answered. */
  close(): Promise<void>;
}

export async function listen(
  app: Express,
  logger: Logger,
  address: { host: string; port: number },
): Promise<ListeningServer> {
  const server: Server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: HEADERS_DEADLINE_MS, requestTimeout: REQUEST_DEADLINE_MS },
    app,
  );
  answerClientErrors(server, logger);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
  };
}
