import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { repositoryRoot } from './repository-root.js';
import { usageTable } from './usage-reporter.js';

test('the report shows the processor time of all files together, and of the shared PostgreSQL, and the ten files with the most processor time', () => {
  const files = Array.from({ length: 12 }, (_, n) => ({
    path: join(repositoryRoot, `tests/file-${n}.test.ts`),
    importMs: 100,
    testsMs: 1000 * n,
    childrenMs: 500,
  }));
  const lines = usageTable(files, 7000).slice(2);
  expect(lines[0]).toBe('                     73.2      1.2    66.0      6.0  all 12 files');
  expect(lines[1]).toBe('                      7.0      0.0     0.0      7.0  the shared PostgreSQL');
  expect(lines.slice(2).map((line) => line.trim().split(/\s+/))).toEqual(
    [11, 10, 9, 8, 7, 6, 5, 4, 3, 2].map((n) => [`${n}.6`, '0.1', `${n}.0`, '0.5', `tests/file-${n}.test.ts`]),
  );
});
