/** The isolation goals in real time: one worker, the contract's deadline, and 1, 10 and 100 hostile environments. */
import { expect, test } from '@jest/globals';
import {
  fiftyHanging,
  measureTenant,
  oneSlow,
  quantile,
  startIsolationStage,
  startReceiver,
  startTarPit,
} from './webhooks-isolation.testkit.js';

const LOADS = [
  ['50 hanging endpoints', true, false],
  ['one slow endpoint', false, true],
  ['50 hanging endpoints and a slow one', true, true],
] as const;

test.each([1, 10, 100].flatMap((environments) => LOADS.map((load) => [environments, ...load] as const)))(
  'beside %i environments with %s each, another tenant is served in time',
  async (environments, load, hasHanging, hasSlow) => {
    const stage = await startIsolationStage();
    const tarPit = await startTarPit();
    const slow = await startReceiver(1800);
    for (let n = 0; n < environments; n += 1) {
      const tenant = await stage.newTenant();
      if (hasHanging) await fiftyHanging(stage, tenant, tarPit);
      if (hasSlow) await oneSlow(stage, tenant, slow);
    }
    const { proven, retries, fresh } = await measureTenant(stage, await stage.newTenant(), 45_000);
    await stage.worker.stop();
    const p95 = (values: number[]) => Math.round(quantile(values, 0.95));
    process.stdout.write(
      `${environments} x ${load}: proven p95 ${p95(proven)} ms of ${proven.length}, retries ${Math.round(quantile(retries, 1))} ms ` +
        `at most of ${retries.length}, new ${Math.round(quantile(fresh, 1))} ms at most of ${fresh.length}\n`,
    );
    expect(quantile(proven, 0.95)).toBeLessThan(2000);
    // The due time has up to a second of jitter.
    expect(quantile(retries, 1)).toBeLessThan(11_000);
    expect(quantile(fresh, 1)).toBeLessThan(15_000);
  },
  400_000,
);
