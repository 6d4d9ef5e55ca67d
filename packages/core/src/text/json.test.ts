import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { ERROR_DETAILS_MAX, ERROR_PATH_CHARACTERS_MAX } from '../errors/errors.js';
import { inexactReason, parseJsonBody } from './json.js';

const details = (text: string) => {
  const body = parseJsonBody(text);
  return body.ok ? body.details : 'malformed';
};

describe('parseJsonBody', () => {
  test('accepts everything that a JavaScript client can send, and keeps it unchanged', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5, stringUnit: 'grapheme-ascii' }), (text) => {
        const body = parseJsonBody(text);
        expect(body.ok && body.details.filter(({ message }) => message.includes('number'))).toEqual([]);
      }),
    );
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
        expect(parseJsonBody(JSON.stringify(value, null, indent))).toEqual({
          ok: true,
          value: JSON.parse(JSON.stringify(value)),
          details: [],
        });
      }),
    );
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(details(JSON.stringify({ number }))).toEqual([]);
      }),
    );
  });

  test.each([
    ['{"a":{"b":1e400}}', 'body.a.b', /too large/],
    ['{"a":-1e400}', 'body.a', /too large/],
    ['{"a":1e-400}', 'body.a', /1e-400/],
    ['{"a":[0,1e-400]}', 'body.a[1]', /1e-400/],
    ['{"a":9007199254740993}', 'body.a', /9007199254740993/],
    ['{"a":"\\u0000"}', 'body.a', /U\+0000/],
    ['{"a":["x","\\ud800"]}', 'body.a[1]', /surrogate/],
    ['{"a":{"\\u0000":1}}', 'body.a', /key.*U\+0000/],
    ['{"a":1,"a":1}', 'body.a', /twice/],
    ['{"a":1,"\\u0061":2}', 'body.a', /twice/],
    ['{"x":[{},{"b":{"c":[]},"b":0}]}', 'body.x[1].b', /twice/],
    ['{"__proto__":1,"__proto__":2}', 'body.__proto__', /twice/],
    ['{"":1,"":2}', 'body.', /twice/],
  ])('rejects %s at %s', (text, path, message) => {
    expect(details(text)).toEqual([{ path, message: expect.stringMatching(message) }]);
  });

  test.each(['[{"a":1},{"a":1}]', '{"a":{"a":{"a":1}},"b":{"a":1}}', '{"a":"a","b":"a"}', '{"a":["a","a"],"A":1}'])(
    'finds no duplicate key in %s',
    (text) => expect(details(text)).toEqual([]),
  );

  test('finds a duplicate key at any place and in any spelling', () => {
    const escape = (key: string) =>
      Array.from(key, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 8 }),
        fc.jsonValue({ maxDepth: 3 }),
        fc.nat(),
        (keys, value, chosen) => {
          const member = (key: string) => `${JSON.stringify(key)}:${JSON.stringify(value)}`;
          const again = keys[chosen % keys.length]!;
          const once = keys.map(member).join(',');
          expect(details(`{${once}}`)).toEqual([]);
          expect(details(`[{${once},"${escape(again)}":0}]`)).toEqual([
            { path: `body[0].${again}`, message: 'is given twice in the same object' },
          ]);
        },
      ),
    );
  });

  test('accepts 32 levels of nesting, rejects 33, and does not overflow the stack on 60,000', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(details(nested(32))).toEqual([]);
    expect(details(nested(33))).toHaveLength(1);
    expect(details(nested(30_000))).toHaveLength(1);
    expect(details(`{"a":${nested(32)},"a":1}`)).toHaveLength(2);
  });

  test('reports broken JSON as malformed', () => {
    for (const text of ['', '{', '{"a":01}', "{'a':1}", 'undefined', '{"a":1}x'])
      expect(details(text)).toBe('malformed');
  });

  test('treats __proto__ as a key like any other', () => {
    const body = parseJsonBody('{"__proto__":{"x":1}}');
    expect(body.ok && Object.keys(body.value as object)).toEqual(['__proto__']);
  });

  test.each([
    ['numbers below a long key', `{"type":"join","${'k'.repeat(64_000)}":[${'9e999,'.repeat(11_000)}0]}`],
    ['long keys that are given twice', `{${`"${'k'.repeat(1000)}":1,`.repeat(120)}"x":1}`],
    ['short keys that are given twice', `{${'"":0,'.repeat(25_000)}"x":1}`],
    ['long numbers', `[${`${'1'.repeat(300)},`.repeat(400)}0]`],
    ['text that cannot be stored', `[${'"\\u0000",'.repeat(14_000)}0]`],
    ['nesting', `[${`${'['.repeat(33)}${']'.repeat(33)},`.repeat(1900)}0]`],
  ])('reports the first 20 of many %s, each with a short path', (_, text) => {
    const reported = details(text);
    expect(reported).toHaveLength(ERROR_DETAILS_MAX);
    for (const { path, message } of reported as { path: string; message: string }[]) {
      expect(path.length).toBeLessThanOrEqual(ERROR_PATH_CHARACTERS_MAX);
      expect(message.length).toBeLessThanOrEqual(150);
    }
  });
});

describe('inexactReason', () => {
  test.each([
    '9007199254740993',
    '9007199254740993.0',
    '9007199254740993e0',
    '-90071992547409930e-1',
    '9.007199254740993E15',
    `9007199254740993${'0'.repeat(1000)}e-1000`,
    '9007199254740992.5',
    // 2^60: a double holds it, but JavaScript writes it as 1152921504606847000.
    '1152921504606846976',
    '12345678901234567001',
    '12345678901234567890123',
    '1e400',
    '-1e400',
    '1e-400',
    '3e-324',
    `0.${'0'.repeat(400)}1`,
  ])('rejects %s', (literal) => expect(inexactReason(literal)).not.toBeNull());

  test.each([
    '0.1',
    '9007199254740992',
    '9007199254740992.0',
    '90071992547409920e-1',
    '9007199254740991.0000',
    '9007199254740994',
    '12345678901234567000',
    '1e21',
    '1000000000000000000000',
    '1e23',
    '1e308',
    '5e-324',
    '0e-999',
    '-0.0',
    '0.000000000000000000000',
    '3.14159265358979323846',
    '0.10000000000000001',
    '100e-2',
  ])('accepts %s', (literal) => expect(inexactReason(literal)).toBeNull());

  test('accepts every double as JavaScript writes it, and a fraction with more digits', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(inexactReason(JSON.stringify(value))).toBeNull();
        if (Math.abs(value) >= 1e-6 && Number.isSafeInteger(Math.trunc(value)))
          expect(inexactReason(value.toFixed(20))).toBeNull();
      }),
    );
  });

  test('takes linear time on a run of 60,000 zeros', () => {
    const startedAt = performance.now();
    for (let n = 0; n < 20; n++) {
      inexactReason(`1${'0'.repeat(60_000)}1`);
      inexactReason(`0.${'0'.repeat(60_000)}1`);
      inexactReason(`1${'0'.repeat(60_000)}e-60000`);
    }
    // Quadratic time would take minutes.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });
});
