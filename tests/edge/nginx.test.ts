import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, Server as NetServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { ERROR_TABLE } from '@callplane/core';
import { freePort } from '@callplane/local-servers';
import { eventually, startTestNginx, stopAtEnd, type TestNginx } from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { WebSocketServer } from 'ws';

/** Tests infra/nginx from a caller's side: nginx's own errors, its limits, and the routing of paths to the apps. */

/** Requests as the apps received them. */
const reached: { app: string; url: string; requestId: string | undefined }[] = [];

/** Sends the next message of the stream that is open. */
let sendNext: (() => void) | undefined;

/** More than the sockets of both sides and the buffers of nginx hold. */
const LARGE_BYTES = 32 * 1024 * 1024;
let largeBytesSent = 0;

interface TestApp {
  port: number;
  /** Refuses new connections, and closes each open one with its next answer, as a draining app does. */
  leave(): void;
}

async function startApp(app: string): Promise<TestApp> {
  let leaves = false;
  const server = createServer((request, response) => {
    const requestId = request.headers['x-request-id']?.toString();
    reached.push({ app, url: request.url!, requestId });
    if (request.url === '/never') return;
    if (request.url === '/large') {
      const chunk = Buffer.alloc(64 * 1024);
      const chunks = function* () {
        for (largeBytesSent = 0; largeBytesSent < LARGE_BYTES; largeBytesSent += chunk.length) yield chunk;
      };
      response.writeHead(200, { 'content-length': LARGE_BYTES, connection: 'close' });
      Readable.from(chunks()).pipe(response);
      return;
    }
    if (request.url === '/dies') {
      request.socket.destroy();
      return;
    }
    if (request.url === '/v1/stream') {
      // As apps/api/src/stream/event-stream.ts does.
      response.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
      response.write('event: ready\n\n');
      sendNext = () => response.write('event: changes\n\n');
      return;
    }
    request.resume();
    const text = `${app} answers`;
    const headers = { 'x-request-id': requestId ?? 'none', 'content-length': text.length };
    if (leaves) response.setHeader('connection', 'close');
    // nginx must pass an app's own error through.
    response.writeHead(request.url === '/v1/broken' ? 503 : 200, headers).end(text);
  });
  if (app === 'signaling') {
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => socket.on('error', () => undefined));
    stopAtEnd(() => {
      for (const socket of sockets.clients) socket.terminate();
      return Promise.resolve();
    });
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stopAtEnd(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return {
    port: (server.address() as AddressInfo).port,
    leave: () => {
      leaves = true;
      // `http.Server.close()` would also close idle connections, and with them a request that is just arriving.
      NetServer.prototype.close.call(server);
    },
  };
}

let apps: { api: number[]; signaling: number[] };
let nginx: TestNginx;
beforeAll(async () => {
  apps = { api: [(await startApp('api')).port], signaling: [(await startApp('signaling')).port] };
  nginx = await startTestNginx(apps, {
    edit: (_, text) =>
      text
        .replace('client_header_timeout 10s', 'client_header_timeout 2s')
        .replace('proxy_read_timeout 45s', 'proxy_read_timeout 1s'),
  });
});

interface Answer {
  status: number;
  headers: Headers;
  body: any;
  text: string;
}

/** Sends raw bytes and reads one response. */
function exchange(bytes: string, to: TestNginx = nginx): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(to.port, '127.0.0.1', () => socket.write(bytes));
    const done = () => {
      socket.destroy();
      const [head = '', ...rest] = text.split('\r\n\r\n');
      const [statusLine = '', ...lines] = head.split('\r\n');
      const headers = new Headers(
        lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
      );
      const body = rest.join('\r\n\r\n');
      resolve({
        status: Number(statusLine.split(' ')[1] ?? 0),
        headers,
        text: body,
        body: headers.get('content-type')?.startsWith('application/json') === true ? JSON.parse(body) : null,
      });
    };
    socket.on('data', (chunk) => {
      text += chunk.toString();
      const length = /content-length: (\d+)\r\n/i.exec(text)?.[1];
      const bodyAt = text.indexOf('\r\n\r\n') + 4;
      if (length !== undefined && bodyAt > 3 && text.length >= bodyAt + Number(length)) done();
    });
    socket.on('end', done);
    // nginx resets connections that are too slow.
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? done() : reject(error)));
  });
}
const get = (path: string, ...headers: string[]) =>
  exchange(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers.map((h) => `${h}\r\n`).join('')}\r\n`);

function expectOneShape({ status, headers, body, text }: Answer, code: string): void {
  expect([status, text]).toEqual([status, expect.stringContaining('"error"')]);
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  const requestId = headers.get('x-request-id');
  expect(requestId).toMatch(/^req_[0-9a-f]{32}$/);
  expect(body).toEqual({ error: { code, message: expect.any(String), requestId } });
  expect(Object.keys(ERROR_TABLE)).toContain(code);
}

describe('nginx’s own errors have the common error shape', () => {
  const head = (first: string, ...headers: string[]) => `${first}\r\n${headers.map((h) => `${h}\r\n`).join('')}\r\n`;
  test.each<[number, string, string, string]>([
    [400, 'VALIDATION_FAILED', 'a malformed request', head('nonsense')],
    [400, 'VALIDATION_FAILED', 'HTTP/1.1 without Host', head('GET /v1/ HTTP/1.1')],
    [400, 'VALIDATION_FAILED', 'two Hosts', head('GET /v1/ HTTP/1.1', 'Host: a', 'Host: a')],
    [400, 'VALIDATION_FAILED', 'a path with a zero byte', head('GET /%00 HTTP/1.1', 'Host: a')],
    [404, 'ROUTE_NOT_FOUND', 'a hidden path', head('GET /readyz HTTP/1.1', 'Host: a')],
    [405, 'METHOD_NOT_ALLOWED', 'CONNECT', head('CONNECT / HTTP/1.1', 'Host: a')],
    [405, 'METHOD_NOT_ALLOWED', 'TRACE', head('TRACE / HTTP/1.1', 'Host: a')],
    [413, 'PAYLOAD_TOO_LARGE', 'a large body', head('POST /v1/rooms HTTP/1.1', 'Host: a', 'Content-Length: 2000000')],
    [414, 'VALIDATION_FAILED', 'a long target', head(`GET /${'x'.repeat(10_000)} HTTP/1.1`, 'Host: a')],
    [431, 'HEADERS_TOO_LARGE', 'large headers', head('GET / HTTP/1.1', 'Host: a', `X: ${'x'.repeat(10_000)}`)],
    [501, 'VALIDATION_FAILED', 'an unknown encoding', head('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: gzip')],
    [504, 'UNAVAILABLE', 'an app that does not answer', head('POST /never HTTP/1.1', 'Host: a', 'Content-Length: 0')],
    [505, 'VALIDATION_FAILED', 'HTTP/3.0 in text', head('GET / HTTP/3.0', 'Host: a')],
  ])('%i %s for %s', async (status, code, _, bytes) => {
    const answer = await exchange(bytes);
    expect(answer.status).toBe(status);
    expectOneShape(answer, code);
    expect(answer.headers.get('retry-after')).toBe(status === 504 ? '2' : null);
    expect(answer.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD, POST, PATCH, DELETE' : null);
  });

  test('returns 502 when no app listens', async () => {
    const alone = await startTestNginx({ api: [await freePort()], signaling: [await freePort()] });
    for (const path of ['/v1/', '/v1/signaling']) {
      const answer = await exchange(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`, alone);
      expect(answer.status).toBe(502);
      expectOneShape(answer, 'UNAVAILABLE');
      expect(answer.headers.get('retry-after')).toBe('2');
    }
    await alone.stop();
  });

  test('ends a slow request, and passes error responses of the apps through', async () => {
    expect((await exchange('GET / HTTP/1.1\r\nHost: a\r\n')).status).toBe(0);
    expect((await exchange('')).status).toBe(0);
    expect(await get('/v1/broken')).toMatchObject({ status: 503, text: 'api answers' });
  });
});

