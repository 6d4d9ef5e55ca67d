import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { inexactReason } from './json-number.js';

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
