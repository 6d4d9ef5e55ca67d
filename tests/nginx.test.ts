import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { ERROR_TABLE } from '@callplane/core';
import { freePort } from '@callplane/local-servers';
import { eventually, listenUntilEnd, rawExchange, startTestNginx, type TestNginx } from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { WebSocket, WebSocketServer } from 'ws';

/** Tests infra/nginx from a caller's side: nginx's own errors, its limits, and the routing of paths to the apps. */

/** Requests as the apps received them. */
const reached: { app: string; url: string; requestId: string | undefined; caller: unknown }[] = [];

/** Sends the next message of the stream that is open. */
let sendNext: (() => void) | undefined;

/** More than the sockets of both sides and the buffers of nginx hold. */
const LARGE_BYTES = 32 * 1024 * 1024;
let largeBytesSent = 0;

/** Starts an app, and returns its port. */
async function startApp(app: string): Promise<number> {
  const server = createServer((request, response) => {
    const { url = '' } = request;
    const requestId = request.headers['x-request-id']?.toString();
    reached.push({ app, url, requestId, caller: request.headers['x-forwarded-for'] });
    if (url === '/never') return;
    if (url === '/large') {
      const chunk = Buffer.alloc(64 * 1024);
      const chunks = function* () {
        for (largeBytesSent = 0; largeBytesSent < LARGE_BYTES; largeBytesSent += chunk.length) yield chunk;
      };
      response.writeHead(200, { 'content-length': LARGE_BYTES, connection: 'close' });
      Readable.from(chunks()).pipe(response);
      return;
    }
    if (url === '/dies') {
      request.socket.destroy();
      return;
    }
    if (url === '/v1/stream') {
      // As apps/api/src/stream/event-stream.ts does.
      response.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
      response.write('event: ready\n\n');
      sendNext = () => response.write('event: changes\n\n');
      return;
    }
    request.resume();
    const text = `${app} answers`;
    // nginx must pass an app's own error through.
    const status = url === '/v1/broken' ? 503 : 200;
    response.writeHead(status, { 'x-request-id': requestId ?? 'none', 'content-length': text.length }).end(text);
  });
  if (app === 'signaling') {
    new WebSocketServer({ server }).on('connection', (socket) => socket.on('error', () => undefined));
  }
  return (await listenUntilEnd(server)).port;
}

let apps: { api: number[]; signaling: number[] };
let nginx: TestNginx;
beforeAll(async () => {
  apps = { api: [await startApp('api')], signaling: [await startApp('signaling')] };
  nginx = await startTestNginx(apps, {
    edit: (_, text) =>
      text
        .replace('client_header_timeout 10s', 'client_header_timeout 2s')
        .replace('proxy_read_timeout 45s', 'proxy_read_timeout 1s'),
  });
});

interface Answer {
  /** 0 if the connection ended without an answer. */
  status: number;
  headers: Headers;
  text: string;
}

async function exchange(bytes: string, { url }: TestNginx = nginx): Promise<Answer> {
  const answer = await rawExchange(url, bytes).catch((error: unknown) => {
    // nginx resets connections that are too slow.
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return '';
    throw error;
  });
  const [head = '', text = ''] = answer.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line): [string, string] => [line.split(':')[0]!, line.slice(line.indexOf(':') + 1)]);
  return { status: Number(statusLine.split(' ')[1] ?? 0), headers: new Headers(headers), text };
}
const head = (first: string, ...headers: string[]) => [first, 'Connection: close', ...headers, '', ''].join('\r\n');
const get = (path: string, to = nginx, ...headers: string[]) =>
  exchange(head(`GET ${path} HTTP/1.1`, 'Host: a', ...headers), to);

function expectOneShape({ status, headers, text }: Answer, code: string): void {
  expect([status, text]).toEqual([status, expect.stringContaining('"error"')]);
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  const requestId = headers.get('x-request-id');
  expect(requestId).toMatch(/^req_[0-9a-f]{32}$/);
  expect(JSON.parse(text)).toEqual({ error: { code, message: expect.any(String), requestId } });
  expect(Object.keys(ERROR_TABLE)).toContain(code);
}

