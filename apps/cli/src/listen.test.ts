import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { formatApiKey } from '@callplane/core';
import { systemClock } from '@callplane/runtime';
import { stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { run } from './program.js';

const KEY = formatApiKey('secret', Buffer.alloc(32, 1));
const FORWARD = ['--forward-to', 'http://127.0.0.1:9/hook'];

const listen = (args: string[], environment: Record<string, string> = { CALLPLANE_API_KEY: KEY }) =>
  run({ environment, clock: systemClock, write: () => undefined }, ['listen', ...args]);

/** A server that answers every request alike. */
async function startService(status: number, body: unknown): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status).end(JSON.stringify(body)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stopAtEnd(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The URL of a server that has stopped. */
async function urlOfStopped(): Promise<string> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

test.each<[string[], Record<string, string>, string]>([
  [[], { CALLPLANE_API_KEY: KEY }, '--forward-to'],
  [['--forward-to', 'localhost:3000'], { CALLPLANE_API_KEY: KEY }, 'http://localhost:3000/hook'],
  [FORWARD, {}, 'CALLPLANE_API_KEY'],
  [FORWARD, { CALLPLANE_API_KEY: formatApiKey('publishable', Buffer.alloc(32)) }, 'rtc_sk_'],
  [FORWARD, { CALLPLANE_API_KEY: 'rtc_sk_typing-error' }, 'rtc_sk_'],
  [[...FORWARD, '--events', 'room.exploded'], { CALLPLANE_API_KEY: KEY }, 'room.created'],
  [[...FORWARD, '--secret', 'whsec_short'], { CALLPLANE_API_KEY: KEY }, 'base64'],
  [[...FORWARD, '--since', 'yesterday'], { CALLPLANE_API_KEY: KEY }, '30m'],
  [[...FORWARD, '--url', 'calls.example.com'], { CALLPLANE_API_KEY: KEY }, 'https://calls.example.com'],
])('rtc listen %j exits with 2 and says how to correct it', async (args, environment, hint) => {
  expect(await listen(args, environment)).toEqual({ exitCode: 2, line: expect.stringContaining(hint) });
});

test('rtc listen ends at once if the service is not there, refuses the key, or the key lacks the scope', async () => {
  const away = await listen([...FORWARD, '--url', await urlOfStopped()]);
  expect(away).toEqual({ exitCode: 1, line: expect.stringContaining('ECONNREFUSED') });
  const refused = await startService(401, { error: { code: 'UNAUTHENTICATED', message: '…' } });
  expect(await listen([...FORWARD, '--url', `${refused}/v1/`])).toEqual({
    exitCode: 2,
    line: expect.stringContaining('--key'),
  });
  for (const scopes of [null, 5, undefined]) {
    const other = await startService(200, { projectId: 'proj_1', environmentId: 'env_1', scopes });
    expect(await listen([...FORWARD, '--url', other])).toEqual({
      exitCode: 1,
      line: expect.stringContaining('without the data of a Callplane API'),
    });
  }
  const poor = await startService(200, { projectId: 'proj_1', environmentId: 'env_1', scopes: ['rooms:read'] });
  expect(await listen([...FORWARD, '--url', poor])).toEqual({
    exitCode: 2,
    line: expect.stringContaining('webhooks:read'),
  });
});
