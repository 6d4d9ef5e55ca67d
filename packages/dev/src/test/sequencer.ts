import { statSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from '../bootstrap.js';

/**
 * The files that take longest, in the order in which they start: a file of two minutes that started last would run
 * alone at the end. Files that mostly wait alternate with files that need the processor.
 */
export const SLOWEST_FIRST = [
  'tests/start.test.ts',
  'tests/faults/redis.test.ts',
  'tests/fleet/fleet.test.ts',
  'tests/faults/live-rooms.test.ts',
  'tests/backup.test.ts',
  'tests/faults/postgres.test.ts',
  'tests/fleet/rolling-restart.test.ts',
  'packages/db/src/client/database.test.ts',
  'tests/browser/call.test.ts',
  'apps/cleanup-worker/src/main.test.ts',
  'tests/image.test.ts',
  'apps/signaling/src/faults.test.ts',
  'tests/browser/demo.test.ts',
  'tests/browser/sdk.test.ts',
  'tests/webhooks-isolation.test.ts',
  'tests/browser/losses.test.ts',
  'apps/webhook-worker/src/main.test.ts',
  'tests/fleet/drain-joins.test.ts',
  'tests/observability/prometheus.test.ts',
  'tests/faults/logging.test.ts',
  'apps/signaling/src/requests/hostile-input.test.ts',
  'packages/local-servers/src/local-servers.test.ts',
  'apps/signaling/src/media.test.ts',
  'apps/signaling/src/moderation.test.ts',
  'apps/signaling/src/crowded-rooms.test.ts',
  'tests/browser/paging.test.ts',
  'packages/testing/src/test-servers.test.ts',
  'apps/cli/src/rtc.test.ts',
  'apps/api/src/openapi/docs-page.test.ts',
];

/**
 * Starts the slowest test files first, then the others by size. Replaces Jest's own sequencer, which knows durations
 * only from earlier runs on the same machine.
 */
export default class SlowestFirst {
  sort(tests: readonly { path: string }[]): { path: string }[] {
    const placed = tests.map((test) => {
      const place = SLOWEST_FIRST.indexOf(relative(root, test.path));
      return { test, place: place === -1 ? SLOWEST_FIRST.length : place, bytes: statSync(test.path).size };
    });
    return placed.sort((a, b) => a.place - b.place || b.bytes - a.bytes).map(({ test }) => test);
  }

  /** For `--onlyFailures`: this sequencer does not know which tests failed. */
  allFailedTests(tests: { path: string }[]): { path: string }[] {
    return tests;
  }

  /** Jest would keep the durations of this run. */
  cacheResults(): void {
    return undefined;
  }
}