describe('request ids', () => {
  test('keeps a well-formed id, in its own response and for the app', async () => {
    expect((await get('/readyz', 'X-Request-Id: mine-1')).body.error.requestId).toBe('mine-1');
    expect((await get('/v1/', 'X-Request-Id: mine-2')).headers.get('x-request-id')).toBe('mine-2');
  });

  test('replaces a malformed id, and the app gets the new one', async () => {
    for (const bad of ['a b', 'x"y', 'x'.repeat(129), '']) {
      expect((await get('/readyz', `X-Request-Id: ${bad}`)).body.error.requestId).toMatch(/^req_/);
      expect((await get('/v1/', `X-Request-Id: ${bad}`)).headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/);
    }
    expect(reached.at(-1)!.requestId).toMatch(/^req_/);
  });
});

describe('paths', () => {
  const spellings = (path: string) => [
    path,
    `${path}/`,
    `${path}//`,
    `/${path}`,
    `//${path}/`,
    `${path}?x=1`,
    `${path}/?x=1`,
    path.toUpperCase(),
    `${path}%2f`,
    `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`,
    `/.${path}`,
    `/x/..${path}`,
    `/x/%2e%2e${path}`,
    `/v1/..${path}`,
    `${path}/.`,
    `${path}/x/..`,
    `${path}#x`,
    `http://a${path}`,
  ];
  test.each(['/livez', '/readyz', '/metrics'])('%s is unreachable in every spelling', async (path) => {
    const before = reached.length;
    for (const spelling of spellings(path)) {
      const answer = await get(spelling);
      expect([spelling, answer.status]).toEqual([spelling, 404]);
    }
    expect(reached.slice(before)).toEqual([]);
  });

  test('forwards public paths unchanged to the app that serves them', async () => {
    for (const path of [
      '/v1/',
      '/v1/rooms?limit=1',
      '/v1/rooms/x%2Fy',
      '/docs',
      '/console/rooms',
      '/openapi.json',
      '/.well-known/jwks.json',
    ]) {
      expect(await get(path)).toMatchObject({ status: 200, text: 'api answers' });
      expect(reached.at(-1)).toMatchObject({ app: 'api', url: path });
    }
    expect(await get('/v1/signaling')).toMatchObject({ text: 'signaling answers' });
    expect((await get('/lb/livez')).body).toEqual({ status: 'ok' });
  });

  test('passes each message of a stream on before the next one exists', async () => {
    const stream = await fetch(`http://127.0.0.1:${nginx.port}/v1/stream`);
    const reader = stream.body!.getReader();
    const read = async () => Buffer.from((await reader.read()).value ?? []).toString();
    expect(await read()).toBe('event: ready\n\n');
    sendNext!();
    expect(await read()).toBe('event: changes\n\n');
    await reader.cancel();
  });
});

