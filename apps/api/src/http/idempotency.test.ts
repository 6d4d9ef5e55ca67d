import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { canonicalJson, idempotently } from './idempotency.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
const create = (key: string, body: object, apiKey = api.tenant.key) =>
  api.call('POST', '/v1/rooms', { key: apiKey, body, headers: { 'idempotency-key': key } });

describe('Idempotency-Key', () => {
  test('the same key and body give the first answer again', async () => {
    const first = await create('order 1', { name: 'A', metadata: { a: 1, b: 2 } });
    expect(first.headers).not.toHaveProperty('idempotency-replayed');
    const again = await create('order 1', { metadata: { b: 2, a: 1 }, name: 'A' });
    expect([again.status, again.body, again.headers['idempotency-replayed']]).toEqual([201, first.body, 'true']);
    expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
    expect((await create('order 2', { name: 'A' })).body.id).not.toBe(first.body.id);
  });

  test('another body is 422, and another environment has keys of its own', async () => {
    const first = await create('shared', { name: 'A' });
    const other = await create('shared', { name: 'B' });
    expect([other.status, other.body.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    const elsewhere = await create('shared', { name: 'B' }, (await api.newTenant()).key);
    expect([elsewhere.status, elsewhere.body.id === first.body.id]).toEqual([201, false]);
  });

  test('fifty at once make one room: the others get its answer or 409', async () => {
    const responses = await Promise.all(Array.from({ length: 50 }, () => create('race', { name: 'race' })));
    const rooms = await api.database.prisma.room.findMany({ where: { name: 'race' } });
    expect(rooms).toHaveLength(1);
    for (const { status, body } of responses) {
      if (status === 201) expect(body.id).toBe(rooms[0]!.id);
      else expect([status, body.error.code]).toEqual([409, 'IDEMPOTENCY_CONFLICT']);
    }
    expect((await create('race', { name: 'race' })).status).toBe(201);
  });

  test('while the first is under way the second is 409 at once, and what failed is not kept', async () => {
    const { deps } = api;
    const request = { route: 'POST /v1/test', key: newId('request'), body: {} };
    let release: () => void = () => undefined;
    let begun: () => void = () => undefined;
    const begins = new Promise<void>((resolve) => (begun = resolve));
    const held = new Promise<void>((resolve) => (release = resolve));
    const first = idempotently(deps, api.tenant, request, async () => {
      begun();
      await held;
      throw new Error('fails');
    });
    first.catch(() => undefined);
    await begins;
    await expect(
      idempotently(deps, api.tenant, request, () => Promise.resolve({ status: 200, body: {} })),
    ).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    release();
    await expect(first).rejects.toThrow('fails');
    const reply = await idempotently(deps, api.tenant, request, () => Promise.resolve({ status: 200, body: { n: 1 } }));
    expect(reply).toEqual({ status: 200, body: { n: 1 } });
  });

  test('is forgotten after 24 hours', async () => {
    const first = await create('old', { name: 'A' });
    const row = await api.database.prisma.idempotencyRecord.findFirstOrThrow({ where: { key: 'old' } });
    expect(row.expiresAt.getTime() - row.createdAt.getTime()).toBe(24 * 60 * 60 * 1000);
    await api.database.prisma.idempotencyRecord.updateMany({ where: { key: 'old' }, data: { expiresAt: new Date() } });
    const later = await create('old', { name: 'B' });
    expect([later.status, later.body.id === first.body.id]).toEqual([201, false]);
  });

  test('an answer that holds a secret is sealed at rest', async () => {
    const request = { route: 'POST /v1/test', key: newId('request'), body: {}, holdsSecret: true };
    const work = () => Promise.resolve({ status: 201, body: { signingSecret: 'whsec_geheim' } });
    await idempotently(api.deps, api.tenant, request, work);
    const row = await api.database.prisma.idempotencyRecord.findFirstOrThrow({ where: { key: request.key } });
    expect(row.responseBody).toMatch(/^s1\.k1\./);
    expect(await idempotently(api.deps, api.tenant, request, work)).toMatchObject({
      body: { signingSecret: 'whsec_geheim' },
    });
  });

  test('a key has 1 to 255 printable ASCII characters', async () => {
    expect((await create('~'.repeat(255), { name: 'A' })).status).toBe(201);
    for (const key of ['x'.repeat(256), 'é', ''])
      expect([key, (await create(key, { name: 'A' })).status]).toEqual([key, 400]);
  });

  test('tokens take none', async () => {
    const room = await api.room();
    const issue = () =>
      api.call('POST', `/v1/rooms/${room}/tokens`, {
        body: { participantName: 'A' },
        headers: { 'idempotency-key': 'k' },
      });
    expect((await issue()).body.participantId).not.toBe((await issue()).body.participantId);
  });

  test('the canonical form does not depend on the order of keys', () => {
    expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: true })).toBe(
      canonicalJson({ a: true, b: [1, { c: 'x', d: null }] }),
    );
    expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]));
  });
});
