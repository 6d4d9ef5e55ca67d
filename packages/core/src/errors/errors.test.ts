import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ERROR_TABLE, PublicError } from './errors.js';

const documentation = readFileSync(resolve(import.meta.dirname, '../../../../docs/errors.md'), 'utf8');
/** Matches rows such as `| 404 | `ROOM_NOT_FOUND` | when | what to do |`. */
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
