import { randomBytes } from 'node:crypto';
import { formatConsoleSecret, formatLoginCode, hashApiKey, newId, SCOPES } from '@callplane/core';
import { insertConsoleSession, revokeApiKey } from '@callplane/db';
import { publishNotice } from '@callplane/queue';
import { eventually } from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { startTestApi, type TestApi, type TestTenant } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

const SESSIONS = '/v1/console/sessions';
const READ_SCOPES = ['rooms:read', 'participants:read', 'recordings:read', 'webhooks:read'];
/** Headers of the console's page for a request that changes something. */
const own = (cookie: string) => ({ cookie, origin: api.url, 'x-callplane-csrf': '1' });

async function signIn(key = api.tenant.key, body: object = {}): Promise<string> {
  const { status, headers } = await api.call('POST', SESSIONS, { key, body });
  expect(status).toBe(201);
  return cookieOf(headers);
}
function cookieOf(headers: Record<string, unknown>): string {
  return (headers['set-cookie'] as string[])[0]!.split(';')[0]!;
}
const context = (cookie: string) => api.call('GET', '/v1/', { key: null, headers: { cookie } });
const hashOf = (cookie: string) => new Uint8Array(hashApiKey(cookie.split('=')[1]!));

async function link(tenant: TestTenant, readOnly = false): Promise<string> {
  const code = formatLoginCode(randomBytes(32));
  const session = {
    id: newId('consoleSession'),
    environmentId: tenant.environmentId,
    apiKeyId: null,
    scopes: readOnly ? (['rooms:read'] as const) : SCOPES,
    readOnly,
    lifetimeSeconds: 3600,
  };
  expect(await insertConsoleSession(api.database, session, { codeHash: hashApiKey(code) }, new Date())).toBe('opened');
  return code;
}

describe('a sign-in with a secret key', () => {
  test('sets a strict cookie that every route accepts, and whose secret is stored only as a hash', async () => {
    const answer = await api.call('POST', SESSIONS, { body: {} });
    const [setCookie] = answer.headers['set-cookie'] as unknown as string[];
    expect(setCookie).toMatch(
      /^callplane_session=rtc_cs_[0-9A-Za-z]{49}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/,
    );
    const cookie = cookieOf(answer.headers);
    const { status, body } = await context(cookie);
    expect(status).toBe(200);
    expect(body).toEqual(answer.body);
    expect(body).toMatchObject({
      environmentId: api.tenant.environmentId,
      keyId: api.tenant.keyId,
      scopes: SCOPES,
      session: { source: 'api_key', readOnly: false, projectName: 'Test', environmentName: 'test', idleSeconds: 3600 },
    });
    const lifetimeMs = Date.parse(body.session.expiresAt) - Date.parse(body.session.createdAt);
    expect(lifetimeMs).toBe(8 * 3_600_000);
    const created = await api.call('POST', '/v1/rooms', { key: null, headers: own(cookie), body: { name: 'Mine' } });
    expect(created.status).toBe(201);
    const row = await api.database.prisma.consoleSession.findUniqueOrThrow({ where: { id: body.session.id } });
    expect(Buffer.from(row.secretHash!)).toEqual(Buffer.from(hashOf(cookie)));
    const log = await api.logAfter(answer);
    expect(log).toContain('console session opened');
    expect(log).not.toContain(cookie.split('=')[1]);
  });

  test('gives over https a cookie for this host alone, and then accepts no other', async () => {
    const headers = { 'x-forwarded-proto': 'https' };
    const answer = await api.call('POST', SESSIONS, { headers, body: {} });
    const [setCookie] = answer.headers['set-cookie'] as unknown as string[];
    expect(setCookie).toMatch(/^__Host-callplane_session=.*; Secure$/);
    const cookie = cookieOf(answer.headers);
    const over = (sent: string) => api.call('GET', '/v1/', { key: null, headers: { ...headers, cookie: sent } });
    expect((await over(cookie)).status).toBe(200);
    expect((await over(cookie.replace('__Host-', ''))).status).toBe(401);
  });

  test('is refused to publishable keys, to sessions and to unknown keys', async () => {
    const publishable = await api.newKey(api.tenant.environmentId, { type: 'publishable' });
    const refused = await api.call('POST', SESSIONS, { key: publishable, body: {} });
    expect([refused.status, refused.body.error.message]).toEqual([403, expect.stringContaining('key is publishable')]);
    const cookie = await signIn();
    const again = await api.call('POST', SESSIONS, { key: null, headers: own(cookie), body: {} });
    expect(again.status).toBe(401);
    const revoked = await api.newKey(api.tenant.environmentId, { revokedAt: new Date() });
    expect((await api.call('POST', SESSIONS, { key: revoked, body: {} })).status).toBe(401);
    // The process still takes this key for valid, because the notice of its revocation was lost.
    const tenant = await api.newTenant();
    await signIn(tenant.key);
    await revokeApiKey(api.database.prisma, tenant.keyId, new Date());
    expect((await api.call('POST', SESSIONS, { key: tenant.key, body: {} })).status).toBe(401);
  });

  test('can restrict the session to reading', async () => {
    const cookie = await signIn(api.tenant.key, { readOnly: true });
    const { body } = await context(cookie);
    expect(body).toMatchObject({ scopes: READ_SCOPES, session: { readOnly: true } });
    const read = await api.call('GET', '/v1/rooms', { key: null, headers: { cookie } });
    expect(read.status).toBe(200);
    const write = await api.call('POST', '/v1/rooms', { key: null, headers: own(cookie), body: { name: 'No' } });
    expect(write.body.error).toMatchObject({
      code: 'INSUFFICIENT_SCOPE',
      message: 'The read-only console session lacks the scope rooms:create.',
    });
  });

  test('is refused while the environment has 100 open sessions, and ended ones do not count', async () => {
    const tenant = await api.newTenant();
    await api.newKey(tenant.environmentId, { revokedAt: new Date() });
    const revoked = await api.database.prisma.apiKey.findFirstOrThrow({
      where: { environmentId: tenant.environmentId, revokedAt: { not: null } },
    });
    await api.database.prisma.consoleSession.createMany({
      data: Array.from({ length: 102 }, (_, n) => ({
        id: newId('consoleSession'),
        environmentId: tenant.environmentId,
        // The last one has ended with its key.
        apiKeyId: n === 101 ? revoked.id : tenant.keyId,
        secretHash: new Uint8Array(randomBytes(32)),
        scopes: [],
        readOnly: true,
        lifetimeSeconds: 60,
        createdAt: new Date(Date.now() - 7_200_000),
        expiresAt: new Date(Date.now() + 60_000),
        // The first two have had no request for too long.
        usedAt: n < 2 ? new Date(Date.now() - 3_700_000) : new Date(),
      })),
    });
    await signIn(tenant.key);
    const { status, body } = await api.call('POST', SESSIONS, { key: tenant.key, body: {} });
    expect([status, body.error.code]).toEqual([409, 'CONSOLE_SESSION_LIMIT_REACHED']);
  });
});

