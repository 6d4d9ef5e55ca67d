import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId, parseMasterKeys } from '@callplane/core';
import { systemClock } from '@callplane/runtime';
import { TEST_ENCRYPTION_KEYS } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { canonicalJson, idempotently, type IdempotencyDeps } from './idempotency.js';

let api: TestApi;
let deps: IdempotencyDeps;
beforeAll(async () => {
  api = await startTestApi();
  deps = { database: api.database, clock: systemClock, masterKeys: parseMasterKeys([TEST_ENCRYPTION_KEYS]) };
});
const create = (key: string, body: object, apiKey = api.tenant.key) =>
  api.call('POST', '/v1/rooms', { key: apiKey, body, headers: { 'idempotency-key': key } });

describe('Idempotency-Key', () => {
  test('repeats the first answer for the same key and body', async () => {
    const first = await create('order 1', { name: 'A', metadata: { a: 1, b: 2 } });
    expect(first.headers).not.toHaveProperty('idempotency-replayed');
    const again = await create('order 1', { metadata: { b: 2, a: 1 }, name: 'A' });
    expect([again.status, again.body, again.headers['idempotency-replayed']]).toEqual([201, first.body, 'true']);
    expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
    expect((await create('order 2', { name: 'A' })).body.id).not.toBe(first.body.id);
  });

  test('compares bodies as sent, before trimming and defaults', async () => {
    const first = await create('as sent', { name: ' A ' });
    expect(first.body.name).toBe('A');
    expect((await create('as sent', { name: ' A ' })).body).toEqual(first.body);
    for (const other of [{ name: 'A' }, { name: ' A ', metadata: {} }, { name: ' A ', maxParticipants: 100 }]) {
      expect((await create('as sent', other)).body.error.code).toBe('IDEMPOTENCY_KEY_REUSED');
    }
    const described = (description: string) =>
      api.call('POST', '/v1/webhooks', {
        body: { url: 'https://example.com/', description },
        headers: { 'idempotency-key': 'described' },
      });
    expect((await described('x ')).status).toBe(201);
    expect([(await described('x ')).status, (await described('x')).status]).toEqual([201, 422]);
  });

  test('answers 422 for another body, and keeps the keys of environments apart', async () => {
    const first = await create('shared', { name: 'A' });
    const other = await create('shared', { name: 'B' });
    expect([other.status, other.body.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    const elsewhere = await create('shared', { name: 'B' }, (await api.newTenant()).key);
    expect([elsewhere.status, elsewhere.body.id === first.body.id]).toEqual([201, false]);
  });

  test('creates one room for fifty concurrent requests, which get its answer or 409', async () => {
    // Requests without a key share statements with each other, but not with requests that have one.
    const without = () => api.call('POST', '/v1/rooms', { body: { name: 'race without a key' } });
    const others = Promise.all(Array.from({ length: 20 }, without));
    const responses = await Promise.all(Array.from({ length: 50 }, () => create('race', { name: 'race' })));
    expect(new Set((await others).map(({ body }) => body.id)).size).toBe(20);
    const rooms = await api.database.prisma.room.findMany({ where: { name: 'race' } });
    expect(rooms).toHaveLength(1);
    for (const { status, body } of responses) {
      if (status === 201) expect(body.id).toBe(rooms[0]!.id);
      else expect([status, body.error.code]).toEqual([409, 'IDEMPOTENCY_CONFLICT']);
    }
    expect((await create('race', { name: 'race' })).status).toBe(201);
  });

  test('answers 409 at once while the first request is running, and keeps no record of a failure', async () => {
    const request = { route: 'POST /v1/test', key: newId('request'), body: {} };
    let release: () => void = () => undefined;
    let begun: () => void = () => undefined;
    const begins = new Promise<void>((resolve) => (begun = resolve));
    const held = new Promise<void>((resolve) => (release = resolve));
    const answer = (made: object) => ({ status: 200, body: made });
    const first = idempotently(deps, api.tenant, request, {
      make: async () => {
        begun();
        await held;
        throw new Error('fails');
      },
      answer,
    });
    first.catch(() => undefined);
    await begins;
    await expect(
      idempotently(deps, api.tenant, request, { make: () => Promise.resolve({}), answer }),
    ).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    release();
    await expect(first).rejects.toThrow('fails');
    const reply = await idempotently(deps, api.tenant, request, { make: () => Promise.resolve({ n: 1 }), answer });
    expect(reply).toEqual({ status: 200, body: { n: 1 } });
  });

  test('stores the generated values instead of the answer, and repeats the answer even if the room has changed', async () => {
    const metadata = { text: randomBytes(12_000).toString('base64') };
    const first = await create('large', { name: ' Large ', metadata });
    const { prisma, sql } = api.database;
    const [{ bytes }] = await sql.$queryRaw<[{ bytes: number }]>`
      SELECT pg_column_size(r.*)::int AS bytes FROM idempotency_records r WHERE key = 'large'`;
    expect(bytes).toBeLessThan(400);
    await prisma.room.update({ where: { id: first.body.id }, data: { name: 'Renamed', metadata: {} } });
    const again = await create('large', { name: ' Large ', metadata });
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect(again.body.name).toBe('Large');
  });

  test('expires after 24 hours', async () => {
    const first = await create('old', { name: 'A' });
    const row = await api.database.prisma.idempotencyRecord.findFirstOrThrow({ where: { key: 'old' } });
    expect(row.expiresAt.getTime() - row.createdAt.getTime()).toBe(24 * 60 * 60 * 1000);
    await api.database.prisma.idempotencyRecord.updateMany({ where: { key: 'old' }, data: { expiresAt: new Date() } });
    const later = await create('old', { name: 'B' });
    expect([later.status, later.body.id === first.body.id]).toEqual([201, false]);
  });

  test('seals the record of an answer that contains a secret', async () => {
    const request = { route: 'POST /v1/test', key: newId('request'), body: {}, holdsSecret: true };
    const work = {
      make: () => Promise.resolve({ signingSecret: 'whsec_geheim' }),
      answer: (made: object) => ({ status: 201, body: made }),
    };
    await idempotently(deps, api.tenant, request, work);
    const row = await api.database.prisma.idempotencyRecord.findFirstOrThrow({ where: { key: request.key } });
    expect(row.made).toMatch(/^s1\.k1\./);
    expect(await idempotently(deps, api.tenant, request, work)).toMatchObject({
      body: { signingSecret: 'whsec_geheim' },
    });
  });

  test('accepts 1 to 255 printable ASCII characters only', async () => {
    expect((await create('~'.repeat(255), { name: 'A' })).status).toBe(201);
    for (const key of ['x'.repeat(256), 'é', ''])
      expect([key, (await create(key, { name: 'A' })).status]).toEqual([key, 400]);
  });

  test('has no effect on token requests', async () => {
    const room = await api.room();
    const issue = () =>
      api.call('POST', `/v1/rooms/${room}/tokens`, {
        body: { participantName: 'A' },
        headers: { 'idempotency-key': 'k' },
      });
    expect((await issue()).body.participantId).not.toBe((await issue()).body.participantId);
  });

  test('ignores the order of keys when it compares bodies', () => {
    expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: true })).toBe(
      canonicalJson({ a: true, b: [1, { c: 'x', d: null }] }),
    );
    expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]));
  });
});
