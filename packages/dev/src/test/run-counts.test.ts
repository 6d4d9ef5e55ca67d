import { describe, expect, test } from '@jest/globals';
import { countRun, mergeRetry } from './run-counts.js';

const file = (path: string, passed: number, failed: number) => ({ path, passed, failed });

describe('the counts of a test run', () => {
  test('sum up the tests of all files', () => {
    const files = [file('/a', 3, 0), file('/b', 1, 2)];
    expect(countRun({ exitCode: 1, files })).toEqual({ passed: 4, failed: 2 });
  });

  test('have a failed test if Jest reports nothing or fails without a failed test', () => {
    expect(countRun({ exitCode: 0, files: undefined })).toEqual({ passed: 0, failed: 1 });
    expect(countRun({ exitCode: 1, files: [file('/a', 3, 0)] })).toEqual({ passed: 3, failed: 1 });
  });
});

describe('a retry of failed files', () => {
  const run = { exitCode: 1, files: [file('/a', 3, 0), file('/b', 1, 2), file('/c', 0, 1)] };

  test('replaces their counts and names the files that pass now', () => {
    const { merged, unstable } = mergeRetry(run, { exitCode: 1, files: [file('/b', 3, 0), file('/c', 0, 1)] });
    expect(unstable).toEqual(['/b']);
    expect(countRun(merged)).toEqual({ passed: 6, failed: 1 });
  });

  test('makes the run pass if all of them pass', () => {
    const { merged } = mergeRetry(run, { exitCode: 0, files: [file('/b', 3, 0), file('/c', 1, 0)] });
    expect(countRun(merged)).toEqual({ passed: 7, failed: 0 });
  });

  test('changes nothing if it reports nothing', () => {
    expect(countRun(mergeRetry(run, { exitCode: 1, files: undefined }).merged)).toEqual({ passed: 4, failed: 3 });
  });

  test('does not call a file stable or unstable if none of its tests ran', () => {
    const { unstable } = mergeRetry(run, { exitCode: 0, files: [file('/b', 0, 0)] });
    expect(unstable).toEqual([]);
  });
});
