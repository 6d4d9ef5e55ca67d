import { describe, expect, test } from '@jest/globals';
import { cutToSchema, describeSchemaFailures, type SchemaFailure } from './schema-failure.js';

const schema = {
  additionalProperties: false,
  properties: {
    words: { items: { type: 'string' }, maxItems: 3 },
    tracks: { items: { additionalProperties: false, properties: { id: {} } }, maxItems: 2 },
    metadata: { type: 'object' },
  },
};

describe('cutToSchema', () => {
  test('returns the value itself unless it exceeds a limit', () => {
    const metadata = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`k${n}`, n]));
    for (const value of [{}, { words: ['a'], x: 1 }, { words: 'a' }, { tracks: [{ id: 1, x: 2 }, null] }, { metadata }])
      expect(cutToSchema(schema, value)).toBe(value);
  });

  test('keeps one item more than the maximum of an array', () => {
    expect(cutToSchema(schema, { words: Array.from({ length: 15_000 }, () => 1) })).toEqual({ words: [1, 1, 1, 1] });
  });

  test('keeps twenty unknown fields over all objects together', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`u${n}`, n]));
    expect(Object.keys(cutToSchema(schema, { ...many(7000), words: ['a'] }) as object)).toHaveLength(21);
    const { tracks } = cutToSchema(schema, { tracks: [many(15), many(15)] }) as { tracks: object[] };
    expect(tracks.map((track) => Object.keys(track).length)).toEqual([15, 5]);
    const own = JSON.parse(`{"__proto__":1,${Array.from({ length: 30 }, (_, n) => `"u${n}":1`).join(',')}}`);
    expect(Object.keys(cutToSchema(schema, own) as object)).toContain('__proto__');
  });
});

const failure = (keyword: string, more: Partial<SchemaFailure> = {}): SchemaFailure => ({
  keyword,
  schemaPath: `#/${keyword}`,
  instancePath: '/items/0/name',
  params: {},
  message: 'as Ajv words it',
  ...more,
});

const describeOne = (root: string, one: SchemaFailure) => describeSchemaFailures(root, [one])[0]!;

describe('describeSchemaFailures', () => {
  test.each([
    ['type', { type: 'object' }, 'must be an object'],
    ['type', { type: 'string' }, 'must be a string'],
    ['enum', { allowedValues: ['a', 'b'] }, 'must be one of a, b'],
    ['minimum', { limit: 1 }, 'must be at least 1'],
    ['maximum', { limit: 2 }, 'must be at most 2'],
    ['minLength', { limit: 1 }, 'must have at least 1 characters'],
    ['maxLength', { limit: 64 }, 'must have at most 64 characters'],
    ['minItems', { limit: 1 }, 'must have at least 1 entries'],
    ['maxItems', { limit: 9 }, 'must have at most 9 entries'],
    ['uniqueItems', { i: 1, j: 0 }, 'must not have duplicate entries'],
    [
      'format',
      { format: 'date-time' },
      'must be an ISO 8601 time with a time zone, like 2026-11-20T22:35:43.500Z, from 1970 to 9999',
    ],
    ['format', { format: 'uri' }, 'as Ajv words it'],
    ['dependentRequired', { property: 'until' }, 'is required together with until'],
    ['pattern', { pattern: '^a$' }, 'must match ^a$'],
    ['const', { allowedValue: 'x' }, 'as Ajv words it'],
  ])('words a failure of %s with %j', (keyword, params, message) => {
    expect(describeOne('body', failure(keyword, { params }))).toEqual({
      path: 'body.items[0].name',
      message,
    });
  });

  test('names the missing or unknown field in the path', () => {
    const missing = failure('required', { instancePath: '', params: { missingProperty: 'id' } });
    expect(describeOne('', missing)).toEqual({ path: 'id', message: 'is required' });
    const unknown = failure('additionalProperties', { params: { additionalProperty: 'x' } });
    expect(describeOne('body', unknown)).toEqual({
      path: 'body.items[0].name.x',
      message: 'is not a known field',
    });
  });

  test('puts unknown fields first, and suggests the known field that is meant', () => {
    const known = { properties: { name: {}, metadata: {} } };
    const unknown = (additionalProperty: string) =>
      failure('additionalProperties', { instancePath: '', params: { additionalProperty }, parentSchema: known });
    const missing = failure('required', { instancePath: '', params: { missingProperty: 'name' } });
    expect(describeSchemaFailures('body', [missing, unknown('nmae'), unknown('colour')])).toEqual([
      { path: 'body.nmae', message: 'is not a known field; did you mean name?' },
      { path: 'body.colour', message: 'is not a known field' },
      { path: 'body.name', message: 'is required' },
    ]);
  });

  test('takes the entry that an array must include from the schema', () => {
    const message = (schema?: unknown) => describeOne('', failure('contains', { schema })).message;
    expect(message({ const: 'room:join' })).toBe('must include room:join');
    expect(message({ const: 'audio:publish' })).toBe('must include audio:publish');
    expect(message({ type: 'string' })).toBe('as Ajv words it');
    expect(message()).toBe('as Ajv words it');
  });
});
