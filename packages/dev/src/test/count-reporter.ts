import { writeFileSync } from 'node:fs';

/** The tests of one file. A file that could not run counts as one failed test. */
export interface FileCounts {
  /** Absolute. */
  path: string;
  passed: number;
  failed: number;
}

interface FileResult {
  testFilePath: string;
  numPassingTests: number;
  numFailingTests: number;
  testExecError?: unknown;
}

/** Writes the counts of each file to the file that main.ts reads. */
export default class CountReporter {
  onRunComplete(_contexts: unknown, results: { testResults: FileResult[] }): void {
    const file = process.env['CALLPLANE_TEST_COUNTS'];
    if (file === undefined) return;
    const counts = results.testResults.map((result): FileCounts => ({
      path: result.testFilePath,
      passed: result.numPassingTests,
      failed: result.numFailingTests + (result.testExecError === undefined ? 0 : 1),
    }));
    writeFileSync(file, JSON.stringify(counts));
  }
}
