import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId, open, parseMasterKeys } from '@callplane/core';
import { eventually, TEST_ENCRYPTION_KEYS } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { attempt, delivery, finish, lease, webhook } from './webhooks.testkit.js';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const URL_ = 'https://example.com/hook';
let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
const row = (id: string) => api.database.prisma.webhookEndpoint.findUniqueOrThrow({ where: { id } });
const deliveryRow = (id: string) => api.database.prisma.webhookDelivery.findUniqueOrThrow({ where: { id } });
const codeOf = async (method: string, path: string, body?: object) => {
  const response = await api.call(method, path, body === undefined ? {} : { body });
  return [response.status, response.body.error?.code];
};
/** Whether a wake-up for this endpoint is queued in Redis. */
const isRung = (endpointId: string) => api.redis.exists(`callplane:webhook-delivery-slow:de:${endpointId}.0`);

describe('POST /v1/webhooks', () => {
  test('needs only a URL, and returns the secret, which reads do not return', async () => {
    const created = await api.call('POST', '/v1/webhooks', { body: { url: URL_ } });
    const { status, body } = created;
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^whep_[0-9a-z]{26}$/),
      url: URL_,
      events: ['*'],
      description: null,
      enabled: true,
      disabledReason: null,
      signingKeyVersion: 1,
      nextSigningKeyVersion: null,
      nextActivatesAt: null,
      ordering: 'none',
      maxPerSecond: null,
      maxConcurrent: null,
      standardWebhooks: false,
      retryRejected: false,
      failingSince: null,
      headers: {},
      filter: null,
      createdAt: expect.stringMatching(TIMESTAMP),
      updatedAt: body.createdAt,
      signingSecret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    });
    const { signingSecret, ...shown } = body;
    expect((await api.call('GET', `/v1/webhooks/${body.id}`)).body).toEqual(shown);
    const stored = await api.database.prisma.webhookSecret.findFirstOrThrow({ where: { endpointId: body.id } });
    expect(stored.secretSealed).not.toContain(signingSecret.slice(6, 20));
    expect(open(parseMasterKeys([TEST_ENCRYPTION_KEYS]), stored.secretSealed, `webhook-secret:${body.id}:1`)).toBe(
      signingSecret,
    );
    expect(await api.logAfter(created)).not.toContain(signingSecret.slice(6));
  });

  test('accepts an order, limits, the headers of Standard Webhooks and retries of rejections, and changes them', async () => {
    const sending = {
      ordering: 'room',
      maxPerSecond: 1000,
      maxConcurrent: 100,
      standardWebhooks: true,
      retryRejected: true,
    };
    const { body, path } = await webhook(api, sending);
    expect(body).toMatchObject(sending);
    expect((await api.call('GET', path)).body).toMatchObject(sending);
    const limited = await api.call('PATCH', path, { body: { ordering: 'none', maxConcurrent: null } });
    expect(limited.body).toMatchObject({ ...sending, ordering: 'none', maxConcurrent: null });
    const change = { maxPerSecond: null, standardWebhooks: false, retryRejected: false };
    const open = await api.call('PATCH', path, { body: change });
    expect(open.body).toMatchObject({ ordering: 'none', ...change });
  });

  test('stores the values of headers sealed, shows masks, and replaces all of them', async () => {
    const created = await api.call('POST', '/v1/webhooks', {
      body: { url: 'https://example.com/hook', headers: { Authorization: 'Bearer abc', 'x-team': 'core' } },
      headers: { 'idempotency-key': newId('request') },
    });
    const { id } = created.body;
    const path = `/v1/webhooks/${id}`;
    const masked = { authorization: '***', 'x-team': '***' };
    expect([created.status, created.body.headers]).toEqual([201, masked]);
    expect((await api.call('GET', path)).body.headers).toEqual(masked);
    const stored = async () =>
      (await api.database.prisma.webhookEndpoint.findUniqueOrThrow({ where: { id } })).headers as Record<
        string,
        string
      >;
    const sealed = await stored();
    expect(JSON.stringify(sealed)).not.toContain('abc');
    const keys = parseMasterKeys([TEST_ENCRYPTION_KEYS]);
    expect(open(keys, sealed['authorization']!, `webhook-header:${id}:authorization`)).toBe('Bearer abc');
    expect(await api.logAfter(created)).not.toContain('Bearer abc');

    await api.call('PATCH', path, { body: { enabled: false } });
    expect(await stored()).toEqual(sealed);
    const refused = await api.call('PATCH', path, { body: { headers: { ...masked, Host: 'x' } } });
    expect(refused.body.error.details.map((detail: { path: string }) => detail.path)).toEqual([
      'body.headers.authorization',
      'body.headers.x-team',
      'body.headers.Host',
    ]);
    const changed = await api.call('PATCH', path, { body: { headers: { 'x-team': 'support' } } });
    expect(changed.body.headers).toEqual({ 'x-team': '***' });
    expect((await api.call('PATCH', path, { body: { headers: {} } })).body.headers).toEqual({});
    expect((await api.call('PATCH', path, { body: { headers: null } })).status).toBe(400);
  });

  test('filters events, tries a filter on a past one, and refuses a filter that is too large', async () => {
    const filter = { 'room.name': [{ prefix: 'Sup' }, 'Daily'], 'room.metadata.team': ['core'] };
    const { path } = await webhook(api, { events: ['room.created'], filter });
    const body = { name: 'Support', metadata: { team: 'core' } };
    const [wanted, other] = [await api.room(body), await api.room({ ...body, name: 'Sales' })];
    const { data } = (await api.call('GET', `${path}/deliveries`)).body;
    expect(data.map(({ roomId }: { roomId: string }) => roomId)).toEqual([wanted]);
    const eventOf = async (room: string) =>
      eventually(async () => (await api.call('GET', `/v1/events?roomId=${room}`)).body.data[0]?.id as string);
    const attempt = async (room: string, more = {}) =>
      (await api.call('POST', `${path}/try-filter`, { body: { eventId: await eventOf(room), ...more } })).body;
    expect(await attempt(wanted)).toMatchObject({ eventType: 'room.created', subscribed: true, matches: true });
    expect(await attempt(other)).toMatchObject({
      matches: false,
      paths: [
        { path: 'room.metadata.team', value: 'core', matches: true },
        { path: 'room.name', value: 'Sales', matches: false },
      ],
    });
    expect(await attempt(other, { filter: null })).toMatchObject({ matches: true, paths: [] });
    const missing = await api.call('POST', `${path}/try-filter`, { body: { eventId: 'evt_0' } });
    expect(missing.body.error.code).toBe('EVENT_NOT_FOUND');
    for (const wrong of [{}, { a: [] }, { a: [{ prefix: 1 }] }, [], 'x']) {
      expect((await api.call('PATCH', path, { body: { filter: wrong } })).status).toBe(400);
    }
    expect((await api.call('PATCH', path, { body: { filter: null } })).body.filter).toBeNull();
  });

  test('changes an endpoint while a worker claims under its limits, without a deadlock', async () => {
    const { id, path } = await webhook(api, { maxConcurrent: 5 });
    const { sql } = api.database;
    let change: ReturnType<typeof api.call> | undefined;
    await api.database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM webhook_endpoints WHERE id = ${id} FOR NO KEY UPDATE`;
      change = api.call('PATCH', path, { body: { maxConcurrent: null, description: 'Billing' } });
      await eventually(async () => {
        const [row] = await sql.$queryRaw<[{ count: number }]>`
          SELECT count(*)::int AS count FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`;
        return row.count === 1;
      });
      await tx.$executeRaw`UPDATE webhook_endpoints SET next_attempt_at = now() WHERE id = ${id}`;
    });
    expect(await change).toMatchObject({ status: 200, body: { maxConcurrent: null, description: 'Billing' } });
  });

  test('accepts events, a description, and a disabled start', async () => {
    const { body } = await webhook(api, {
      url: 'https://Example.COM:443/é?c=d',
      events: ['room.created', 'webhook.test'],
      description: '  Billing ',
      enabled: false,
    });
    expect(body).toMatchObject({
      url: 'https://example.com/%C3%A9?c=d',
      events: ['room.created', 'webhook.test'],
      description: 'Billing',
      enabled: false,
    });
  });

  test.each([
    [{ url: 'example.com' }, ['body.url']],
    [{ url: 'ftp://example.com' }, ['body.url']],
    [{ url: 'http://example.com' }, ['body.url']],
    [{ url: 'https://user@example.com' }, ['body.url']],
    [{ url: 'https://:secret@example.com' }, ['body.url']],
    [{ url: `https://example.com/${'x'.repeat(2048)}` }, ['body.url']],
    ...['127.0.0.1', '0x7f.1', '169.254.169.254', '10.1.2.3', '[::1]', '[::ffff:127.0.0.1]', '[fd00::1]'].map(
      (host) => [{ url: `https://${host}/` }, ['body.url']] as [object, string[]],
    ),
    ...[22, 25, 80, 1023].map((port) => [{ url: `https://example.com:${port}/` }, ['body.url']] as [object, string[]]),
    ...[
      ' https://example.com',
      'https:example.com',
      'https://@example.com',
      'https://example.com/#a',
      'https://a..b',
    ].map((url) => [{ url }, ['body.url']] as [object, string[]]),
    [{ url: 'nonsense', events: ['x'], enabled: 1 }, ['body.enabled', 'body.events[0]', 'body.url']],
  ])('rejects %j and names %j', async (body, paths) => {
    const response = await api.call('POST', '/v1/webhooks', { body });
    expect([response.status, response.body.error.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(response.body.error.details.map((d: { path: string }) => d.path).sort()).toEqual(paths);
  });

  test('reports failures of the query ids and of the body together', async () => {
    const response = await api.call('POST', '/v1/webhooks?projectId=proj_x', { body: { url: 'x' } });
    expect(response.body.error.details.map((d: { path: string }) => d.path)).toEqual(['query.projectId', 'body.url']);
  });

  test('creates 50 of 60 concurrent endpoints, and another one after a removal', async () => {
    const { key, environmentId } = await api.newTenant();
    const create = () => api.call('POST', '/v1/webhooks', { key, body: { url: URL_ } });
    const answers = await Promise.all(Array.from({ length: 60 }, create));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(50);
    const refused = answers.filter(({ status }) => status !== 201);
    for (const { status, body } of refused) expect([status, body.error.code]).toEqual([409, 'WEBHOOK_LIMIT_REACHED']);
    expect(await api.database.prisma.webhookEndpoint.count({ where: { environmentId } })).toBe(50);
    const made = answers.find(({ status }) => status === 201)!.body.id;
    expect((await api.call('DELETE', `/v1/webhooks/${made}`, { key })).status).toBe(204);
    expect((await create()).status).toBe(201);
  });
});

