import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseJsonBody } from './json-body.js';
import { codePointLength, trimUnicode, unstorableReason } from './text.js';

describe('text', () => {
  test('every Unicode white space is trimmed, at both ends and only there', () => {
    const white =
      '\u0009\u000a\u000b\u000c\u000d\u0020\u0085\u00a0\u1680\u2000\u2001\u2007\u200a\u2028\u2029\u202f\u205f\u3000';
    expect(trimUnicode(`${white}a${white}b${white}`)).toBe(`a${white}b`);
    expect(trimUnicode(white)).toBe('');
  });

  test('length counts code points', () => {
    expect(codePointLength('😀'.repeat(120))).toBe(120);
    expect(codePointLength('é')).toBe(1);
  });

  test('what PostgreSQL cannot hold is named', () => {
    expect(unstorableReason('a\u0000b')).toMatch(/U\+0000/);
    expect(unstorableReason('a\ud800b')).toMatch(/surrogate/);
    expect(unstorableReason('a😀b')).toBeNull();
  });
});

describe('JSON bodies', () => {
  const details = (text: string) => {
    const body = parseJsonBody(text);
    return body.ok ? body.details : 'malformed';
  };

  test('whatever a JavaScript client can send is accepted and unchanged', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5, noUnicodeString: true }), (text) => {
        const body = parseJsonBody(text);
        expect(body.ok && body.details.filter(({ message }) => message.includes('number'))).toEqual([]);
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
    ['{"a":1e-400}', 'body', /1e-400/],
    ['{"a":9007199254740993}', 'body', /9007199254740993/],
    ['{"a":12345678901234567890123}', 'body', /12345678901234567890123/],
    ['{"a":"\\u0000"}', 'body.a', /U\+0000/],
    ['{"a":["x","\\ud800"]}', 'body.a[1]', /surrogate/],
    ['{"a":{"\\u0000":1}}', 'body.a', /key.*U\+0000/],
  ])('%s is refused at %s', (text, path, message) => {
    expect(details(text)).toEqual([{ path, message: expect.stringMatching(message) }]);
  });

  test.each([
    '{"a":12345678901234567000}',
    '{"a":1e21}',
    '{"a":1000000000000000000000}',
    '{"a":0e-999}',
    '{"a":"1e-400"}',
    '{"a":3.14159265358979323846}',
  ])('%s is kept as it is', (text) => expect(details(text)).toEqual([]));

  test('32 levels are accepted and 33 are not, and 60,000 do not overflow the stack', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(details(nested(32))).toEqual([]);
    expect(details(nested(33))).toHaveLength(1);
    expect(details(nested(30_000))).toHaveLength(1);
  });

  test('broken JSON is malformed', () => {
    for (const text of ['', '{', '{"a":01}', "{'a':1}", 'undefined', '{"a":1}x'])
      expect(details(text)).toBe('malformed');
  });

  test('__proto__ is a key like any other', () => {
    const body = parseJsonBody('{"__proto__":{"x":1}}');
    expect(body.ok && Object.keys(body.value as object)).toEqual(['__proto__']);
  });
});
