import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { formatApiKey } from '@callplane/core';
import { eventually } from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { startTestApi, type TestApi } from './api.testkit.js';

/** Tests that need settings of their own, or that end the process. */

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
    ROOM_END_WAIT_MS: '10000',
    STUN_URLS: 'stun:stun.example.com:3478',
    TURN_SECRET: '',
    TRUST_PROXY: '',
    RATE_LIMIT_UNKNOWN_KEYS_PER_MINUTE: '1',
    RATE_LIMIT_UNKNOWN_KEYS_BURST: '5',
    // Connections that are open stay open while the process drains.
    DRAIN_IDLE_MS: '60000',
  });
});

test('accepts webhooks over http and in private address ranges only if the configuration allows them', async () => {
  const create = (url: string) => api.call('POST', '/v1/webhooks', { body: { url } });
  expect((await create('http://127.0.0.1:9999/')).body['url']).toBe('http://127.0.0.1:9999/');
  expect((await create('http://10.0.0.1/')).status).toBe(400);
});

test('a DELETE does not wait with respond-async', async () => {
  const room = await api.room();
  const startedAt = performance.now();
  const response = await api.call('DELETE', `/v1/rooms/${room}`, { headers: { prefer: 'respond-async' } });
  expect([response.status, response.headers['preference-applied']]).toEqual([202, 'respond-async']);
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});

test('returns STUN servers only if no TURN secret is configured', async () => {
  const { body } = await api.call('POST', '/v1/turn/credentials', { body: {} });
  expect(body.iceServers).toEqual([{ urls: ['stun:stun.example.com:3478'] }]);
});

test('limits unknown keys by the address of the connection without a trusted proxy', async () => {
  const statuses = [];
  for (let n = 0; n < 6; n++) {
    const headers = { 'x-forwarded-for': `192.0.2.${n}` };
    const key = formatApiKey('secret', randomBytes(32));
    statuses.push((await api.call('GET', '/v1/rooms', { key, headers })).status);
  }
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
});

test('a draining process ends its streams and takes no more', async () => {
  const authorization = `Bearer ${api.tenant.key}`;
  const response = await fetch(`${api.url}/v1/stream`, { headers: { authorization } });
  let answers = '';
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  socket.setEncoding('utf8').on('data', (text: string) => (answers += text));
  const ask = (path: string) =>
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n\r\n`);
  ask('/v1/');
  await eventually(() => answers.includes('HTTP/1.1 200'));
  api.app.kill('SIGTERM');
  expect(await response.text()).toContain('event: end\ndata: {"reason":"draining"}\n\n');
  ask('/v1/stream');
  await eventually(() => answers.includes('HTTP/1.1 503'));
  api.app.kill('SIGKILL');
});
