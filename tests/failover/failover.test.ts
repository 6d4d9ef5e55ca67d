import { expect, test } from '@jest/globals';
import { measured } from '../faults/faults.testkit.js';
import { promote, startStage, survive } from './failover.testkit.js';

/**
 * The short case of the matrix in failover.full.test.ts: both primaries are killed at the same moment.
 */
test('a PostgreSQL and a Redis that are killed at once lose nothing, and no app is restarted', async () => {
  const stage = await startStage();
  const master = await stage.redis.master();
  const outcome = await survive(stage, 1, async () => {
    stage.primary.kill('SIGKILL');
    master?.kill('SIGKILL');
    await promote(stage.standby);
  });
  expect(master).not.toBeNull();
  const { recoveredMs, ...counts } = outcome;
  measured({ ...recoveredMs, ...counts });
});
