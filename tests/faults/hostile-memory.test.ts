import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { PROTOCOL_LIMITS, SUBPROTOCOL } from '@callplane/protocol';
import { eventually, listenUntilEnd, repositoryRoot, roomRow, type TestApp } from '@callplane/testing';
import { WebSocket } from 'ws';
import { parse } from 'yaml';
import { measured, startStack, type Stack } from './faults.testkit.js';
import { startWebhookStack } from './webhooks.testkit.js';

/** Number of rounds per hostile input, and concurrent requests per round. */
const ROUNDS = 4;
const AT_ONCE = 8;

/** The memory of an app in its container: the limit in MiB, and Node's options in the image. */
function containerOf(service: string): { limitMib: number; env: Record<string, string> } {
  const read = (file: string) => readFileSync(join(repositoryRoot, file), 'utf8');
  const compose = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Record<string, { deploy: { resources: { limits: { memory: string } } } }>;
  };
  const [, options = ''] = /NODE_OPTIONS="([^"]+)"/.exec(read('infra/Dockerfile')) ?? [];
  expect(options).toContain('--max-old-space-size');
  const limitMib = Number(/^(\d+)M$/.exec(compose.services[service]!.deploy.resources.limits.memory)?.[1]);
  // An image has no cache of compiled code: the memory of the compilation counts.
  return { limitMib, env: { NODE_OPTIONS: options, NODE_DISABLE_COMPILE_CACHE: '1' } };
}

/** The peak resident memory of a process so far, in MiB. */
function peakMib({ pid }: TestApp): number {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}

async function repeatedly(work: () => Promise<void>): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) await Promise.all(Array.from({ length: AT_ONCE }, work));
}

const fields = (count: number) => Array.from({ length: count }, (_, n) => `"${n.toString(36)}":1`).join(',');
const key = (length: number) => 'k'.repeat(length);