describe('GET /v1/webhooks', () => {
  test('lists endpoints newest first, in pages, without secrets and removed endpoints', async () => {
    const { key } = await api.newTenant();
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift((await webhook(api, {}, key)).id);
    await api.call('DELETE', `/v1/webhooks/${ids[1]}`, { key });
    const first = await api.call('GET', '/v1/webhooks?limit=2', { key });
    const second = await api.call('GET', `/v1/webhooks?limit=2&cursor=${first.body.nextCursor}`, { key });
    expect(second.body.nextCursor).toBeNull();
    const listed = [...first.body.data, ...second.body.data];
    expect(listed.map(({ id }) => id)).toEqual([ids[0], ids[2], ids[3], ids[4]]);
    expect(listed[0]).not.toHaveProperty('signingSecret');
    expect((await api.call('GET', '/v1/webhooks?cursor=mangled&limit=0', { key })).body.error.details).toHaveLength(2);
  });
});

describe('GET /v1/webhooks/{endpointId}', () => {
  test('rejects query ids of another tenant', async () => {
    const { path } = await webhook(api);
    expect(await codeOf('GET', `${path}?environmentId=env_other`)).toEqual([400, 'VALIDATION_FAILED']);
    expect((await api.call('GET', `${path}?environmentId=${api.tenant.environmentId}`)).status).toBe(200);
  });
});

