import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { formatApiKey, formatLoginCode, SCOPES, type Scope } from '@callplane/core';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { apiRoutes } from '../routes.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

/** Every route that requires a scope. */
const ROUTES: [string, string, Scope][] = [
  ['POST', '/v1/rooms', 'rooms:create'],
  ['GET', '/v1/rooms', 'rooms:read'],
  ['GET', '/v1/rooms/room_0', 'rooms:read'],
  ['PATCH', '/v1/rooms/room_0', 'rooms:update'],
  ['DELETE', '/v1/rooms/room_0', 'rooms:end'],
  ['GET', '/v1/rooms/room_0/runtime-operation', 'rooms:read'],
  ['POST', '/v1/rooms/room_0/messages', 'participants:update'],
  ['POST', '/v1/rooms/room_0/tokens', 'tokens:create'],
  ['GET', '/v1/rooms/room_0/tokens', 'participants:read'],
  ['GET', '/v1/rooms/room_0/sessions', 'participants:read'],
  ['GET', '/v1/rooms/room_0/participants', 'participants:read'],
  ['GET', '/v1/rooms/room_0/participants/part_0', 'participants:read'],
  ['PATCH', '/v1/rooms/room_0/participants/part_0', 'participants:update'],
  ['DELETE', '/v1/rooms/room_0/participants/part_0', 'participants:remove'],
  ['GET', '/v1/rooms/room_0/participants/part_0/sessions', 'participants:read'],
  ['POST', '/v1/rooms/room_0/participants/part_0/tracks/mic/mute', 'participants:update'],
  ['GET', '/v1/rooms/room_0/participants/part_0/runtime-operation', 'participants:read'],
  ['POST', '/v1/rooms/room_0/recordings', 'recordings:write'],
  ['GET', '/v1/rooms/room_0/recordings', 'recordings:read'],
  ['GET', '/v1/recordings', 'recordings:read'],
  ['GET', '/v1/recordings/rec_0', 'recordings:read'],
  ['DELETE', '/v1/recordings/rec_0', 'recordings:write'],
  ['POST', '/v1/recordings/rec_0/stop', 'recordings:write'],
  ['POST', '/v1/recordings/rec_0/files/recf_0/url', 'recordings:read'],
  ['GET', '/v1/usage', 'rooms:read'],
  ['POST', '/v1/turn/credentials', 'tokens:create'],
  ['GET', '/v1/webhooks/signature-contract', 'webhooks:read'],
  ['POST', '/v1/webhooks', 'webhooks:write'],
  ['GET', '/v1/webhooks', 'webhooks:read'],
  ['GET', '/v1/webhooks/whep_0', 'webhooks:read'],
  ['PATCH', '/v1/webhooks/whep_0', 'webhooks:write'],
  ['DELETE', '/v1/webhooks/whep_0', 'webhooks:write'],
  ['POST', '/v1/webhooks/whep_0/rotate-secret', 'webhooks:write'],
  ['POST', '/v1/webhooks/whep_0/rotate-secret/activate', 'webhooks:write'],
  ['DELETE', '/v1/webhooks/whep_0/rotate-secret', 'webhooks:write'],
  ['POST', '/v1/webhooks/whep_0/test', 'webhooks:write'],
  ['GET', '/v1/webhooks/whep_0/deliveries', 'webhooks:read'],
  ['GET', '/v1/webhooks/whep_0/deliveries/dlv_0', 'webhooks:read'],
  ['GET', '/v1/webhooks/whep_0/deliveries/dlv_0/attempts', 'webhooks:read'],
  ['POST', '/v1/webhooks/whep_0/deliveries/dlv_0/replay', 'webhooks:write'],
  ['POST', '/v1/webhooks/whep_0/deliveries/dlv_0/retry', 'webhooks:write'],
  ['POST', '/v1/webhooks/whep_0/recoveries', 'webhooks:write'],
  ['GET', '/v1/webhooks/whep_0/recoveries', 'webhooks:read'],
  ['GET', '/v1/webhooks/whep_0/recoveries/rcv_0', 'webhooks:read'],
  ['DELETE', '/v1/webhooks/whep_0/recoveries/rcv_0', 'webhooks:write'],
  ['GET', '/v1/deliveries', 'webhooks:read'],
  ['GET', '/v1/events', 'webhooks:read'],
  ['GET', '/v1/events/evt_0', 'webhooks:read'],
];
/** Every route that any valid key may call. */
const UNSCOPED: [string, string][] = [
  ['GET', '/v1/'],
  ['POST', '/v1/console/sessions'],
  ['DELETE', '/v1/console/sessions/current'],
  ['GET', '/v1/overview'],
  ['GET', '/v1/stream'],
];
const errorOf = async (method: string, path: string, sent: Parameters<TestApi['call']>[2] = {}) => {
  const { status, body } = await api.call(method, path, sent);
  return [status, body.error?.code];
};

