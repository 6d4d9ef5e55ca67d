import { describe, expect, test } from '@jest/globals';
import { parsePrefer } from './operations.js';

describe('Prefer', () => {
  test.each([
    [undefined, null, null],
    ['', null, null],
    ['return=minimal', null, null],
    ['respond-async', 0, 'respond-async'],
    ['wait=0', 0, 'wait=0'],
    ['wait=7', 7000, 'wait=7'],
    ['Wait = "7"; foo, respond-async', 7000, 'wait=7'],
    ['wait=3600', 10_000, 'wait=10'],
    ['wait=-1', null, null],
    ['wait=1.5', null, null],
    ['wait=soon, respond-async', 0, 'respond-async'],
  ])('of %j results in a wait of %j ms', (header, waitMs, applied) => {
    expect(parsePrefer(header)).toEqual({ waitMs, applied });
  });
});
