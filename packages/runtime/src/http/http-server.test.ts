import { once } from 'node:events';
import { eventually } from '@callplane/testing';
import { afterEach, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { createHttpServer, HTTP_DEADLINES, type HttpDeadlines } from './http-server.js';

const QUICK: HttpDeadlines = {
  headersMs: 200,
  requestMs: 400,
  keepAliveMs: 10_000,
  stalledMs: 10_000,
  checkEveryMs: 50,
  lingerMs: 300,
};
/** Far above the sum of the deadlines, and far below the 30 seconds of Node's default check interval. */
const GONE_MS = 20_000;

let server: Server | undefined;
let clients: Client[] = [];
afterEach(async () => {
  for (const { socket } of clients) socket.destroy();
  clients = [];
  if (server === undefined) return;
  server.closeAllConnections();
  await new Promise((resolve) => server!.close(resolve));
});

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
const ok: Handler = (request, response) => {
  request.resume();
  response.end(`answer to ${request.url}`);
};

async function serve(handler: Handler = ok, deadlines: Partial<HttpDeadlines> = {}): Promise<number> {
  const started = createHttpServer(handler, { deadlines: { ...QUICK, ...deadlines } });
  server = started;
  await once(started.listen(0, '127.0.0.1'), 'listening');
  return (started.address() as AddressInfo).port;
}

interface Client {
  socket: Socket;
  text(): string;
  /** `end` or `reset` once the server has ended the connection, else null. */
  ended(): string | null;
}

/** A client that writes bytes and never closes its own side. */
async function dial(port: number, bytes = ''): Promise<Client> {
  let text = '';
  let ended: string | null = null;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('data', (chunk) => (text += chunk.toString()));
  socket.on('end', () => (ended ??= 'end'));
  socket.on('error', () => (ended ??= 'reset'));
  const client = { socket, text: () => text, ended: () => ended };
  clients.push(client);
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  if (bytes !== '') socket.write(bytes);
  return client;
}

const connectionsOf = () => new Promise<number>((resolve) => server!.getConnections((_, count) => resolve(count)));
const untilGone = () => eventually(async () => (await connectionsOf()) === 0, { timeoutMs: GONE_MS });
const statusesIn = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
const bodyIn = (text: string) => JSON.parse(text.slice(text.lastIndexOf('\r\n\r\n'))) as { error: any };
const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

/** States of the server-side connections in the kernel, as numbers from include/net/tcp_states.h. */
function kernelStates(port: number): string[] {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address, , state]) => address?.endsWith(local) === true && state !== LISTEN)
    .map(([, , , state]) => state!);
}
const LISTEN = '0A';

describe('slow and silent connections', () => {
  test('production deadlines end a silent connection within 10 seconds', () => {
    const { headersMs, checkEveryMs, lingerMs } = HTTP_DEADLINES;
    expect(headersMs + checkEveryMs + lingerMs).toBeLessThanOrEqual(10_000);
  });

  test.each([
    ['sends no byte', ''],
    ['stops in its headers', 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow:'],
  ])('a connection that %s gets 408 once and leaves no half-open socket', async (_, bytes) => {
    const port = await serve();
    const many = await Promise.all(Array.from({ length: 20 }, () => dial(port, bytes)));
    await untilGone();
    await eventually(() => kernelStates(port).length === 0);
    for (const { text } of many) {
      expect(statusesIn(text())).toEqual(['408']);
      expect(bodyIn(text()).error).toMatchObject({
        code: 'REQUEST_TIMEOUT',
        requestId: expect.stringMatching(/^req_/),
      });
    }
  });

  test('a connection that drips its headers is ended although it is never silent', async () => {
    const port = await serve();
    const { socket, text } = await dial(port, 'GET / HTTP/1.1\r\nHost: a\r\n');
    const drip = setInterval(() => socket.write('X-Drip: 1\r\n'), 20);
    await untilGone();
    clearInterval(drip);
    expect(statusesIn(text())).toEqual(['408']);
  });

  test('a request with an incomplete body gets 408 if it is unanswered', async () => {
    const port = await serve((request) => request.resume());
    const { text } = await dial(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf');
    await untilGone();
    expect(statusesIn(text())).toEqual(['408']);
  });

  test('a caller that never reads its answer is disconnected', async () => {
    const port = await serve((_, response) => void response.end(Buffer.alloc(32 * 1024 * 1024)), { stalledMs: 300 });
    const { socket } = await dial(port);
    socket.pause();
    socket.write(GET('/'));
    await eventually(async () => (await connectionsOf()) === 1);
    await untilGone();
  });
});

describe('pipelined requests', () => {
  const later: { url: string; answer: () => void }[] = [];
  const slow: Handler = (request, response) => {
    later.push({ url: request.url!, answer: () => response.end(`answer to ${request.url}`) });
  };

  test('a bad request after good ones gets 400 after their answers', async () => {
    later.length = 0;
    const port = await serve(slow);
    const { text, ended } = await dial(port, `${GET('/1')}${GET('/2')}nonsense\r\n\r\n`);
    await eventually(() => later.length === 2);
    // More junk must not cause a second refusal.
    clients[0]!.socket.write('more\r\n\r\n');
    later[1]!.answer();
    later[0]!.answer();
    await eventually(() => ended() !== null);
    expect(statusesIn(text())).toEqual(['200', '200', '400']);
    expect(text().indexOf('answer to /1')).toBeLessThan(text().indexOf('answer to /2'));
    expect(bodyIn(text()).error.code).toBe('VALIDATION_FAILED');
    await untilGone();
  });

  test('a request with a broken body gets 400 after the answers to earlier requests', async () => {
    later.length = 0;
    const port = await serve((request, response) => {
      if (request.method === 'POST') request.resume();
      else slow(request, response);
    });
    const broken = 'POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';
    const { text, ended } = await dial(port, `${GET('/1')}${broken}`);
    await eventually(() => later.length === 1);
    later[0]!.answer();
    await eventually(() => ended() !== null);
    expect(statusesIn(text())).toEqual(['200', '400']);
  });

  test('all answers close with their connection, also answers that wait behind another', async () => {
    const [closed, received] = [new Set<string>(), new Set<string>()];
    const port = await serve((request, response) => {
      received.add(request.url!);
      response.once('close', () => closed.add(`${request.url} ${response.closed} ${response.destroyed}`));
      if (request.url !== '/3') response.write('the first part');
      if (request.url === '/2') response.end();
    });
    const { socket } = await dial(port, ['/1', '/2', '/3'].map(GET).join(''));
    await eventually(() => received.size === 3);
    socket.destroy();
    await eventually(() => closed.size === 3);
    expect([...closed].toSorted()).toEqual(['/1', '/2', '/3'].map((url) => `${url} true true`));
  });
});

test('invalid HTTP, an oversized request head and CONNECT get the standard error shape', async () => {
  const port = await serve();
  for (const [bytes, status, code] of [
    ['nonsense\r\n\r\n', '400', 'VALIDATION_FAILED'],
    [`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, '431', 'HEADERS_TOO_LARGE'],
    ['CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n', '405', 'METHOD_NOT_ALLOWED'],
  ] as const) {
    const { text, ended } = await dial(port, bytes);
    await eventually(() => ended() !== null);
    expect(statusesIn(text())).toEqual([status]);
    const { error } = bodyIn(text());
    expect(error.code).toBe(code);
    expect(text()).toContain(`x-request-id: ${error.requestId}\r\n`);
  }
  await untilGone();
});