describe('nginx’s own errors have the common error shape', () => {
  test.each<[number, string, string, string]>([
    [400, 'VALIDATION_FAILED', 'a malformed request', 'nonsense\r\n\r\n'],
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
    for (const path of ['/v1/', '/v1/signaling', '/v1/whip']) {
      const answer = await get(path, alone);
      expect(answer.status).toBe(502);
      expectOneShape(answer, 'UNAVAILABLE');
      expect(answer.headers.get('retry-after')).toBe('2');
    }
  });

  test('ends a slow request, and passes error responses of the apps through', async () => {
    expect((await exchange('GET / HTTP/1.1\r\nHost: a\r\n')).status).toBe(0);
    expect(await get('/v1/broken')).toMatchObject({ status: 503, text: 'api answers' });
  });
});

test('keeps a well-formed request id, in its own response and for the app, and replaces a malformed one', async () => {
  const ids = async (sent: string) => {
    const header = `X-Request-Id: ${sent}`;
    const own = JSON.parse((await get('/readyz', nginx, header)).text).error.requestId;
    return [own, (await get('/v1/', nginx, header)).headers.get('x-request-id'), reached.at(-1)!.requestId];
  };
  expect(await ids('mine-1')).toEqual(['mine-1', 'mine-1', 'mine-1']);
  const fresh = expect.stringMatching(/^req_[0-9a-f]{32}$/);
  for (const bad of ['a b', 'x"y', 'x'.repeat(129), '']) expect(await ids(bad)).toEqual([fresh, fresh, fresh]);
});

test('names the caller’s real address to the app, not the one that a caller claims, and logs no key', async () => {
  await get('/v1/', nginx, 'X-Forwarded-For: 203.0.113.9', 'Authorization: Bearer sk_hush', 'X-Request-Id: logged');
  expect(reached.at(-1)!.caller).toBe('127.0.0.1');
  // nginx writes the line after its response.
  await eventually(() => nginx.output().includes('"requestId":"logged"'));
  expect(nginx.output()).not.toContain('hush');
});

describe('paths', () => {
  const spellings = (path: string) => [
    ...[path, `${path}/`, `${path}//`, `/${path}`, `//${path}/`, `${path}?x=1`, `${path}/?x=1`, path.toUpperCase()],
    ...[`${path}%2f`, `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`, `/.${path}`, `/x/..${path}`],
    ...[`/x/%2e%2e${path}`, `/v1/..${path}`, `${path}/.`, `${path}/x/..`, `${path}#x`, `http://a${path}`],
  ];
  test.each(['/livez', '/readyz', '/metrics'])('%s is unreachable in every spelling', async (path) => {
    const before = reached.length;
    for (const spelling of spellings(path)) {
      expect([spelling, (await get(spelling)).status]).toEqual([spelling, 404]);
    }
    expect(reached.slice(before)).toEqual([]);
  });

  test('that are public are forwarded unchanged to the app that serves them', async () => {
    const rooms = ['/v1/rooms?limit=1', '/v1/rooms/x%2Fy'];
    for (const path of ['/v1/', ...rooms, '/docs', '/console/rooms', '/openapi.json', '/.well-known/jwks.json']) {
      expect(await get(path)).toMatchObject({ status: 200, text: 'api answers' });
      expect(reached.at(-1)).toMatchObject({ app: 'api', url: path });
    }
    for (const path of ['/v1/signaling', '/v1/whip', '/v1/whip/sess_1', '/v1/whip?x=1']) {
      expect(await get(path)).toMatchObject({ text: 'signaling answers' });
      expect(reached.at(-1)).toMatchObject({ app: 'signaling', url: path });
    }
    expect(await get('/v1/whipped')).toMatchObject({ text: 'api answers' });
    expect(JSON.parse((await get('/lb/livez')).text)).toEqual({ status: 'ok' });
  });
});

test('passes each message of a stream on before the next one exists', async () => {
  const stream = await fetch(`${nginx.url}/v1/stream`);
  const reader = stream.body!.getReader();
  const read = async () => Buffer.from((await reader.read()).value ?? []).toString();
  expect(await read()).toBe('event: ready\n\n');
  sendNext!();
  expect(await read()).toBe('event: changes\n\n');
  await reader.cancel();
});