describe('PATCH /v1/webhooks/{endpointId}', () => {
  test('changes the given fields, and nothing with an empty body', async () => {
    const { id, path, body } = await webhook(api, { description: 'A' });
    const same = await api.call('PATCH', path, { body: {} });
    const { signingSecret: _, ...shown } = body;
    expect([same.status, same.body]).toEqual([200, shown]);
    const changed = await api.call('PATCH', path, {
      body: { url: 'https://example.org', events: ['room.ended'], description: null, enabled: false },
    });
    expect(changed.body).toMatchObject({
      id,
      url: 'https://example.org/',
      events: ['room.ended'],
      description: null,
      enabled: false,
      disabledReason: null,
    });
    expect(changed.body.updatedAt > shown['updatedAt']).toBe(true);
    expect((await api.call('GET', path)).body).toEqual(changed.body);
  });

  test('marks a new URL as unproven but not as new, and keeps an unchanged URL proven', async () => {
    const { id, path } = await webhook(api);
    const moved = async (slotMs: number | null) => {
      await api.database.prisma.webhookEndpoint.update({ where: { id }, data: { slotMs, url: URL_ } });
      await api.call('PATCH', path, { body: { url: URL_, description: `x${slotMs}` } });
      expect((await row(id)).slotMs).toBe(slotMs);
      await api.call('PATCH', path, { body: { url: 'https://example.org/' } });
      return (await row(id)).slotMs;
    };
    expect([await moved(64), await moved(10_000), await moved(null)]).toEqual([5000, 10_000, null]);
  });

  test('clears the failure state on enabling, and wakes held deliveries', async () => {
    const { id, path } = await webhook(api);
    const { id: held } = await delivery(api, path);
    await api.database.prisma.webhookEndpoint.update({
      where: { id },
      data: { enabled: false, disabledReason: 'Only failures for 3 days.', failingSince: new Date() },
    });
    expect((await api.call('GET', path)).body.disabledReason).toBe('Only failures for 3 days.');
    expect((await deliveryRow(held)).status).toBe('pending');
    await api.redis.flushall();
    const enabled = await api.call('PATCH', path, { body: { enabled: true } });
    expect(enabled.body).toMatchObject({ enabled: true, disabledReason: null });
    expect(await row(id)).toMatchObject({ failingSince: null });
    await eventually(async () => (await isRung(id)) === 1);
  });

  test('rejects a URL that a creation would reject', async () => {
    const { path } = await webhook(api);
    expect(await codeOf('PATCH', path, { url: 'https://10.0.0.1/' })).toEqual([400, 'VALIDATION_FAILED']);
  });
});