describe('a link', () => {
  test('signs in once, also if two requests race', async () => {
    const code = await link(api.tenant);
    const answers = await Promise.all([1, 2].map(() => api.call('POST', SESSIONS, { key: code, body: {} })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 401]);
    const { body } = answers.find(({ status }) => status === 201)!;
    expect(body).toMatchObject({ keyId: body.session.id, scopes: SCOPES, session: { source: 'link' } });
    expect((await api.call('POST', SESSIONS, { key: code, body: {} })).status).toBe(401);
  });

  test('opens nothing else, and not after its time', async () => {
    const code = await link(api.tenant, true);
    expect((await api.call('GET', '/v1/rooms', { key: code })).status).toBe(401);
    await api.database.sql.$executeRaw`
      UPDATE console_sessions SET created_at = now() - interval '1 hour', expires_at = now()
      WHERE code_hash = ${new Uint8Array(hashApiKey(code))}`;
    expect((await api.call('POST', SESSIONS, { key: code, body: {} })).status).toBe(401);
  });

  test('for reading stays for reading', async () => {
    const cookie = await signIn(await link(api.tenant, true), { readOnly: false });
    expect((await context(cookie)).body).toMatchObject({ scopes: ['rooms:read'], session: { readOnly: true } });
  });
});

describe('a session ends', () => {
  test('with the sign-out, which deletes the cookie and leaves others alone', async () => {
    const [cookie, other] = [await signIn(), await signIn()];
    const out = await api.call('DELETE', `${SESSIONS}/current`, { key: null, headers: own(cookie) });
    expect(out.status).toBe(204);
    expect((out.headers['set-cookie'] as unknown as string[])[0]).toMatch(/^callplane_session=; Path=\/; Max-Age=0/);
    expect((await context(cookie)).status).toBe(401);
    expect((await context(other)).status).toBe(200);
    expect((await api.call('DELETE', `${SESSIONS}/current`)).body.error.code).toBe('CONSOLE_SESSION_NOT_FOUND');
  });

  test('with its key, and with its revocation by an operator', async () => {
    const tenant = await api.newTenant();
    const [cookie, revoked] = [await signIn(tenant.key), await signIn()];
    expect((await context(cookie)).status).toBe(200);
    const { keyHash } = (await revokeApiKey(api.database.prisma, tenant.keyId, new Date()))!;
    await publishNotice(api.redis, 'apiKeyRevoked', Buffer.from(keyHash).toString('hex'));
    await eventually(async () => (await context(cookie)).status === 401);
    const secretHash = hashOf(revoked);
    await api.database.prisma.consoleSession.deleteMany({ where: { secretHash } });
    await publishNotice(api.redis, 'consoleSessionEnded', Buffer.from(secretHash).toString('hex'));
    await eventually(async () => (await context(revoked)).status === 401);
  });

  test('at its expiry, and an hour after its latest request', async () => {
    const [late, idle, used] = [await signIn(), await signIn(), await signIn()];
    const set = (cookie: string, data: { expiresAt?: Date; usedAt?: Date; createdAt?: Date }) =>
      api.database.prisma.consoleSession.update({ where: { secretHash: hashOf(cookie) }, data });
    const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000);
    await set(late, { createdAt: ago(481), expiresAt: ago(1) });
    await set(idle, { usedAt: ago(61) });
    await set(used, { usedAt: ago(59) });
    expect((await context(late)).status).toBe(401);
    expect((await context(idle)).status).toBe(401);
    expect((await context(used)).status).toBe(200);
    await eventually(async () => {
      const row = await api.database.prisma.consoleSession.findUniqueOrThrow({ where: { secretHash: hashOf(used) } });
      return row.usedAt > ago(5);
    });
    const row = await api.database.prisma.consoleSession.findUniqueOrThrow({ where: { secretHash: hashOf(idle) } });
    expect(row.usedAt < ago(60)).toBe(true);
  });
});

