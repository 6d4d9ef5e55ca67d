import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { SCOPES, type Scope } from '@callplane/core';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

/** Every route with the scope that it needs. */
const ROUTES: [string, string, Scope][] = [
  ['POST', '/v1/rooms', 'rooms:create'],
  ['GET', '/v1/rooms', 'rooms:read'],
  ['GET', '/v1/rooms/room_0', 'rooms:read'],
  ['DELETE', '/v1/rooms/room_0', 'rooms:end'],
  ['GET', '/v1/rooms/room_0/runtime-operation', 'rooms:read'],
  ['POST', '/v1/rooms/room_0/tokens', 'tokens:create'],
  ['GET', '/v1/rooms/room_0/participants', 'participants:read'],
  ['GET', '/v1/rooms/room_0/participants/part_0', 'participants:read'],
  ['DELETE', '/v1/rooms/room_0/participants/part_0', 'participants:remove'],
  ['GET', '/v1/rooms/room_0/participants/part_0/runtime-operation', 'participants:read'],
  ['POST', '/v1/turn/credentials', 'tokens:create'],
  ['GET', '/v1/webhooks/signature-contract', 'webhooks:read'],
  ['POST', '/v1/webhooks', 'webhooks:write'],
  ['GET', '/v1/webhooks', 'webhooks:read'],
  ['GET', '/v1/webhooks/whep_0', 'webhooks:read'],
  ['PATCH', '/v1/webhooks/whep_0', 'webhooks:write'],
  ['DELETE', '/v1/webhooks/whep_0', 'webhooks:write'],
  ['POST', '/v1/webhooks/whep_0/rotate-secret', 'webhooks:write'],
  ['POST', '/v1/webhooks/whep_0/test', 'webhooks:write'],
  ['GET', '/v1/webhooks/whep_0/deliveries', 'webhooks:read'],
  ['GET', '/v1/webhooks/whep_0/deliveries/dlv_0', 'webhooks:read'],
  ['GET', '/v1/webhooks/whep_0/deliveries/dlv_0/attempts', 'webhooks:read'],
  ['POST', '/v1/webhooks/whep_0/deliveries/dlv_0/replay', 'webhooks:write'],
  ['POST', '/v1/webhooks/whep_0/recoveries', 'webhooks:write'],
  ['GET', '/v1/webhooks/whep_0/recoveries/rcv_0', 'webhooks:read'],
  ['DELETE', '/v1/webhooks/whep_0/recoveries/rcv_0', 'webhooks:write'],
  ['GET', '/v1/events', 'webhooks:read'],
];
const judged = async (method: string, path: string, sent: Parameters<TestApi['call']>[2] = {}) => {
  const { status, body } = await api.call(method, path, sent);
  return [status, body.error?.code];
};

