import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { boundDetails, boundMessage, cutText, ERROR_BODY_BYTES_MAX, ERROR_TABLE, PublicError } from './errors.js';

const documentation = readFileSync(resolve(import.meta.dirname, '../../../../docs/errors.md'), 'utf8');
/** Matches rows such as `| 404 | `ROOM_NOT_FOUND` | when | remedy |`. */
const documented = [...documentation.matchAll(/^\| (\d{3}) +\| `([A-Z_]+)` +\|/gm)].map(([, status, code]) => [
  code,
  Number(status),
]);

describe('the table of public errors', () => {
  test('is documented in docs/errors.md: every code once, with its status, and no other', () => {
    const table = Object.entries(ERROR_TABLE).map(([code, { status }]) => [code, status]);
    expect(documented.sort()).toEqual(table.sort());
  });

  test('gives an error without its own message the default message', () => {
    const error = new PublicError('ROOM_NOT_FOUND');
    expect(error.status).toBe(404);
    expect(error.message).toBe(ERROR_TABLE.ROOM_NOT_FOUND.message);
    expect(error.details).toBeUndefined();
  });

  test('says the first failure of an invalid request, and how many others there are', () => {
    const name = { path: 'body.name', message: 'is required' };
    const messageOf = (details: { path: string; message: string }[]) =>
      new PublicError('VALIDATION_FAILED', { details }).message;
    expect(messageOf([name])).toBe('body.name is required');
    expect(messageOf([name, name, name])).toBe('body.name is required (and 2 more, see details)');
    expect(new PublicError('REPLAY_COUNT_MISMATCH', { details: [name] }).message).toContain('See details.');
  });
});

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
