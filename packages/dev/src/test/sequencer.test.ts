import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import SlowestFirst, { SLOWEST_FIRST } from './sequencer.js';

describe('the order of the test files', () => {
  test('begins with the slowest files, in their order, and continues by size', () => {
    const [slowest = '', second = ''] = SLOWEST_FIRST;
    const small = 'packages/core/src/ids/ids.test.ts';
    const large = 'packages/core/src/webhooks/destination.test.ts';
    const tests = [small, second, large, slowest].map((file) => ({ path: join(repositoryRoot, file) }));
    expect(new SlowestFirst().sort(tests).map(({ path }) => path)).toEqual(
      [slowest, second, large, small].map((file) => join(repositoryRoot, file)),
    );
  });

  test('names only existing files', () => {
    expect(SLOWEST_FIRST.filter((file) => !existsSync(join(repositoryRoot, file)))).toEqual([]);
  });
});
