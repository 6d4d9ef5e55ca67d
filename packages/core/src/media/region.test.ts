import { expect, test } from '@jest/globals';
import { REGION_PATTERN, sharedParts } from './region.js';

test.each([
  ['eu-west', 'eu-west', 2],
  ['eu-west', 'eu-north', 1],
  ['eu', 'eu-north-1', 1],
  ['eu-north-1', 'eu', 1],
  ['us-west', 'eu-west', 0],
  ['eu', 'europe', 0],
  ['eu', null, 0],
  [null, null, 0],
])('%s and %s share %i leading parts', (one, other, parts) => {
  expect([sharedParts(one, other), sharedParts(other, one)]).toEqual([parts, parts]);
});

test('a region has 1 to 32 lower-case letters, digits and inner hyphens', () => {
  const isRegion = (text: string) => new RegExp(REGION_PATTERN).test(text);
  expect(['e', 'eu-west-1', '1', 'x'.repeat(32)].filter((text) => !isRegion(text))).toEqual([]);
  expect(['', '-eu', 'eu-', 'EU', 'eu west', 'eü', 'eu\n', 'x'.repeat(33)].filter(isRegion)).toEqual([]);
});
