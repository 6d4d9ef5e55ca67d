import { appendFileSync } from 'node:fs';
import { processorTimeOf, type ProcessorTime } from '@callplane/local-servers';

/** The processor time that a test file used, in milliseconds. */
export interface FileUsage {
  path: string;
  /** Until the first test: the file and everything that it imports. */
  importMs: number;
  /** From the first test on, in the test process itself. */
  testsMs: number;
  /** In processes that the file started and that have ended (servers, apps, browsers), and in those that its worker keeps. */
  childrenMs: number;
}

/**
 * Measures a test file in its Jest worker, from here to end(), and appends the result to the file that
 * CALLPLANE_TEST_USAGE names. Measures nothing without that variable, or on a system without /proc.
 * @param keptMs the processor time of the processes that the worker keeps, so far.
 */
export function measureFile(path: string, keptMs: () => number): { testsBegin: () => void; end: () => void } {
  const resultFile = process.env['CALLPLANE_TEST_USAGE'];
  const begin = processorTimeOf(process.pid);
  const keptBeginMs = keptMs();
  let imported: ProcessorTime | undefined;
  return {
    testsBegin: () => {
      imported ??= processorTimeOf(process.pid);
    },
    end: () => {
      const end = processorTimeOf(process.pid);
      if (resultFile === undefined || begin === undefined || end === undefined) return;
      const testsFrom = imported ?? end;
      const usage: FileUsage = {
        path,
        importMs: testsFrom.ownMs - begin.ownMs,
        testsMs: end.ownMs - testsFrom.ownMs,
        childrenMs: end.childrenMs - begin.childrenMs + keptMs() - keptBeginMs,
      };
      appendFileSync(resultFile, `${JSON.stringify(usage)}\n`);
    },
  };
}