test('an API within the memory limit of its container survives hostile bodies and sends short responses', async () => {
  const stack = await startStack();
  const { limitMib, env } = containerOf('api');
  const api = await stack.spawnApi(env);
  const room = await stack.newRoom(api);
  const bodies: [string, string, string][] = [
    ['numbers below a long key', '/v1/rooms', `{"name":"a","${key(20_000)}":[${'9e999,'.repeat(7000)}1]}`],
    ['7,000 unknown fields', '/v1/rooms', `{"name":"a",${fields(7000)}}`],
    [
      '15,000 bad permissions',
      `/v1/rooms/${room}/tokens`,
      `{"participantName":"a","permissions":[${'"a",'.repeat(15_000)}"b"]}`,
    ],
    ['60,000 brackets', '/v1/rooms', '['.repeat(30_000) + ']'.repeat(30_000)],
  ];
  const figures: Record<string, number> = { 'before MiB': peakMib(api) };
  for (const [name, path, body] of bodies) {
    expect([name, body.length <= 65_536]).toEqual([name, true]);
    await repeatedly(async () => {
      const response = await fetch(`${api.url}${path}`, {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${stack.tenant.key}`, 'content-type': 'application/json' },
      });
      const text = await response.text();
      const isClientError = response.status >= 400 && response.status < 500;
      expect([name, isClientError, text.length <= 16 * 1024]).toEqual([name, true, true]);
    });
    figures[`${name} MiB`] = peakMib(api);
  }
  for (const [name, work] of Object.entries(readDoors(stack, api))) {
    await work();
    figures[`${name} MiB`] = peakMib(api);
  }
  measured(figures);
  expect(peakMib(api)).toBeLessThan(limitMib);
  await eventually(
    async () => (await stack.call(api, 'POST', '/v1/rooms', { body: { name: 'after' } })).status === 201,
  );
});

/** The doors that answer much to small requests. */
function readDoors(stack: Stack, api: TestApp): Record<string, () => Promise<void>> {
  const { key, environmentId } = stack.tenant;
  /** Opens connections that send these bytes and read nothing, until `isEnough`. The API closes them after a while. */
  const unread = async (count: number, bytes: string, isEnough: () => Promise<boolean>): Promise<void> => {
    await eventually(async () => {
      const sockets = Array.from({ length: count }, () =>
        connect(Number(new URL(api.url).port), '127.0.0.1')
          .on('error', () => undefined)
          .pause(),
      );
      try {
        for (const socket of sockets) socket.write(bytes);
        return await eventually(isEnough, { timeoutMs: 10_000 });
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    });
  };
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  const isRefused = (path: string) => async () => {
    const response = await fetch(api.url + path, { headers: { authorization: `Bearer ${key}` } });
    // A stream has no end.
    await response.body?.cancel();
    return response.status === 429;
  };
  return {
    'lists of 1.6 MB that are never read': async () => {
      const metadata = { text: 'x'.repeat(16_000) };
      await stack.database.prisma.room.createMany({
        data: Array.from({ length: 100 }, () => roomRow({ environmentId }, { metadata })),
      });
      await unread(2, get('/v1/rooms?limit=100').repeat(40), isRefused('/v1/rooms?limit=100'));
    },
    'the OpenAPI document, never read': async () => {
      const before = api.logs.length;
      await unread(100, get('/openapi.json').repeat(20), () => Promise.resolve(api.logs.length >= before + 100));
    },
    'streams of changes, never read': () => unread(60, get('/v1/stream'), isRefused('/v1/stream')),
  };
}

/**
 * Opens a WebSocket and sends these frames. Resolves to the code with which it closed, or to null once as many messages
 * came as were sent. No message may be long.
 */
async function exchange(gateway: TestApp, frames: readonly string[]): Promise<number | null> {
  const socket = new WebSocket(`${gateway.url.replace(/^http/, 'ws')}/v1/signaling`, [SUBPROTOCOL], {
    perMessageDeflate: false,
  });
  let answers = 0;
  const answered = new Promise<null>((resolve, reject) => {
    socket.on('message', (data: Buffer) => {
      if (data.toString().startsWith('{"type":"error"') && data.length > 16 * 1024) reject(new Error('a long message'));
      answers += 1;
      if (frames.length > 1 && answers >= frames.length) resolve(null);
    });
    socket.on('error', reject);
  });
  const closed = once(socket, 'close').then(([code]: number[]) => code!);
  await once(socket, 'open');
  for (const frame of frames) socket.send(frame);
  const outcome = await Promise.race([answered, closed]);
  socket.close();
  return outcome;
}

test('a gateway within the memory limit of its container survives hostile frames and sends short responses', async () => {
  const stack = await startStack();
  const { limitMib, env } = containerOf('signaling');
  const [api, gateway] = await Promise.all([stack.spawnApi(), stack.spawnSignaling(env)]);
  const figures: Record<string, number> = { 'before MiB': peakMib(gateway) };
  const firsts: [string, string, number][] = [
    ['a join of 131 KB', `{"type":"join","${key(64_000)}":[${'9e999,'.repeat(11_160)}1]}`, 4012],
    ['a join of 10 KiB with unknown fields', `{"type":"join",${fields(1150)}}`, 4011],
  ];
  for (const [name, frame, code] of firsts) {
    await repeatedly(async () => expect([name, await exchange(gateway, [frame])]).toEqual([name, code]));
    figures[`${name} MiB`] = peakMib(gateway);
  }

  const room = await stack.newRoom(api);
  const hostile = [
    `{"type":"message","${key(60_000)}":[${'9e999,'.repeat(11_000)}1]}`,
    `{"type":"ping",${fields(12_000)}}`,
    `{"type":"message","data":1,"to":[${'"a b",'.repeat(20_000)}"c"]}`,
    `{"type":"subscribe","tracks":[${`{${'"a":1,'.repeat(40)}"b":1},`.repeat(480)}{}]}`,
  ];
  for (const frame of hostile) expect(frame.length).toBeLessThanOrEqual(PROTOCOL_LIMITS.frameBytesMax);
  await repeatedly(async () => {
    const token = await stack.call(api, 'POST', `/v1/rooms/${room}/tokens`, {
      body: { participantName: 'Ada', permissions: ['room:join', 'messages:send'] },
    });
    await exchange(gateway, [JSON.stringify({ type: 'join', token: token.body.token }), ...hostile]);
  });
  figures['frames of 128 KiB in a session MiB'] = peakMib(gateway);
  measured(figures);
  expect(peakMib(gateway)).toBeLessThan(limitMib);
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
});

test('a webhook worker within the memory limit of its container survives hostile answers of receivers', async () => {
  const stack = await startWebhookStack();
  const { limitMib, env } = containerOf('webhook-worker');
  const [api, worker] = await Promise.all([stack.spawnApi(), stack.spawnWebhookWorker(env)]);
  const figures: Record<string, number> = { 'before MiB': peakMib(worker) };
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  const endless = createServer((request, response) => {
    request.resume();
    const more = (): void => void (response.write(chunk) ? setImmediate(more) : response.once('drain', more));
    response.on('error', () => undefined).writeHead(500);
    more();
  });
  const endlessHead = createTcpServer((socket) => {
    socket.on('error', () => undefined).write('HTTP/1.1 200 OK\r\n');
    const more = (): void => void (socket.write(`x: ${'y'.repeat(8000)}\r\n`) ? setImmediate(more) : undefined);
    socket.on('drain', more);
    more();
  });
  for (const [name, server] of [
    ['a body of a failure that never ends', endless],
    ['a head that never ends', endlessHead],
  ] as const) {
    const { origin } = await listenUntilEnd(server);
    const { status } = await stack.call(api, 'POST', '/v1/webhooks', { body: { url: `${origin}/` } });
    expect(status).toBe(201);
    await Promise.all(Array.from({ length: ROUNDS * AT_ONCE }, () => stack.newRoom(api)));
    await eventually(
      async () => (await stack.database.prisma.webhookDelivery.count({ where: { runAttempts: 0 } })) === 0,
    );
    figures[`${name} MiB`] = peakMib(worker);
  }
  measured(figures);
  expect(peakMib(worker)).toBeLessThan(limitMib);
  expect((await fetch(`${worker.healthUrl}/readyz`)).status).toBe(200);
});
