import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { stopAtEnd } from '@callplane/testing';
import express, { type RequestHandler } from 'express';
import { errorHandler } from './errors.js';
import { requestContext } from './request-context.js';
import { securityHeaders } from './respond.js';

/** Serves pages without the rest of the API. Returns a function that asks for one and follows no redirect. */
export async function servePages(mount: string, pages: RequestHandler) {
  const app = express();
  app.use(requestContext(securityHeaders()));
  app.use(mount, pages);
  app.use(errorHandler([]));
  const server = app.listen(0, '127.0.0.1');
  stopAtEnd(() => new Promise((resolve) => server.close(resolve)));
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return async (path: string, options: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { redirect: 'manual', ...options });
    const headers: Record<string, string> = Object.fromEntries(response.headers);
    return { status: response.status, headers, text: await response.text() };
  };
}