describe('401', () => {
  test.each(ROUTES)('%s %s without a key', async (method, path) => {
    expect(await judged(method, path, { key: null })).toEqual([401, 'UNAUTHENTICATED']);
  });

  test('comes first, whatever else is wrong, with WWW-Authenticate', async () => {
    for (const [method, path] of [
      ['GET', '/v1/nowhere'],
      ['PATCH', '/v1/rooms'],
      ['GET', '/v1/rooms/%FF'],
      ['GET', '/v1'],
      ['GET', '/v1/'],
    ] as const) {
      const response = await api.call(method, path, { key: null });
      expect([response.status, response.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    }
    expect(await judged('POST', '/v1/rooms', { key: null, raw: 'x'.repeat(70_000) })).toEqual([401, 'UNAUTHENTICATED']);
  });

  test('for keys that are malformed, unknown, mistyped, revoked or expired, and for other schemes', async () => {
    const { key, environmentId } = api.tenant;
    const revoked = await api.newKey(environmentId, { revokedAt: new Date() });
    const expired = await api.newKey(environmentId, { expiresAt: new Date(Date.now() - 1) });
    const unknown = 'rtc_sk_' + 'A'.repeat(49);
    for (const wrong of ['x', unknown, `${key}x`, key.slice(0, -1), key.toUpperCase(), revoked, expired]) {
      expect(await judged('GET', '/v1/rooms', { key: wrong })).toEqual([401, 'UNAUTHENTICATED']);
    }
    for (const authorization of [key, `Basic ${key}`, `Bearer`, `Bearer ${key} x`, `Bearer\t${key}`]) {
      expect(await judged('GET', '/v1/rooms', { key: null, headers: { authorization } })).toEqual([
        401,
        'UNAUTHENTICATED',
      ]);
    }
    for (const authorization of [`bearer ${key}`, `BEARER   ${key}`]) {
      expect((await api.call('GET', '/v1/rooms', { key: null, headers: { authorization } })).status).toBe(200);
    }
    const soon = await api.newKey(environmentId, { expiresAt: new Date(Date.now() + 60_000) });
    expect((await api.call('GET', '/v1/rooms', { key: soon })).status).toBe(200);
  });
});

describe('404 and 405 for the route', () => {
  test('before scope, media type and size', async () => {
    const key = await api.newKey(api.tenant.environmentId, { scopes: [] });
    expect(await judged('GET', '/v1/nowhere', { key })).toEqual([404, 'ROUTE_NOT_FOUND']);
    expect(await judged('GET', '/v1/Rooms', { key })).toEqual([404, 'ROUTE_NOT_FOUND']);
    expect(
      await judged('POST', '/v1/rooms/room_0', { key, raw: 'x', headers: { 'content-type': 'text/plain' } }),
    ).toEqual([405, 'METHOD_NOT_ALLOWED']);
  });

  test.each([
    ['PUT', '/v1/rooms', 'POST, GET, HEAD'],
    ['PATCH', '/v1/rooms/room_0', 'GET, HEAD, DELETE'],
    ['OPTIONS', '/v1/rooms', 'POST, GET, HEAD'],
    ['DELETE', '/v1/rooms/room_0/tokens', 'POST'],
    ['POST', '/v1/', 'GET, HEAD'],
    ['GET', '/v1/turn/credentials', 'POST'],
    ['DELETE', '/v1/webhooks/signature-contract', 'GET, HEAD'],
    ['PUT', '/v1/webhooks/whep_0', 'GET, HEAD, PATCH, DELETE'],
    ['POST', '/v1/events', 'GET, HEAD'],
  ])('%s %s is 405 with Allow: %s', async (method, path, allow) => {
    const response = await api.call(method, path);
    expect([response.status, response.headers['allow']]).toEqual([405, allow]);
  });

  test('outside /v1 without a key', async () => {
    for (const path of ['/', '/nowhere', '/v2/rooms', '/V1/rooms', '/openapi.json/x']) {
      expect(await judged('GET', path, { key: null })).toEqual([404, 'ROUTE_NOT_FOUND']);
    }
    expect(await judged('POST', '/livez', { key: null })).toEqual([405, 'METHOD_NOT_ALLOWED']);
  });
});

describe('403', () => {
  test.each(ROUTES)('%s %s needs exactly its scope', async (method, path, scope) => {
    const { environmentId } = api.tenant;
    const without = await api.newKey(environmentId, { scopes: SCOPES.filter((other) => other !== scope) });
    expect(await judged(method, path, { key: without, raw: '{', headers: { 'content-type': 'text/plain' } })).toEqual([
      403,
      'INSUFFICIENT_SCOPE',
    ]);
    const only = await api.newKey(environmentId, { scopes: [scope] });
    expect((await api.call(method, path, { key: only, body: {} })).status).not.toBe(403);
    const publishable = await api.newKey(environmentId, { type: 'publishable', scopes: [...SCOPES] });
    expect(await judged(method, path, { key: publishable })).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });

  test('before the form of a path id', async () => {
    const key = await api.newKey(api.tenant.environmentId, { scopes: [] });
    for (const id of ['a.b', '%FF', '%'])
      expect(await judged('GET', `/v1/rooms/${id}`, { key })).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });
});

describe('415, 413, 400, 404', () => {
  test('in that order', async () => {
    const large = 'x'.repeat(70_000);
    expect(
      await judged('POST', '/v1/rooms/a.b/tokens', { raw: large, headers: { 'content-type': 'text/plain' } }),
    ).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect(
      await judged('POST', '/v1/rooms/a.b/tokens', { raw: large, headers: { 'content-type': 'application/json' } }),
    ).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(
      await judged('POST', '/v1/rooms/a.b/tokens', {
        body: { participantName: 'A', metadata: { x: 'x'.repeat(20_000) } },
      }),
    ).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    const both = await api.call('POST', '/v1/rooms/a.b/tokens', { body: { participantName: 1 } });
    expect(both.body.error.details.map((d: { path: string }) => d.path)).toEqual([
      'path.roomId',
      'body.participantName',
    ]);
    expect(await judged('POST', '/v1/rooms/room_0/tokens', { body: { participantName: 1 } })).toEqual([
      400,
      'VALIDATION_FAILED',
    ]);
    expect(await judged('POST', '/v1/rooms/room_0/tokens', { body: { participantName: 'A' } })).toEqual([
      404,
      'ROOM_NOT_FOUND',
    ]);
  });
});

describe('GET /v1/', () => {
  test('takes both types of key, any query, and nothing else answers than 200 and 401', async () => {
    const { projectId, environmentId, keyId } = api.tenant;
    for (const path of ['/v1/', '/v1', '/v1/?limit=x&projectId=y']) {
      const { status, body } = await api.call('GET', path);
      expect(status).toBe(200);
      expect(body).toEqual({
        apiVersion: 'v1',
        projectId,
        environmentId,
        keyId,
        keyType: 'secret',
        scopes: [...SCOPES],
      });
    }
    const publishable = await api.newKey(environmentId, { type: 'publishable' });
    expect((await api.call('GET', '/v1/', { key: publishable })).body).toMatchObject({
      keyType: 'publishable',
      scopes: [],
    });
  });
});

describe('x-request-id', () => {
  test('a well-formed one is kept, another is replaced, and errors carry the same', async () => {
    expect(
      (await api.call('GET', '/v1/', { headers: { 'x-request-id': 'trace-17.A_b' } })).headers['x-request-id'],
    ).toBe('trace-17.A_b');
    for (const incoming of ['', 'a b', 'x'.repeat(129), '<script>']) {
      const response = await api.call('GET', '/v1/rooms/room_0', { headers: { 'x-request-id': incoming } });
      expect(response.headers['x-request-id']).toMatch(/^req_[0-9a-z]{26}$/);
      expect(response.body.error.requestId).toBe(response.headers['x-request-id']);
    }
  });
});

describe('transport', () => {
  test('security headers are there, the framework is not named, and private answers are not stored', async () => {
    const { headers } = await api.call('GET', '/v1/');
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'strict-transport-security': expect.any(String),
    });
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(headers).not.toHaveProperty('etag');
  });

  test.each([
    ['GARBAGE\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
  ])('what is no HTTP gets the error shape too (%#)', async (raw, status) => {
    const { port } = new URL(api.url);
    const answer = await new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(raw));
      socket.on('data', (chunk) => (text += chunk.toString()));
      socket.on('close', () => resolve(text));
      socket.on('error', reject);
    });
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    const requestId = /x-request-id: (\S+)/.exec(head)![1];
    expect(JSON.parse(body)).toEqual({ error: { code: 'VALIDATION_FAILED', message: expect.any(String), requestId } });
  });

  test.each(['/livez', '/readyz'])(
    'a health check of %s that is answered with 200 is told at debug alone',
    async (path) => {
      const requestId = `health-${path.slice(1)}`;
      await fetch(`${api.url}${path}`, { headers: { 'x-request-id': requestId } });
      const line = await eventually(() =>
        api
          .log()
          .split('\n')
          .find((text) => text.includes(requestId)),
      );
      expect(JSON.parse(line)).toMatchObject({ level: 'debug', message: 'request', route: path, status: 200 });
    },
  );

  test('one wide line per request, without the key', async () => {
    const requestId = 'log-line-test';
    await api.call('GET', '/v1/rooms/room_0?secret=1', { headers: { 'x-request-id': requestId } });
    const line = await eventually(() =>
      api
        .log()
        .split('\n')
        .find((text) => text.includes(requestId)),
    );
    expect(JSON.parse(line)).toMatchObject({
      level: 'info',
      message: 'request',
      method: 'GET',
      route: '/v1/rooms/{roomId}',
      status: 404,
      errorCode: 'ROOM_NOT_FOUND',
      keyId: api.tenant.keyId,
      environmentId: api.tenant.environmentId,
      durationMs: expect.any(Number),
    });
    expect(api.log()).not.toContain(api.tenant.key.slice(7));
  });
});