test('these tests know every route', () => {
  const known = [...ROUTES, ...UNSCOPED].map(([method, path]) => `${method} ${path}`);
  const ids: Record<string, string> = { roomId: 'room_0', participantId: 'part_0', trackId: 'mic', eventId: 'evt_0' };
  Object.assign(ids, {
    endpointId: 'whep_0',
    deliveryId: 'dlv_0',
    recoveryId: 'rcv_0',
    recordingId: 'rec_0',
    fileId: 'recf_0',
  });
  const all = apiRoutes({} as never).map(
    ({ method, path }) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name]!)}`,
  );
  expect(known.sort()).toEqual(all.sort());
});

describe('authentication', () => {
  const routes = [...ROUTES, ...UNSCOPED].map(([method, path]) => [method, path] as const);
  test.each(routes)('answers 401 for %s %s without a key', async (method, path) => {
    expect(await errorOf(method, path, { key: null })).toEqual([401, 'UNAUTHENTICATED']);
  });

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
    expect(await errorOf('POST', '/v1/rooms', { key: null, raw: 'x'.repeat(70_000) })).toEqual([
      401,
      'UNAUTHENTICATED',
    ]);
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

  test.each([
    ['PUT', '/v1/rooms', 'POST, GET, HEAD'],
    ['PUT', '/v1/rooms/room_0', 'GET, HEAD, PATCH, DELETE'],
    ['OPTIONS', '/v1/rooms', 'POST, GET, HEAD'],
    ['DELETE', '/v1/rooms/room_0/tokens', 'POST, GET, HEAD'],
    ['POST', '/v1/', 'GET, HEAD'],
    ['GET', '/v1/turn/credentials', 'POST'],
    ['DELETE', '/v1/webhooks/signature-contract', 'GET, HEAD'],
    ['PUT', '/v1/webhooks/whep_0', 'GET, HEAD, PATCH, DELETE'],
    ['POST', '/v1/events', 'GET, HEAD'],
  ])('answers 405 for %s %s with Allow: %s', async (method, path, allow) => {
    const response = await api.call(method, path);
    expect([response.status, response.headers['allow']]).toEqual([405, allow]);
  });

  test('needs no key outside /v1', async () => {
    for (const path of ['/', '/nowhere', '/v2/rooms', '/V1/rooms', '/openapi.json/x']) {
      expect(await errorOf('GET', path, { key: null })).toEqual([404, 'ROUTE_NOT_FOUND']);
    }
    expect(await errorOf('POST', '/livez', { key: null })).toEqual([405, 'METHOD_NOT_ALLOWED']);
  });
});

describe('authorisation', () => {
  test.each(ROUTES)('of %s %s requires exactly the scope %s', async (method, path, scope) => {
    const { environmentId } = api.tenant;
    const without = await api.newKey(environmentId, { scopes: SCOPES.filter((other) => other !== scope) });
    const refused = await api.call(method, path, { key: without, raw: '{', headers: { 'content-type': 'text/plain' } });
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

describe('validation', () => {
  test('answers 415 before 413, 413 before 400, and 400 before 404', async () => {
    const large = 'x'.repeat(70_000);
    expect(
      await errorOf('POST', '/v1/rooms/a.b/tokens', { raw: large, headers: { 'content-type': 'text/plain' } }),
    ).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect(
      await errorOf('POST', '/v1/rooms/a.b/tokens', { raw: large, headers: { 'content-type': 'application/json' } }),
    ).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(
      await errorOf('POST', '/v1/rooms/a.b/tokens', {
        body: { participantName: 'A', metadata: { x: 'x'.repeat(20_000) } },
      }),
    ).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    const both = await api.call('POST', '/v1/rooms/a.b/tokens', { body: { participantName: 1 } });
    expect(both.body.error.details.map((d: { path: string }) => d.path)).toEqual([
      'path.roomId',
      'body.participantName',
    ]);
    expect(await errorOf('POST', '/v1/rooms/room_0/tokens', { body: { participantName: 1 } })).toEqual([
      400,
      'VALIDATION_FAILED',
    ]);
    expect(await errorOf('POST', '/v1/rooms/room_0/tokens', { body: { participantName: 'A' } })).toEqual([
      404,
      'ROOM_NOT_FOUND',
    ]);
  });
});

describe('a body for a route without a body schema', () => {
  const json = { 'content-type': 'application/json' };
  test.each(
    ROUTES.filter(
      ([method, path]) =>
        method !== 'PATCH' &&
        !/^POST .*(rooms|messages|tokens|recordings|credentials|webhooks|replay|recoveries)$/.test(`${method} ${path}`),
    ),
  )('is rejected by %s %s', async (method, path) => {
    expect(await errorOf(method, path, { raw: 'x', headers: { 'content-type': 'text/plain' } })).toEqual([
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ]);
    const response = await api.call(method, path, { raw: '{"x":1}', headers: json });
    // The query of some routes has required parameters.
    const details = response.body.error?.details as { path: string }[] | undefined;
    const ofBody = details?.filter((detail) => !detail.path.startsWith('query.'));
    expect([response.status, ofBody]).toEqual([400, [{ path: 'body.x', message: 'is not a known field' }]]);
    expect(await errorOf(method, path, { raw: '{', headers: json })).toEqual([400, 'MALFORMED_JSON']);
    expect(await errorOf(method, path, { raw: '[]', headers: json })).toEqual([400, 'VALIDATION_FAILED']);
    expect(await errorOf(method, path, { raw: ' '.repeat(70_000), headers: json })).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });

  test('may be an empty object', async () => {
    for (const raw of ['{}', '']) {
      expect((await api.call('GET', '/v1/rooms', { raw, headers: json })).status).toBe(200);
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

describe('an unknown query parameter', () => {
  const routes = [...ROUTES, ...UNSCOPED].filter(([, path]) => path !== '/v1/');
  test.each(routes.map(([method, path]) => [method, path] as const))('is rejected by %s %s', async (method, path) => {
    const { status, body } = await api.call(method, `${path}?statu=ended&__proto__=1`);
    expect([status, body.error?.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.error.details).toEqual(
      expect.arrayContaining([
        { path: 'query.statu', message: expect.stringContaining('is not a known parameter') },
        { path: 'query.__proto__', message: 'is not a known parameter' },
      ]),
    );
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
