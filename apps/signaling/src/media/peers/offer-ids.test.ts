import { expect, test } from '@jest/globals';
import { nextOfferId } from './offer-ids.js';

test('offers of a session are numbered from 1, and those of a later connection have higher ids', () => {
  expect(nextOfferId(0, { connectionNumber: 1 })).toBe(1);
  expect(nextOfferId(1, { connectionNumber: 1 })).toBe(2);
  // The gateway before wrote offer 4, and may have sent 5.
  expect(nextOfferId(4, { connectionNumber: 2 })).toBe(1_000_001);
  expect(nextOfferId(1_000_001, { connectionNumber: 2 })).toBe(1_000_002);
});
