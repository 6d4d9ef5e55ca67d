import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  createHttpServer,
  hostRefusal,
  refuse,
  requestIdOf,
  type Health,
  type HttpDeadlines,
} from '@callplane/runtime';

export interface ListeningServer {
  server: Server;
  port: number;
  /** Stops accepting connections. Open WebSockets stay open. Resolves at once. */
  close(): Promise<void>;
}

/**
 * Starts the HTTP server. It answers `/livez` and `/readyz`; WebSocket upgrades go to listeners of the server's
 * `upgrade` event.
 * @param deadlines override HTTP_DEADLINES
 */
export async function listen(
  health: Health,
  address: { host: string; port: number },
  deadlines: Partial<HttpDeadlines> = {},
): Promise<ListeningServer> {
  const server = createHttpServer(
    (request, response) => {
      const requestId = requestIdOf(request);
      const badHost = hostRefusal(request);
      const path = request.url?.split('?')[0] ?? '/';
      if (badHost !== null) refuse(response, { ...badHost, requestId });
      else if (path === '/livez') answer(response, requestId, health.livez());
      else if (path === '/readyz') void health.readyz().then((report) => answer(response, requestId, report));
      else refuse(response, { status: 404, code: 'ROUTE_NOT_FOUND', requestId });
    },
    { deadlines },
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

function answer(response: ServerResponse, requestId: string, report: { status: number; body: object }): void {
  response.writeHead(report.status, {
    'content-type': 'application/json',
    'x-request-id': requestId,
    connection: 'close',
  });
  response.end(JSON.stringify(report.body));
}