describe('POST …/rotate-secret', () => {
  test('creates the next secret version, and leaves the old ones to the sweep', async () => {
    const { id, path, signingSecret } = await webhook(api);
    const rotated = await api.call('POST', `${path}/rotate-secret`);
    expect(rotated.status).toBe(200);
    expect(rotated.body).toMatchObject({ id, signingKeyVersion: 2, signingSecret: expect.stringMatching(/^whsec_/) });
    expect(rotated.body.signingSecret).not.toBe(signingSecret);
    expect((await api.call('GET', path)).body.signingKeyVersion).toBe(2);
    const { prisma } = api.database;
    const versions = async () =>
      (await prisma.webhookSecret.findMany({ where: { endpointId: id }, orderBy: { version: 'asc' } })).map(
        ({ version }) => version,
      );
    await api.call('POST', `${path}/rotate-secret`);
    expect(await versions()).toEqual([1, 2, 3]);
    expect(await api.logAfter(rotated)).not.toContain(rotated.body.signingSecret.slice(6));
  });

  test('gives concurrent rotations different versions', async () => {
    const { path } = await webhook(api);
    const answers = await Promise.all([1, 2, 3].map(() => api.call('POST', `${path}/rotate-secret`)));
    expect(answers.map(({ body }) => body.signingKeyVersion).sort()).toEqual([2, 3, 4]);
  });
});

