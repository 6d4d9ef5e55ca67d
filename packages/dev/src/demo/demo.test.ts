import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { temporaryDirectory } from '@callplane/testing';
import { startDemo, type Demo, createDemoDoor } from './demo.js';

const received: { path: string; authorization: string | undefined; body: any }[] = [];
let api: Server;
let demo: Demo;
let gateway: Server;
/** Ids of rooms that the fake API treats as ended. */
const ended = new Set<string>();

beforeAll(async () => {
  api = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += String(chunk)));
    request.on('end', () => {
      const body = JSON.parse(text);
      received.push({ path: request.url!, authorization: request.headers.authorization, body });
      const roomId = /\/rooms\/([^/]+)\/tokens/.exec(request.url!)?.[1];
      const isEnded = roomId !== undefined && ended.has(roomId);
      response.writeHead(isEnded ? 409 : 201, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(roomId === undefined ? { id: `room_${received.length}` } : { token: 't', participantId: 'p' }),
      );
    });
  });
  await once(api.listen(0, '127.0.0.1'), 'listening');
  const dir = temporaryDirectory('demo');
  mkdirSync(join(dir, 'demo', 'assets'), { recursive: true });
  writeFileSync(join(dir, 'demo', 'index.html'), '<h1>Demo</h1>');
  writeFileSync(join(dir, 'demo', 'assets', 'a.js'), 'x');
  writeFileSync(join(dir, 'secret.txt'), 'secret');
  const { port } = api.address() as AddressInfo;
  gateway = createServer().on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Path: ${request.url}\r\n\r\n`,
    );
    socket.write(head);
    socket.pipe(socket);
  });
  await once(gateway.listen(0, '127.0.0.1'), 'listening');
  demo = await startDemo({
    port: 0,
    host: '127.0.0.1',
    dir: join(dir, 'demo'),
    apiUrl: `http://127.0.0.1:${port}`,
    apiKey: 'rtc_sk_test',
    gatewayUrl: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`,
    hosts: ['demo.example.test'],
    onError: () => undefined,
  });
});
afterAll(async () => {
  await demo.close();
  api.close();
  gateway.close();
});

const url = (path: string) => demo.url + path;
const joinAs = (body: unknown) =>
  fetch(url('/demo/api/join'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
/** Sends a request with headers that `fetch` does not let its callers set. */
const ask = (method: string, path: string, headers: Record<string, string>) =>
  new Promise<{ status: number; body: any }>((resolve, reject) => {
    const sent = httpRequest(url(path), { method, headers }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () =>
        resolve({ status: response.statusCode!, body: text.startsWith('{') ? JSON.parse(text) : text }),
      );
    });
    sent.on('error', reject);
    sent.end(method === 'POST' ? JSON.stringify({ room: 'Door', name: 'Eve' }) : undefined);
  });
const JSON_TYPE = { 'content-type': 'application/json' };

test('serves the files of the demo folder and no others', async () => {
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
    '/demo/assets',
    '/demo/%00',
    '/demo/%zz',
    '/x',
  ]) {
    expect((await fetch(url(path))).status).toBe(404);
  }
});

test('creates one room per name, replaces a room that has ended, and answers with a token', async () => {
  const first = await joinAs({ room: 'Tea', name: 'Ada' });
  expect([first.status, await first.json()]).toEqual([200, { token: 't', roomId: 'room_1', participantId: 'p' }]);
  expect(await (await joinAs({ room: ' Tea ', name: 'Bob' })).json()).toMatchObject({ roomId: 'room_1' });
  expect(received[1]).toMatchObject({
    path: '/v1/rooms/room_1/tokens',
    authorization: 'Bearer rtc_sk_test',
    body: { participantName: 'Ada', permissions: expect.arrayContaining(['room:join', 'screen:publish']) },
  });
  ended.add('room_1');
  const again = (await (await joinAs({ room: 'Tea', name: 'Eve' })).json()) as { roomId: string };
  expect(again.roomId).not.toBe('room_1');
});

test('passes the WebSockets of the page on to the gateway', async () => {
  const upgrade = (host: string) =>
    new Promise<string | undefined>((resolve, reject) => {
      httpRequest(url('/v1/signaling'), { headers: { host, connection: 'Upgrade', upgrade: 'websocket' } })
        .on('upgrade', ({ headers }, socket) => {
          socket.once('data', (data: Buffer) => {
            socket.destroy();
            resolve(`${String(headers['x-path'])} ${data.toString()}`);
          });
          socket.write('hello');
        })
        .on('error', reject)
        .end();
    });
  expect(await upgrade('localhost')).toBe('/v1/signaling hello');
  await expect(upgrade('evil.example.com')).rejects.toThrow();
});

test('refuses invalid names of rooms and participants', async () => {
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

describe('the demo door', () => {
  test.each(['localhost', '127.0.0.1', '[::1]', 'app.localhost:1', 'demo.example.test', 'DEMO.example.test:443'])(
    'serves the page and tokens under the host %s',
    async (host) => {
      expect((await ask('GET', '/demo/', { host })).status).toBe(200);
      const origin = `https://${host}`;
      expect((await ask('POST', '/demo/api/join', { host, ...JSON_TYPE, origin })).status).toBe(200);
    },
  );

  test.each([
    'evil.example.com',
    '127.0.0.1.evil.example.com',
    '192.0.2.1',
    'localhost.evil.example.com:8082',
    '[::2]',
  ])('refuses the page and tokens under the foreign host %s (DNS rebinding)', async (host) => {
    for (const [method, path] of [
      ['GET', '/demo/'],
      ['POST', '/demo/api/join'],
    ] as const) {
      const { status, body } = await ask(method, path, { host, ...JSON_TYPE });
      expect([status, body.error.code]).toEqual([403, 'ORIGIN_NOT_ALLOWED']);
    }
  });

  test.each([
    { origin: 'https://evil.example.com' },
    { origin: 'null' },
    { origin: 'http://localhost:1' },
    { origin: 'http://localhost@evil.example.com' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ] as Record<string, string>[])('refuses a token to a page of another origin: %j (CSRF)', async (from) => {
    const before = received.length;
    const { status, body } = await ask('POST', '/demo/api/join', { host: 'localhost', ...JSON_TYPE, ...from });
    expect([status, body.error.code]).toEqual([403, 'ORIGIN_NOT_ALLOWED']);
    expect(received.length).toBe(before);
  });

  test.each([{}, { 'content-type': 'text/plain' }, { 'content-type': 'application/x-www-form-urlencoded' }])(
    'refuses a body that a form of another site could send: %j',
    async (type: Record<string, string>) => {
      const { status, body } = await ask('POST', '/demo/api/join', { host: 'localhost', ...type });
      expect([status, body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    },
  );

  test('accepts every IP address but no unknown name as host if the gateway listens for other machines', () => {
    const door = createDemoDoor({ listensOn: '0.0.0.0', names: [] });
    const knows = (host: string) => door.knowsHost({ headers: { host } } as unknown as IncomingMessage);
    expect(['192.0.2.1:8082', '[2001:db8::1]:8082', 'localhost'].map(knows)).toEqual([true, true, true]);
    expect(['evil.example.com', '', '192.0.2.1.evil.example.com'].map(knows)).toEqual([false, false, false]);
  });
});
