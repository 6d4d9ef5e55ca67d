import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Health } from '@callplane/runtime';

/** How long a request's headers, and all of it, may take to arrive, in milliseconds. */
const HEADERS_DEADLINE_MS = 10_000;
const REQUEST_DEADLINE_MS = 30_000;

/** What answers requests beside WebSockets and health; false when it does not know the path. */
export type Pages = (request: IncomingMessage, response: ServerResponse, path: string) => boolean;

export interface ListeningServer {
  server: Server;
  port: number;
  /** Accepts no more; WebSockets stay. Resolves at once. */
  close(): Promise<void>;
}

/** The HTTP server: `/livez`, `/readyz`, and the upgrades that whoever listens for them takes. */
export async function listen(
  health: Health,
  pages: Pages,
  address: { host: string; port: number },
): Promise<ListeningServer> {
  const server = createServer(
    { headersTimeout: HEADERS_DEADLINE_MS, requestTimeout: REQUEST_DEADLINE_MS },
    (request, response) => {
      const path = request.url?.split('?')[0] ?? '/';
      if (path === '/livez') answer(response, health.livez());
      else if (path === '/readyz') void health.readyz().then((report) => answer(response, report));
      else if (!pages(request, response, path)) answer(response, { status: 404, body: { status: 'not found' } });
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  });
  return {
    server,
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      server.closeIdleConnections();
      return Promise.resolve();
    },
  };
}

function answer(response: ServerResponse, report: { status: number; body: object }): void {
  response.writeHead(report.status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(report.body));
}
