import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { formatApiKey, formatLoginCode, SCOPES } from '@callplane/core';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { apiRoutes } from '../routes.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

/** Every route of the table, so that a new one is checked by itself. None of the ids exists. */
const ROUTES = apiRoutes({} as never).map(({ method, path, scope, query, body }) => {
  const [verb, target] = [method.toUpperCase(), path.replace(/\{\w+\}/g, 'id_0')];
  return { name: `${verb} ${path}`, method: verb, path: target, scope, query, body };
});
const errorOf = async (method: string, path: string, sent: Parameters<TestApi['call']>[2] = {}) => {
  const { status, body } = await api.call(method, path, sent);
  return [status, body.error?.code];
};
const JSON_TYPE = { 'content-type': 'application/json' };
const TEXT_TYPE = { 'content-type': 'text/plain' };
const LARGE = 'x'.repeat(70_000);

describe('authentication', () => {
  test.each([...ROUTES, { name: 'GET /v1/', method: 'GET', path: '/v1/' }])(
    'answers 401 for $name without a key',
    async ({ method, path }) => {
      const sent = { key: null, raw: LARGE, headers: TEXT_TYPE };
      expect(await errorOf(method, `${path}?statu=ended`, sent)).toEqual([401, 'UNAUTHENTICATED']);
    },
  );

  test('is checked before everything else, and a failure has WWW-Authenticate', async () => {
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
  });

  test('tells a missing, a malformed and an unknown key apart in the message', async () => {
    const messageOf = async (headers: Record<string, string>) =>
      (await api.call('GET', '/v1/rooms', { key: null, headers })).body.error.message;
    const { key } = api.tenant;
    const unknown = formatApiKey('secret', randomBytes(32));
    expect(await messageOf({})).toContain('The request has no API key');
    for (const [authorization, problem] of [
      [key, 'The Authorization header has no API key. Send "Authorization: Bearer <API_KEY>".'],
      [`Basic ${key}`, 'The Authorization header has no API key'],
      ['Bearer x', 'it begins neither with rtc_sk_ nor with rtc_pk_'],
      [`Bearer ${key.slice(0, -1)}`, 'it has 48 characters after rtc_sk_ instead of 49'],
      [
        `Bearer ${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`,
        'its checksum does not match: a character is wrong or missing',
      ],
      [`Bearer ${formatLoginCode(randomBytes(32))}`, 'it is the code of a login link'],
    ] as const) {
      const message = await messageOf({ authorization });
      expect(message).toContain(problem);
      expect(message).not.toContain(key.slice(8, 20));
    }
    expect(await messageOf({ authorization: `Bearer ${unknown}` })).toContain('No such API key is valid here');
  });

  test('rejects malformed, unknown, mistyped, revoked and expired keys, and other schemes', async () => {
    const { key, environmentId } = api.tenant;
    const revoked = await api.newKey(environmentId, { revokedAt: new Date() });
    const expired = await api.newKey(environmentId, { expiresAt: new Date(Date.now() - 1) });
    const unknown = 'rtc_sk_' + 'A'.repeat(49);
    for (const wrong of ['x', unknown, `${key}x`, key.slice(0, -1), key.toUpperCase(), revoked, expired]) {
      expect(await errorOf('GET', '/v1/rooms', { key: wrong })).toEqual([401, 'UNAUTHENTICATED']);
    }
    for (const authorization of [key, `Basic ${key}`, `Bearer`, `Bearer ${key} x`, `Bearer\t${key}`]) {
      expect(await errorOf('GET', '/v1/rooms', { key: null, headers: { authorization } })).toEqual([
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

describe('route matching', () => {
  test('is checked before scope, media type and size', async () => {
    const key = await api.newKey(api.tenant.environmentId, { scopes: [] });
    expect(await errorOf('GET', '/v1/nowhere', { key })).toEqual([404, 'ROUTE_NOT_FOUND']);
    expect(await errorOf('GET', '/v1/Rooms', { key })).toEqual([404, 'ROUTE_NOT_FOUND']);
    expect(
      await errorOf('POST', '/v1/rooms/room_0', { key, raw: 'x', headers: { 'content-type': 'text/plain' } }),
    ).toEqual([405, 'METHOD_NOT_ALLOWED']);
  });

  const paths = new Set(ROUTES.map(({ path }) => path));
  const allowed = [...paths].map((path): [string, string] => {
    const methods = ROUTES.filter((route) => route.path === path).map(({ method }) => method);
    return [path, methods.map((method) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')];
  });
  test.each([...allowed, ['/v1/', 'GET, HEAD']])('answers 405 at %s to all methods except %s', async (path, allow) => {
    const key = await api.newKey(api.tenant.environmentId, { scopes: [] });
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      if (allow.split(', ').includes(method)) continue;
      // Node's client sends the body of a HEAD without its length.
      const body = method === 'HEAD' ? {} : { raw: LARGE, headers: TEXT_TYPE };
      const response = await api.call(method, path, { key, ...body });
      expect([method, response.status, response.headers['allow']]).toEqual([method, 405, allow]);
    }
  });

  test('needs no key outside /v1', async () => {
    for (const path of ['/', '/nowhere', '/v2/rooms', '/V1/rooms', '/openapi.json/x']) {
      expect(await errorOf('GET', path, { key: null })).toEqual([404, 'ROUTE_NOT_FOUND']);
    }
    expect(await errorOf('POST', '/livez', { key: null })).toEqual([405, 'METHOD_NOT_ALLOWED']);
  });
});

describe('authorisation', () => {
  const scoped = ROUTES.flatMap(({ scope, ...route }) => (scope === null ? [] : [{ ...route, scope }]));
  test.each(scoped)('of $name requires exactly the scope $scope', async ({ method, path, scope }) => {
    const { environmentId } = api.tenant;
    const without = await api.newKey(environmentId, { scopes: SCOPES.filter((other) => other !== scope) });
    const refused = await api.call(method, path, { key: without, raw: '{', headers: TEXT_TYPE });
    expect([refused.status, refused.body.error]).toEqual([
      403,
      expect.objectContaining({ code: 'INSUFFICIENT_SCOPE', message: `The API key lacks the scope ${scope}.` }),
    ]);
    const only = await api.newKey(environmentId, { scopes: [scope] });
    expect((await api.call(method, path, { key: only, body: {} })).status).not.toBe(403);
    const publishable = await api.newKey(environmentId, { type: 'publishable', scopes: [...SCOPES] });
    const { status, body } = await api.call(method, path, { key: publishable });
    expect([status, body.error]).toEqual([
      403,
      expect.objectContaining({
        code: 'INSUFFICIENT_SCOPE',
        message: `The API key is publishable and grants no scope. Use a secret key (rtc_sk_…) with the scope ${scope}.`,
      }),
    ]);
  });

  test.each([
    ['/v1/overview', ['tokens:create'], 'rooms:read or webhooks:read'],
    ['/v1/stream', ['tokens:create'], 'rooms:read or participants:read'],
    ['/v1/stream?kinds=rooms,participants', ['rooms:read'], 'participants:read'],
  ] as const)('of GET %s with %j names the missing scope %s', async (path, scopes, missing) => {
    const key = await api.newKey(api.tenant.environmentId, { scopes: [...scopes] });
    const { status, body } = await api.call('GET', path, { key });
    expect([status, body.error?.message]).toEqual([403, `The API key lacks the scope ${missing}.`]);
  });

  test('is checked before the format of a path id', async () => {
    const key = await api.newKey(api.tenant.environmentId, { scopes: [] });
    for (const id of ['a.b', '%FF', '%'])
      expect(await errorOf('GET', `/v1/rooms/${id}`, { key })).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });
});

describe('a body', () => {
  test.each(ROUTES)(
    'of $name gets 415 before 413, 413 before 400, and 400 before 404',
    async ({ method, path, body }) => {
      const wrong = path.replace('id_0', 'a.b');
      const raw = (text: string, headers: Record<string, string>) => errorOf(method, wrong, { raw: text, headers });
      expect(await raw(LARGE, TEXT_TYPE)).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
      expect(await raw(LARGE, JSON_TYPE)).toEqual([413, 'PAYLOAD_TOO_LARGE']);
      expect(await raw(JSON.stringify({ metadata: LARGE.slice(0, 20_000) }), JSON_TYPE)).toEqual([
        413,
        'PAYLOAD_TOO_LARGE',
      ]);
      expect(await raw('{', JSON_TYPE)).toEqual([400, 'MALFORMED_JSON']);
      expect(await raw('[]', JSON_TYPE)).toEqual([400, 'VALIDATION_FAILED']);
      const all = await api.call(method, `${wrong}?statu=ended&__proto__=1`, { body: { zzz: 1 } });
      expect([all.status, all.body.error.code]).toEqual([400, 'VALIDATION_FAILED']);
      const details = all.body.error.details as { path: string; message: string }[];
      expect(details).toEqual(
        expect.arrayContaining([
          { path: 'query.statu', message: expect.stringContaining('is not a known parameter') },
          { path: 'query.__proto__', message: 'is not a known parameter' },
          { path: 'body.zzz', message: expect.stringContaining('is not a known field') },
        ]),
      );
      expect(details.some((detail) => detail.path.startsWith('path.'))).toBe(path.includes('id_0'));
      if (body === undefined) expect(details.filter((detail) => detail.path.startsWith('body'))).toHaveLength(1);
    },
  );

  test('of a resource that does not exist gets 404 once it is valid', async () => {
    expect(await errorOf('POST', '/v1/rooms/room_0/tokens', { body: { participantName: 1 } })).toEqual([
      400,
      'VALIDATION_FAILED',
    ]);
    expect(await errorOf('POST', '/v1/rooms/room_0/tokens', { body: { participantName: 'A' } })).toEqual([
      404,
      'ROOM_NOT_FOUND',
    ]);
  });

  test('may be an empty object where none is expected', async () => {
    for (const raw of ['{}', '']) {
      expect((await api.call('GET', '/v1/rooms', { raw, headers: JSON_TYPE })).status).toBe(200);
    }
  });

  test('is ignored by GET /v1/', async () => {
    for (const [raw, type] of [
      ['x', 'text/plain'],
      ['{', 'application/json'],
      ['x'.repeat(70_000), 'application/json'],
    ] as const) {
      expect((await api.call('GET', '/v1/', { raw, headers: { 'content-type': type } })).status).toBe(200);
    }
  });
});

describe('GET /v1/', () => {
  test('accepts both key types and any query', async () => {
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
  test('keeps a well-formed id, replaces any other, and appears in errors', async () => {
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

describe('the transport', () => {
  test('sets security headers, hides the framework, and forbids caching of private answers', async () => {
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
    ['GARBAGE\r\n\r\n', 400, 'VALIDATION_FAILED'],
    ['GET / HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n', 400, 'VALIDATION_FAILED'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ])('answers malformed HTTP with the common error body (case %#)', async (raw, status, code) => {
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
    expect(JSON.parse(body)).toEqual({ error: { code, message: expect.any(String), requestId } });
  });

  test.each(['/livez', '/readyz'])('logs a health check of %s with status 200 at level debug', async (path) => {
    const requestId = `health-${path.slice(1)}`;
    await fetch(`${api.url}${path}`, { headers: { 'x-request-id': requestId } });
    const line = await eventually(() =>
      api
        .log()
        .split('\n')
        .find((text) => text.includes(requestId)),
    );
    expect(JSON.parse(line)).toMatchObject({ level: 'debug', message: 'request', route: path, status: 200 });
  });

  test('logs one wide line per request, without the key', async () => {
    const requestId = 'log-line-test';
    const answer = await api.call('GET', '/v1/rooms/room_0', { headers: { 'x-request-id': requestId } });
    const log = await api.logAfter(answer);
    expect(JSON.parse(log.split('\n').find((text) => text.includes(requestId))!)).toMatchObject({
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
    expect(log).not.toContain(api.tenant.key.slice(7));
  });
});
