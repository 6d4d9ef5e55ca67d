import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { cutText, ERROR_BODY_BYTES_MAX, boundDetails, boundMessage } from './details.js';

describe('details of an error', () => {
  test('stay within the bounds of an error, whatever they contain', () => {
    const text = fc
      .tuple(fc.constantFrom('a', '\u0000', '\ud800', '😀', '"', '\u2028'), fc.nat({ max: 2000 }))
      .map(([unit, length]) => unit.repeat(length));
    fc.assert(
      fc.property(fc.array(fc.record({ path: text, message: text }), { maxLength: 40 }), text, (details, message) => {
        const bounded = boundDetails(details);
        expect(bounded.length).toBeLessThanOrEqual(20);
        for (const { path, message } of bounded) {
          expect(path.length).toBeLessThanOrEqual(200);
          expect(message.length).toBeLessThanOrEqual(400);
        }
        const body = {
          error: { code: 'X', message: boundMessage(message), requestId: 'r'.repeat(128), details: bounded },
        };
        expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThanOrEqual(ERROR_BODY_BYTES_MAX);
      }),
    );
  });

  test('are cut without splitting a surrogate pair', () => {
    expect(cutText('abc', 3)).toBe('abc');
    expect(cutText('abcd', 3)).toBe('ab…');
    expect(cutText('a😀bc', 3)).toBe('a…');
    expect(cutText('😀😀', 3)).toBe('😀…');
  });
});
