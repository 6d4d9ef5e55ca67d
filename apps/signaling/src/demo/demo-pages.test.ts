import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createHealth, createLogger } from '@callplane/runtime';
import { temporaryDirectory } from '@callplane/testing';
import { listen, type ListeningServer } from '../server.js';
import { demoPages } from './demo-pages.js';

const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());
const asked: { path: string; authorization: string | undefined; body: any }[] = [];
let api: Server;
let demo: ListeningServer;
/** Rooms that the API counts as ended. */
const ended = new Set<string>();

beforeAll(async () => {
  api = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += String(chunk)));
    request.on('end', () => {
      const body = JSON.parse(text);
      asked.push({ path: request.url!, authorization: request.headers.authorization, body });
      const roomId = /\/rooms\/([^/]+)\/tokens/.exec(request.url!)?.[1];
      const gone = roomId !== undefined && ended.has(roomId);
      response.writeHead(gone ? 409 : 201, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(roomId === undefined ? { id: `room_${asked.length}` } : { token: 't', participantId: 'p' }),
      );
    });
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  const dir = temporaryDirectory('demo');
  mkdirSync(join(dir, 'demo', 'assets'), { recursive: true });
  writeFileSync(join(dir, 'demo', 'index.html'), '<h1>Demo</h1>');
  writeFileSync(join(dir, 'demo', 'assets', 'a.js'), 'x');
  writeFileSync(join(dir, 'secret.txt'), 'secret');
  symlinkSync(join(dir, 'secret.txt'), join(dir, 'demo', 'link.txt'));
  const { port } = api.address() as AddressInfo;
  const pages = demoPages(
    { DEMO_DIR: join(dir, 'demo'), DEMO_API_URL: `http://127.0.0.1:${port}`, DEMO_API_KEY: 'rtc_sk_test' },
    logger,
  );
  demo = await listen(
    createHealth(logger, {}, () => false),
    pages,
    { host: '127.0.0.1', port: 0 },
  );
});
afterAll(async () => {
  await demo.close();
  api.close();
});

const url = (path: string) => `http://127.0.0.1:${demo.port}${path}`;
const joinAs = (body: unknown) => fetch(url('/demo/api/join'), { method: 'POST', body: JSON.stringify(body) });

test('serves its files, and nothing beside them', async () => {
  const page = await fetch(url('/demo'));
  expect([page.status, page.headers.get('content-type'), await page.text()]).toEqual([
    200,
    'text/html; charset=utf-8',
    '<h1>Demo</h1>',
  ]);
  expect((await fetch(url('/demo/assets/a.js'))).headers.get('content-type')).toContain('javascript');
  for (const path of [
    '/demo/..%2fsecret.txt',
    '/demo/%2e%2e/secret.txt',
    '/demo/link.txt',
    '/demo/assets',
    '/demo/%00',
    '/demo/%zz',
    '/x',
  ]) {
    expect((await fetch(url(path))).status).toBe(404);
  }
});

test('the backend makes a room of each name once, again when it has ended, and answers a token', async () => {
  const first = await joinAs({ room: 'Tea', name: 'Ada' });
  expect([first.status, await first.json()]).toEqual([200, { token: 't', roomId: 'room_1', participantId: 'p' }]);
  expect(await (await joinAs({ room: ' Tea ', name: 'Bob' })).json()).toMatchObject({ roomId: 'room_1' });
  expect(asked[1]).toMatchObject({
    path: '/v1/rooms/room_1/tokens',
    authorization: 'Bearer rtc_sk_test',
    body: { participantName: 'Ada', permissions: expect.arrayContaining(['room:join', 'screen:publish']) },
  });
  ended.add('room_1');
  const again = (await (await joinAs({ room: 'Tea', name: 'Eve' })).json()) as { roomId: string };
  expect(again.roomId).not.toBe('room_1');
});

test('refuses what is no name', async () => {
  for (const body of [
    {},
    null,
    [],
    { room: '', name: 'a' },
    { room: 'a', name: 'x'.repeat(61) },
    { room: 1, name: 'a' },
  ]) {
    expect((await joinAs(body)).status).toBe(400);
  }
  expect((await fetch(url('/demo/api/join'))).status).toBe(405);
});
