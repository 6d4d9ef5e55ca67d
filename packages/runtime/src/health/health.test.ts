import { afterEach, describe, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { createLogger } from '../logging/logger.js';
import { createHealth, startHealthServer, type HealthCheck } from './health.js';

const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function serve(checks: Record<string, HealthCheck>, closing = false) {
  const server = await startHealthServer(
    createHealth(logger, checks, () => closing),
    { host: '127.0.0.1', port: 0 },
  );
  closers.push(() => server.close());
  return async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return [response.status, await response.json()] as const;
  };
}

const up: HealthCheck = { ping: () => Promise.resolve() };
const down: HealthCheck = { ping: () => Promise.reject(new Error('down')) };

describe('the health of a process', () => {
  test('is live regardless of its dependencies, and ready only if all of them answer', async () => {
    const get = await serve({ postgres: down, redis: up });
    expect(await get('/livez')).toEqual([200, { status: 'ok' }]);
    expect(await get('/readyz')).toEqual([
      503,
      { status: 'unavailable', checks: { postgres: 'unavailable', redis: 'ok' } },
    ]);
  });

  test('reports a hanging dependency as unavailable after a second', async () => {
    const get = await serve({ postgres: { ping: () => new Promise(() => undefined) } });
    expect((await get('/readyz'))[0]).toBe(503);
  });

  test('is ready but degraded without an optional dependency', async () => {
    const get = await serve({ postgres: up, redis: { ...down, optional: true } });
    expect(await get('/readyz')).toEqual([
      200,
      { status: 'degraded', checks: { postgres: 'ok', redis: 'unavailable' } },
    ]);
  });

  test('costs one check of each dependency for any number of simultaneous requests', async () => {
    let checks = 0;
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const slow: HealthCheck = {
      ping: () => {
        checks += 1;
        return answered;
      },
    };
    const health = createHealth(logger, { postgres: slow }, () => false);
    const reports = Array.from({ length: 500 }, () => health.readyz());
    answer();
    expect(new Set((await Promise.all(reports)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(checks).toBe(1);
    await health.readyz();
    expect(checks).toBe(2);
  });

  test('is not ready while it drains', async () => {
    const get = await serve({}, true);
    expect((await get('/readyz'))[0]).toBe(503);
    expect((await get('/livez'))[0]).toBe(200);
    expect((await get('/other'))[0]).toBe(404);
  });
});

test('the health server answers errors in the common shape, with one Host header exactly', async () => {
  const server = await startHealthServer(
    createHealth(logger, {}, () => false),
    { host: '127.0.0.1', port: 0 },
  );
  closers.push(() => server.close());
  const ask = async (request: string) => {
    const socket = connect(server.port, '127.0.0.1', () => socket.write(`${request}\r\n\r\n`));
    const text = await new Response(Readable.toWeb(socket) as ReadableStream).text();
    const [head = '', body = ''] = text.split('\r\n\r\n');
    const requestId = /^x-request-id: (.*)$/im.exec(head)?.[1];
    expect([request, requestId]).toEqual([request, expect.stringMatching(/^req_/)]);
    const { error } = JSON.parse(body) as { error?: { code: string; requestId: string } };
    if (error !== undefined) expect(error.requestId).toBe(requestId);
    return [Number(head.split(' ')[1]), error?.code];
  };
  expect(await ask('GET /livez HTTP/1.1\r\nHost: a')).toEqual([200, undefined]);
  expect(await ask('GET /livez HTTP/1.1')).toEqual([400, 'VALIDATION_FAILED']);
  expect(await ask('GET /livez HTTP/1.1\r\nHost: a\r\nHost: a')).toEqual([400, 'VALIDATION_FAILED']);
  expect(await ask('GET /livez/ HTTP/1.1\r\nHost: a')).toEqual([404, 'ROUTE_NOT_FOUND']);
  expect(await ask('DELETE /livez HTTP/1.1\r\nHost: a')).toEqual([405, 'METHOD_NOT_ALLOWED']);
});