describe('a request with a cookie', () => {
  let cookie: string;
  beforeAll(async () => {
    cookie = await signIn();
  });
  const post = (headers: Record<string, string>) =>
    api.call('POST', '/v1/rooms', { key: null, headers: { cookie, ...headers }, body: { name: 'A room' } });

  test('must come from the console if it changes something', async () => {
    const marked = { 'x-callplane-csrf': '1' };
    const refused: Record<string, string>[] = [
      {},
      marked,
      { origin: api.url },
      { ...marked, origin: 'https://evil.example' },
      { ...marked, origin: 'null' },
      { ...marked, origin: api.url.replace(/\d+$/, '1') },
      { ...marked, origin: api.url, 'sec-fetch-site': 'same-site' },
      { ...marked, origin: api.url, 'sec-fetch-site': 'none' },
      { ...marked, origin: api.url, 'x-forwarded-proto': 'https' },
    ];
    for (const headers of refused) {
      const { status, body } = await post(headers);
      expect([headers, [401, 403].includes(status)]).toEqual([headers, true]);
      if (status === 403) expect(body.error.code).toBe('CROSS_SITE_REQUEST');
    }
    expect((await post({ ...marked, origin: api.url, 'sec-fetch-site': 'same-origin' })).status).toBe(201);
  });

  test('must not come from a page of another host, even to read', async () => {
    const get = (headers: Record<string, string>) =>
      api.call('GET', '/v1/rooms', { key: null, headers: { cookie, ...headers } });
    for (const site of ['cross-site', 'same-site']) {
      expect((await get({ 'sec-fetch-site': site })).body.error.code).toBe('CROSS_SITE_REQUEST');
    }
    expect((await get({ origin: 'https://evil.example' })).status).toBe(403);
    for (const site of ['same-origin', 'none']) expect((await get({ 'sec-fetch-site': site })).status).toBe(200);
  });

  test('is unauthenticated with hostile cookies', async () => {
    const [name, secret] = cookie.split('=') as [string, string];
    const unknown = formatConsoleSecret(randomBytes(32));
    const hostile = [
      `${cookie}; ${cookie}`,
      `${name}=${unknown}; ${cookie}`,
      `${name}=${unknown}`,
      `${name}=${secret.slice(0, -1)}${secret.endsWith('x') ? 'y' : 'x'}`,
      `${name}=`,
      `${name}="${secret}"`,
      `${name}=${secret}%00`,
      `x${name}=${secret}`,
      `__Host-${name}=${secret}`,
      `${'a=b; '.repeat(2000)}${cookie}`,
      `${name}=${api.tenant.key}`,
    ];
    for (const each of hostile) expect([each.length, (await context(each)).status]).toEqual([each.length, 401]);
    expect((await context(`a=b;${cookie} ;c=d`)).status).toBe(200);
  });

  test('belongs to its environment, and an API key beside it wins', async () => {
    const tenant = await api.newTenant();
    const roomId = await api.room();
    const other = await signIn(tenant.key);
    const read = await api.call('GET', `/v1/rooms/${roomId}`, { key: null, headers: { cookie: other } });
    expect(read.body.error.code).toBe('ROOM_NOT_FOUND');
    const both = await api.call('GET', `/v1/rooms/${roomId}`, { headers: { cookie: other } });
    expect(both.status).toBe(200);
  });
});
