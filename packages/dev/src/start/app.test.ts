import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { stopAtEnd } from '@callplane/testing';
import { isReady } from './app.js';

test('an app is ready if its own instance says so, and no other server on its port passes for it', async () => {
  let [status, body] = [200, ''];
  const server = createServer((_, response) => response.writeHead(status).end(body));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stopAtEnd(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/readyz`;
  const answers = async (newStatus: number, newBody: string) => {
    [status, body] = [newStatus, newBody];
    return isReady(url, 'own');
  };
  for (const other of ['ok', 'null', '{}', '{"status":"ok"}', '{"status":"ok","instance":"other"}']) {
    expect(await answers(200, other)).toBe(false);
  }
  expect(await answers(503, '{"instance":"own"}')).toBe(false);
  expect(await answers(200, '{"status":"ok","instance":"own"}')).toBe(true);
});
