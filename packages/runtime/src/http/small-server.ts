import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ErrorCode } from '@callplane/core';
import { createHttpServer, hostRefusal, refuse, requestIdOf } from './http-server.js';

export interface SmallAnswer {
  status: number;
  type: string;
  text: string;
}

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface SmallServer {
  /** For the upgrades of an app. */
  server: Server;
  port: number;
  /** Stops accepting connections. Resolves when all of them, upgraded ones included, are closed. */
  close(): Promise<void>;
}

/**
 * Starts a server that answers `GET` on a few paths, such as health checks and metrics. Everything else gets an error in
 * the common shape.
 * @param pages the answer of each path
 * @param handle called first; true if it answers the request
 */
export async function startSmallServer(
  pages: Readonly<Record<string, () => SmallAnswer | Promise<SmallAnswer>>>,
  address: { host: string; port: number },
  handle: RequestHandler = () => false,
): Promise<SmallServer> {
  const server = createHttpServer((request, response) => {
    if (handle(request, response)) return;
    const requestId = requestIdOf(request);
    const fail = (status: number, code: ErrorCode, headers = {}): void =>
      refuse(response, { status, code, requestId, headers });
    const badHost = hostRefusal(request);
    const page = pages[request.url?.split('?')[0] ?? ''];
    if (badHost !== null) refuse(response, { ...badHost, requestId });
    else if (page === undefined) fail(404, 'ROUTE_NOT_FOUND');
    else if (request.method !== 'GET' && request.method !== 'HEAD') {
      fail(405, 'METHOD_NOT_ALLOWED', { allow: 'GET, HEAD' });
    } else {
      Promise.resolve()
        .then(page)
        .then(
          (answer) => send(request, response, requestId, answer),
          () => fail(500, 'INTERNAL'),
        );
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  });
  return {
    server,
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  { status, type, text }: SmallAnswer,
): void {
  const length = Buffer.byteLength(text);
  const head = { 'content-type': type, 'content-length': length, 'x-request-id': requestId, connection: 'close' };
  response.writeHead(status, head);
  response.end(request.method === 'HEAD' ? undefined : text);
}
