import { expect, test } from '@jest/globals';
import { measured } from '../faults/faults.testkit.js';
import { promote, startStage, survive } from './failover.testkit.js';

/**
 * The short case of the matrix in failover.full.test.ts: both are killed at the same moment.
 */
test('a PostgreSQL and a Redis that are killed at once lose nothing, and no app is restarted', async () => {
  const stage = await startStage();
  const outcome = await survive(stage, 1, async () => {
    stage.primary.kill('SIGKILL');
    stage.redis.kill('SIGKILL');
    await promote(stage.standby);
    await stage.redis.start();
  });
  const { recoveredMs, ...counts } = outcome;
  measured({ ...recoveredMs, ...counts });
  expect(counts.rooms).toBeGreaterThan(0);
});