test('nginx keeps neither bodies nor responses in its temporary folder, which is memory', async () => {
  const edge = await startTestNginx(apps);
  // nginx has created the folders at its start. Without them, a temporary file fails.
  rmSync(join(edge.dir, 'tmp'), { recursive: true });
  const body = 'x'.repeat(95 * 1024);
  const head = `POST /v1/rooms HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
  expect(await exchange(head + body, edge)).toMatchObject({ status: 200, text: 'api answers' });
  const socket = connect(edge.port, '127.0.0.1', () =>
    socket.write('GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
  );
  // The app cannot send more until the caller reads.
  let before = -1;
  await eventually(
    () => {
      const isStill = largeBytesSent > 0 && largeBytesSent === before;
      before = largeBytesSent;
      return isStill;
    },
    { intervalMs: 100 },
  );
  expect(largeBytesSent).toBeLessThan(LARGE_BYTES);
  let received = 0;
  socket.on('data', (chunk) => (received += chunk.length));
  await once(socket, 'end');
  expect(received).toBeGreaterThan(LARGE_BYTES);
  expect(edge.output()).not.toContain('[crit]');
  await edge.stop();
});

describe('an instance that goes away', () => {
  /**
   * nginx gives up after one try, as it does when a resolution changes the list of instances during a request. Debian's
   * nginx has no `resolve`.
   */
  const givesUp = (upstreams: { api: number[]; signaling: number[] }, failsMax = 2) =>
    startTestNginx(upstreams, {
      edit: (_, text) =>
        text
          .replace('proxy_next_upstream_tries 0', 'proxy_next_upstream_tries 1')
          .replaceAll('max_fails=2', `max_fails=${failsMax}`)
          .replace('proxy_read_timeout 45s', 'proxy_read_timeout 1s'),
    });
  const ask = (method: string, path: string, to: TestNginx) =>
    exchange(`${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`, to);

  test('causes no 502 and no 503 under load, for reads, writes and WebSockets', async () => {
    const [stays, goes] = [await startApp('api'), await startApp('api')];
    const gateways = [await startApp('signaling'), await startApp('signaling')];
    // An instance that has refused once is skipped for a second. Otherwise the second try, which has one instance here
    // as well, could choose it again.
    const edge = await givesUp({ api: [stays.port, goes.port], signaling: gateways.map(({ port }) => port) }, 1);
    const statuses: number[] = [];
    let running = true;
    // The kernel resets connections that a closing server has not accepted. A write on one of them was sent, and is not
    // sent again. So the instance leaves between two writes, as one does that drains before it closes.
    let write: Promise<unknown> = Promise.resolve();
    const load = ['GET /v1/', 'POST /v1/rooms', 'DELETE /v1/x', 'GET /v1/signaling'].map(async (request) => {
      const [method, path] = request.split(' ');
      // Each caller goes on for ten requests after the loss.
      for (let after = 0; after < 10; after += running ? 0 : 1) {
        const answer = write.then(() => ask(method!, path!, edge));
        if (method === 'POST') write = answer;
        statuses.push((await answer).status);
      }
    });
    await eventually(() => statuses.length >= 20);
    write = write.then(() => {
      goes.leave();
      gateways[1]!.leave();
      running = false;
    });
    await write;
    await Promise.all(load);
    expect([...new Set(statuses)]).toEqual([200]);
    await edge.stop();
  });

  test('gets a write that it has received only once, and a read goes to another instance', async () => {
    const both = [(await startApp('api')).port, (await startApp('api')).port];
    const edge = await givesUp({ api: both, signaling: apps.signaling });
    const timesReached = async (method: string, path: string): Promise<[number, number]> => {
      const before = reached.length;
      const { status } = await ask(method, path, edge);
      return [status, reached.length - before];
    };
    expect(await timesReached('POST', '/dies')).toEqual([502, 1]);
    expect(await timesReached('GET', '/dies')).toEqual([502, 2]);
    expect(await timesReached('GET', '/never')).toEqual([504, 1]);
    await edge.stop();
  });
});

describe('limits of one address', () => {
  /** Starts nginx with limits that a test can exceed. */
  const limited = (figures: [RegExp, string][]) =>
    startTestNginx(apps, {
      edit: (file, text) =>
        file === 'limits.conf' ? figures.reduce((changed, [from, to]) => changed.replace(from, to), text) : text,
    });
  const ask = (to: TestNginx, path: string) =>
    exchange(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`, to);

  test('REST requests beyond rate and burst get 429, and WebSockets have a separate limit', async () => {
    const small = await limited([
      [/rate=1000r\/s/, 'rate=1r/m'],
      [/burst=2000/, 'burst=4'],
    ]);
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(small, '/v1/')));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array<number>(5).fill(200), ...Array<number>(7).fill(429)]);
    const refused = answers.find(({ status }) => status === 429)!;
    expectOneShape(refused, 'RATE_LIMITED');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await ask(small, '/v1/signaling')).status).toBe(200);
    expect((await ask(small, '/lb/livez')).status).toBe(200);
    await small.stop();
  });

  test('WebSockets beyond the limit of an address get 429 until one closes', async () => {
    const small = await limited([[/signaling_connections 1000/, 'signaling_connections 2']]);
    const held = [await upgrade(small), await upgrade(small)];
    expect(held.map(({ status }) => status)).toEqual([101, 101]);
    const third = await upgrade(small);
    expect(third.status).toBe(429);
    expect(JSON.parse(third.text.slice(third.text.indexOf('{'))).error.code).toBe('RATE_LIMITED');
    held[0]!.close();
    await eventually(async () => {
      const { status, close } = await upgrade(small);
      close();
      return status === 101;
    });
    held[1]!.close();
    await small.stop();
  });

  test('concurrent requests beyond the limit of an address get 429', async () => {
    const small = await limited([[/api_connections 1000/, 'api_connections 2']]);
    const before = reached.length;
    const waiting = [1, 2].map(() => {
      const socket = connect(small.port, '127.0.0.1', () => socket.write('GET /never HTTP/1.1\r\nHost: a\r\n\r\n'));
      return socket;
    });
    await eventually(() => reached.length === before + 2);
    const refused = await ask(small, '/v1/');
    expect(refused.status).toBe(429);
    expectOneShape(refused, 'RATE_LIMITED');
    for (const socket of waiting) socket.destroy();
    await eventually(async () => (await ask(small, '/v1/')).status === 200);
    await small.stop();
  });

  function upgrade(to: TestNginx): Promise<{ status: number; text: string; close: () => void }> {
    return new Promise((resolve, reject) => {
      const socket = connect(to.port, '127.0.0.1', () =>
        socket.write(
          'GET /v1/signaling HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
            'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
        ),
      );
      socket.once('data', (chunk) => {
        const text = chunk.toString();
        resolve({ status: Number(text.split(' ')[1]), text, close: () => socket.destroy() });
      });
      socket.once('error', reject);
    });
  }
});
