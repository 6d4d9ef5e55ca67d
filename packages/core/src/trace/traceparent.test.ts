import { describe, expect, test } from '@jest/globals';
import { nextTraceparent, parseTraceparent, traceIdOf } from './traceparent.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const GOOD = `00-${TRACE}-b7ad6b7169203331-01`;

describe('traceparent', () => {
  test('is accepted when well formed, also in a later version', () => {
    expect(parseTraceparent(GOOD)).toBe(GOOD);
    expect(parseTraceparent(` ${GOOD} `)).toBe(GOOD);
    expect(parseTraceparent(`cc-${TRACE}-b7ad6b7169203331-01-what-the-future-holds`)).toBe(GOOD);
  });

  test.each([
    [undefined],
    [''],
    ['nonsense'],
    [`ff-${TRACE}-b7ad6b7169203331-01`],
    [`00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
    [`00-${TRACE}-${'0'.repeat(16)}-01`],
    [`00-${TRACE.toUpperCase()}-b7ad6b7169203331-01`],
    [`${GOOD}-more`],
    [GOOD.slice(0, -1)],
    [`cc-${TRACE}-b7ad6b7169203331-01-${'x'.repeat(600)}`],
    [[GOOD, GOOD]],
  ])('is ignored when malformed: %s', (header) => {
    expect(parseTraceparent(header)).toBeNull();
  });

  test('is forwarded with the same trace and flags and a new parent', () => {
    expect(traceIdOf(GOOD)).toBe(TRACE);
    expect(nextTraceparent(GOOD, '00f067aa0ba902b7')).toBe(`00-${TRACE}-00f067aa0ba902b7-01`);
  });
});