describe('a rotation that waits', () => {
  const DAY_SECONDS = 86_400;
  const rotate = (path: string, activateInSeconds: number) =>
    api.call('POST', `${path}/rotate-secret`, { body: { activateInSeconds } });
  const shown = async (path: string) => {
    const { signingKeyVersion, nextSigningKeyVersion, nextActivatesAt } = (await api.call('GET', path)).body;
    return [signingKeyVersion, nextSigningKeyVersion, nextActivatesAt];
  };
  const versionOfDelivery = async (path: string) =>
    (await api.call('GET', (await delivery(api, path)).path)).body.signingKeyVersion;

  test('shows both versions until its time, and only the new one from then on', async () => {
    const { id, path, signingSecret } = await webhook(api);
    const earliestMs = Date.now() + DAY_SECONDS * 1000;
    const { status, body } = await rotate(path, DAY_SECONDS);
    const { signingSecret: next, ...endpoint } = body;
    expect([status, body.signingKeyVersion, body.nextSigningKeyVersion]).toEqual([200, 1, 2]);
    expect(next).toMatch(/^whsec_/);
    expect(next).not.toBe(signingSecret);
    // This process and PostgreSQL share the clock of one machine.
    const activatesAtMs = Date.parse(body.nextActivatesAt);
    expect(activatesAtMs).toBeGreaterThanOrEqual(earliestMs - 1);
    expect(activatesAtMs).toBeLessThanOrEqual(Date.now() + DAY_SECONDS * 1000);
    expect((await api.call('GET', path)).body).toEqual(endpoint);
    const listed = (await api.call('GET', '/v1/webhooks?limit=100')).body.data;
    expect(listed.find((one: { id: string }) => one.id === id)).toEqual(endpoint);
    const stored = await api.database.prisma.webhookSecret.findFirstOrThrow({ where: { endpointId: id, version: 2 } });
    const keys = parseMasterKeys([TEST_ENCRYPTION_KEYS]);
    expect(open(keys, stored.secretSealed, `webhook-secret:${id}:2`)).toBe(next);
    expect(await versionOfDelivery(path)).toBe(1);

    await api.database.sql.$executeRaw`UPDATE webhook_endpoints SET next_activates_at = now() WHERE id = ${id}`;
    expect(await shown(path)).toEqual([2, null, null]);
    expect(await versionOfDelivery(path)).toBe(2);
    expect((await rotate(path, 60)).body).toMatchObject({ signingKeyVersion: 2, nextSigningKeyVersion: 3 });
  });

  test('refuses a second rotation, until it is activated or cancelled', async () => {
    const { path } = await webhook(api);
    await rotate(path, DAY_SECONDS);
    for (const seconds of [0, 60]) {
      const { status, body } = await rotate(path, seconds);
      expect([status, body.error.code]).toEqual([409, 'SECRET_ROTATION_WAITS']);
    }
    const activated = await api.call('POST', `${path}/rotate-secret/activate`);
    expect(activated.status).toBe(200);
    expect(activated.body).toMatchObject({ signingKeyVersion: 2, nextSigningKeyVersion: null, nextActivatesAt: null });
    expect(activated.body).not.toHaveProperty('signingSecret');
    expect(await codeOf('POST', `${path}/rotate-secret/activate`)).toEqual([409, 'NO_SECRET_ROTATION']);
    expect(await codeOf('DELETE', `${path}/rotate-secret`)).toEqual([409, 'NO_SECRET_ROTATION']);
    await rotate(path, DAY_SECONDS);
    expect((await api.call('DELETE', `${path}/rotate-secret`)).status).toBe(204);
    expect(await shown(path)).toEqual([2, null, null]);
  });

  test('does not give the version of a cancelled secret again, which a receiver may know', async () => {
    const { path } = await webhook(api);
    await rotate(path, DAY_SECONDS);
    await api.call('DELETE', `${path}/rotate-secret`);
    expect((await rotate(path, 0)).body).toMatchObject({ signingKeyVersion: 3, nextSigningKeyVersion: null });
  });

  test('begins once when several requests arrive together', async () => {
    const { path } = await webhook(api);
    const answers = await Promise.all([1, 2, 3].map(() => rotate(path, 60)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  test('survives other changes of the endpoint, and may take seven days', async () => {
    const { path } = await webhook(api);
    const { nextActivatesAt } = (await rotate(path, 604_800)).body;
    const changed = await api.call('PATCH', path, { body: { description: 'Billing' } });
    expect(changed.body).toMatchObject({ signingKeyVersion: 1, nextSigningKeyVersion: 2, nextActivatesAt });
  });
});

describe('POST …/test', () => {
  test('delivers to this endpoint only, whatever it subscribes to, and wakes a worker', async () => {
    const { key, environmentId } = await api.newTenant();
    await webhook(api, {}, key);
    const { id, path } = await webhook(api, { events: ['room.ended'] }, key);
    const { status, body } = await api.call('POST', `${path}/test`, { key });
    expect(status).toBe(202);
    expect(body).toEqual({
      id: expect.stringMatching(/^dlv_[0-9a-z]{26}$/),
      eventId: expect.stringMatching(/^evt_[0-9a-z]{26}$/),
      eventType: 'webhook.test',
      endpointId: id,
      roomId: null,
      url: URL_,
      status: 'pending',
      failureReason: null,
      replayCount: 0,
      attempts: 0,
      lastStatusCode: null,
      lastErrorCode: null,
      nextAttemptAt: expect.stringMatching(TIMESTAMP),
      blockedBy: null,
      signingKeyVersion: 1,
      createdAt: expect.stringMatching(TIMESTAMP),
      completedAt: null,
    });
    expect(await api.database.prisma.webhookDelivery.count({ where: { environmentId } })).toBe(1);
    const detail = (await api.call('GET', `${path}/deliveries/${body.id}`, { key })).body;
    expect(detail.event.data).toEqual({ webhook: (await api.call('GET', path, { key })).body });
    await eventually(async () => (await isRung(body.endpointId)) === 1);
  });

  test('answers 409 for a disabled endpoint', async () => {
    const { path } = await webhook(api, { enabled: false });
    expect(await codeOf('POST', `${path}/test`)).toEqual([409, 'WEBHOOK_DISABLED']);
  });
});

describe('DELETE /v1/webhooks/{endpointId}', () => {
  test('ends open deliveries, revokes leases, cancels recoveries, and keeps past deliveries readable', async () => {
    const { id, path } = await webhook(api);
    const [pending, held, done] = [await delivery(api, path), await delivery(api, path), await delivery(api, path)];
    await lease(api, held.id);
    await finish(api, done.id, null);
    await attempt(api, done.id, 1, 'success');
    const recovery = await api.call('POST', `${path}/recoveries`, { body: { since: '2026-01-01T00:00:00Z' } });

    expect((await api.call('DELETE', path)).status).toBe(204);
    for (const [method, at] of [
      ['GET', path],
      ['DELETE', path],
      ['PATCH', path],
      ['POST', `${path}/test`],
      ['POST', `${path}/rotate-secret`],
    ] as const)
      expect(await codeOf(method, at, method === 'PATCH' ? {} : undefined)).toEqual([404, 'WEBHOOK_NOT_FOUND']);
    for (const open of [pending, held]) {
      expect((await api.call('GET', open.path)).body).toMatchObject({
        status: 'failed',
        failureReason: 'endpoint_deleted',
        completedAt: expect.stringMatching(TIMESTAMP),
        nextAttemptAt: null,
      });
      expect((await deliveryRow(open.id)).leaseToken).toBeNull();
    }
    expect((await api.call('GET', done.path)).body.status).toBe('succeeded');
    expect((await api.call('GET', `${path}/deliveries`)).body.data).toHaveLength(3);
    expect((await api.call('GET', `${done.path}/attempts`)).body.data).toHaveLength(1);
    expect((await api.call('GET', `${path}/recoveries/${recovery.body.id}`)).body.status).toBe('cancelled');
    expect(await codeOf('POST', `${path}/recoveries`, { since: '2026-01-01T00:00:00Z' })).toEqual([
      404,
      'WEBHOOK_NOT_FOUND',
    ]);
    const room = await api.room();
    expect(await api.database.prisma.webhookDelivery.count({ where: { endpointId: id } })).toBe(3);
    expect(room).toMatch(/^room_/);
  });

  test('answers 204 to one of three concurrent requests, and 404 to the others', async () => {
    const { path } = await webhook(api);
    const answers = await Promise.all([1, 2, 3].map(() => api.call('DELETE', path)));
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 404, 404]);
  });
});