test('keeps neither bodies nor responses in its temporary folder, which is memory', async () => {
  const edge = await startTestNginx(apps);
  // nginx has created the folders at its start. Without them, a temporary file fails.
  rmSync(join(edge.dir, 'tmp'), { recursive: true });
  const body = 'x'.repeat(95 * 1024);
  const post = head('POST /v1/rooms HTTP/1.1', 'Host: a', `Content-Length: ${body.length}`);
  expect(await exchange(post + body, edge)).toMatchObject({ status: 200, text: 'api answers' });
  const socket = connect(edge.port, '127.0.0.1', () => socket.write(head('GET /large HTTP/1.1', 'Host: a')));
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
});

test('an instance gets a write that it has received only once, and a read goes to another instance', async () => {
  const both = [await startApp('api'), await startApp('api')];
  // nginx gives up after one try, as it does when a resolution changes the list of instances during a request. Debian's
  // nginx has no `resolve`.
  const edge = await startTestNginx(
    { api: both, signaling: apps.signaling },
    {
      edit: (_, text) =>
        text
          .replace('proxy_next_upstream_tries 0', 'proxy_next_upstream_tries 1')
          .replace('proxy_read_timeout 45s', 'proxy_read_timeout 1s'),
    },
  );
  const timesReached = async (method: string, path: string): Promise<[number, number]> => {
    const before = reached.length;
    const { status } = await exchange(`${head(`${method} ${path} HTTP/1.1`, 'Host: a', 'Content-Length: 2')}{}`, edge);
    return [status, reached.length - before];
  };
  expect(await timesReached('POST', '/dies')).toEqual([502, 1]);
  expect(await timesReached('GET', '/dies')).toEqual([502, 2]);
  expect(await timesReached('GET', '/never')).toEqual([504, 1]);
});

describe('limits of one address', () => {
  /** Starts nginx with limits that a test can exceed. */
  const limited = (...figures: [string, string][]) =>
    startTestNginx(apps, {
      edit: (file, text) =>
        file === 'limits.conf' ? figures.reduce((changed, [from, to]) => changed.replace(from, to), text) : text,
    });

  test('REST requests beyond rate and burst get 429, and WebSockets have a separate limit', async () => {
    const small = await limited(['rate=1000r/s', 'rate=1r/m'], ['burst=2000', 'burst=4']);
    const answers = await Promise.all(Array.from({ length: 12 }, () => get('/v1/', small)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array<number>(5).fill(200), ...Array<number>(7).fill(429)]);
    const refused = answers.find(({ status }) => status === 429)!;
    expectOneShape(refused, 'RATE_LIMITED');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await get('/v1/signaling', small)).status).toBe(200);
    expect((await get('/lb/livez', small)).status).toBe(200);
  });

  test('WebSockets and requests beyond the limit of concurrent ones get 429 until one ends', async () => {
    const small = await limited(
      ['signaling_connections 1000', 'signaling_connections 2'],
      ['api_connections 1000', 'api_connections 2'],
    );
    const held = [1, 2].map(() => new WebSocket(`${small.url.replace('http', 'ws')}/v1/signaling`));
    await Promise.all(held.map((socket) => once(socket, 'open')));
    const refused = await get('/v1/signaling', small);
    expect(refused.status).toBe(429);
    expectOneShape(refused, 'RATE_LIMITED');
    for (const socket of held) socket.terminate();
    await eventually(async () => (await get('/v1/signaling', small)).status === 200);

    const before = reached.length;
    const waiting = [1, 2].map(() => connect(small.port, '127.0.0.1'));
    for (const socket of waiting) socket.write(head('GET /never HTTP/1.1', 'Host: a'));
    await eventually(() => reached.length === before + 2);
    expectOneShape(await get('/v1/', small), 'RATE_LIMITED');
    for (const socket of waiting) socket.destroy();
    await eventually(async () => (await get('/v1/', small)).status === 200);
  });
});
