import type { FileCounts } from './count-reporter.js';

/** More failed files than this are not run again. */
export const RETRIED_FILES_MAX = 6;

export interface Counts {
  passed: number;
  failed: number;
}

/** What Jest reported. `files` is missing if it ended before it could report. */
export interface TestRun {
  exitCode: number;
  files: readonly FileCounts[] | undefined;
}

/** A run that reports nothing, or that fails without a failed test, counts as one failed test. */
export function countRun({ exitCode, files }: TestRun): Counts {
  const passed = (files ?? []).reduce((sum, file) => sum + file.passed, 0);
  const failed = (files ?? []).reduce((sum, file) => sum + file.failed, 0);
  return { passed, failed: failed === 0 && (exitCode !== 0 || files === undefined) ? 1 : failed };
}

/**
 * Replaces the counts of the files that ran again.
 *
 * @param retry a run of all failed files of `run`
 * @returns the merged run, and the paths of the files that failed first and passed then
 */
export function mergeRetry(run: TestRun, retry: TestRun): { merged: TestRun; unstable: string[] } {
  if (retry.files === undefined) return { merged: run, unstable: [] };
  const again = new Map(retry.files.map((file) => [file.path, file]));
  const files = (run.files ?? []).map((file) => again.get(file.path) ?? file);
  const unstable = retry.files.filter((file) => file.failed === 0 && file.passed > 0).map((file) => file.path);
  return { merged: { exitCode: retry.exitCode, files }, unstable };
}
