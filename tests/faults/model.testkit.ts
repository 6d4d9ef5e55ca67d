import type { TestApp } from '@callplane/testing';
import { compareLogs, type Comparison } from '../../packages/dev/src/model/compare-logs.js';

/** Apps log their transitions with this setting. */
export const WITH_TRANSITIONS = { LOG_LEVEL: 'debug' };

/**
 * Compares what the apps of a test file did with the specifications.
 * @param apps all of the file, also those that have stopped.
 * @returns the number of traces that were compared, and the lines that the specifications do not allow.
 */
export function compareWithModel(apps: readonly TestApp[]): Comparison {
  const killed = apps.filter(({ logs }) => !logs.some(({ message }) => message === 'process stopped')).length;
  return compareLogs(
    apps.flatMap(({ logs }) => logs),
    killed,
  );
}
