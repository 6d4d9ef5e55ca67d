import { beforeAll, describe, expect, test } from '@jest/globals';
import { storedJsonBytes } from '@callplane/core';
import fc from 'fast-check';
import { apiRoutes } from '../routes.js';
import { startTestApi, type TestApi } from '../api.testkit.js';

let api: TestApi;
let room: string;
beforeAll(async () => {
  api = await startTestApi();
  room = await api.room();
});
const unknownFields = Object.fromEntries(Array.from({ length: 7000 }, (_, n) => [n.toString(36), 1]));

describe('a hostile body', () => {
  test.each<[string, () => string, string]>([
    [
      '7,000 numbers below a key of 20,000 characters',
      () => '/v1/rooms',
      `{"name":"a","${'k'.repeat(20_000)}":[${'9e999,'.repeat(7000)}1]}`,
    ],
    ['7,000 unknown fields', () => '/v1/rooms', JSON.stringify({ name: 'a', ...unknownFields })],
    [
      'one unknown field of 60,000 characters',
      () => '/v1/rooms',
      `{"name":"a","${'\\u0001'.repeat(5000)}${'x'.repeat(30_000)}":1}`,
    ],
    [
      '15,000 bad permissions',
      () => `/v1/rooms/${room}/tokens`,
      `{"participantName":"a","permissions":[${'"a",'.repeat(15_000)}"b"]}`,
    ],
    [
      '30,000 permissions of a wrong type',
      () => `/v1/rooms/${room}/tokens`,
      `{"participantName":"a","permissions":[${'1,'.repeat(30_000)}1]}`,
    ],
    [
      '15,000 unknown events',
      () => '/v1/webhooks',
      `{"url":"https://example.com","events":[${'"a",'.repeat(15_000)}"b"]}`,
    ],
    ['7,000 duplicates of one key', () => '/v1/rooms', `{${'"name":1,'.repeat(7000)}"name":"a"}`],
    ['7,000 strings that cannot be stored', () => '/v1/rooms', `{"name":"a","texts":[${'"\\u0000",'.repeat(7000)}1]}`],
    ['a long number', () => '/v1/rooms', `{"name":"a","maxParticipants":${'9'.repeat(60_000)}}`],
  ])('with %s is rejected with a short answer', async (_, path, raw) => {
    expect(Buffer.byteLength(raw)).toBeLessThanOrEqual(65_536);
    const response = await api.call('POST', path(), { raw, headers: { 'content-type': 'application/json' } });
    expect(response.status).toBe(400);
    expect(Buffer.byteLength(response.text)).toBeLessThanOrEqual(16 * 1024);
    const { details } = response.body.error as { details: { path: string; message: string }[] };
    expect(details.length).toBeGreaterThan(0);
    expect(details.length).toBeLessThanOrEqual(20);
    for (const { path, message } of details) expect([path.length <= 200, message.length <= 400]).toEqual([true, true]);
  });

  test('with too many array items gets the maximum number of items in the answer', async () => {
    const { body } = await api.call('POST', `/v1/rooms/${room}/tokens`, {
      body: { participantName: 'a', permissions: ['room:join', ...Array.from({ length: 20 }, () => 'audio:publish')] },
    });
    expect(body.error.details).toContainEqual({ path: 'body.permissions', message: 'must have at most 6 entries' });
  });
});

test('rejects a body that is nested too deep, also with an Idempotency-Key', async () => {
  for (const raw of [
    `{"name":"a","x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
    '['.repeat(30_000) + ']'.repeat(30_000),
  ]) {
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'deep' };
    expect((await api.call('POST', '/v1/rooms', { raw, headers })).status).toBe(400);
  }
});

test('every array in a request schema has maxItems', () => {
  const arrays = (schema: unknown): Record<string, unknown>[] => {
    if (typeof schema !== 'object' || schema === null) return [];
    const own = (schema as { type?: unknown }).type === 'array' ? [schema as Record<string, unknown>] : [];
    return [...own, ...Object.values(schema).flatMap(arrays)];
  };
  const found = apiRoutes({} as never).flatMap(({ body }) => arrays(body));
  expect(found.length).toBeGreaterThan(1);
  // cutToSchema uses maxItems to limit the cost of a hostile array.
  for (const array of found) expect(array).toHaveProperty('maxItems');
});

test('measures metadata as PostgreSQL returns it, without the added spaces', async () => {
  const { sql } = api.database;
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(1e308, 5e-324, -1e21, 1e-7, 1.5e-7, 0, -0),
  );
  const text = fc.string({ unit: 'binary' }).filter((value) => value.isWellFormed() && !value.includes('\u0000'));
  const { value: metadata } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.oneof(number, text, fc.boolean(), fc.constant(null)),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.dictionary(text, tie('value'), { maxKeys: 5 }),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(fc.array(metadata, { minLength: 1, maxLength: 20 }), async (values) => {
      const rows = await sql.$queryRaw<{ text: string }[]>`
        SELECT value::jsonb::text AS text FROM unnest(${values.map((value) => JSON.stringify(value))}::text[])
          WITH ORDINALITY AS given(value, position) ORDER BY position`;
      const returned = rows.map(({ text: stored }) => Buffer.byteLength(withoutSpaces(stored)));
      expect(values.map((value) => storedJsonBytes(JSON.parse(JSON.stringify(value))))).toEqual(returned);
    }),
    { numRuns: 100 },
  );
});

/** Removes the spaces that PostgreSQL adds after `,` and `:`, but not those inside strings. */
function withoutSpaces(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"|\s/g, (part) => (part.startsWith('"') ? part : ''));
}
