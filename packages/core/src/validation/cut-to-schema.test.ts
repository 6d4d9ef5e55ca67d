import { describe, expect, test } from '@jest/globals';
import { cutToSchema } from './cut-to-schema.js';

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
