/** The two cases that once delayed a tenant's deliveries for minutes, in the time that CI allows. */
import { beforeAll, expect, test } from '@jest/globals';
import {
  fiftyHanging,
  measureTenant,
  oneSlow,
  quantile,
  startIsolationStage,
  startReceiver,
  startTarPit,
  type IsolationStage,
  type Tenant,
} from './webhooks-isolation.testkit.js';

let stage: IsolationStage;
beforeAll(async () => {
  // A fifth of the contract's deadline, so that several attempts hang within the test.
  stage = await startIsolationStage({ DELIVERY_DEADLINE_MS: '2000' });
});

test.each([
  ['50 endpoints that hang', async (tenant: Tenant) => fiftyHanging(stage, tenant, await startTarPit())],
  [
    'one slow endpoint with 400 deliveries',
    async (tenant: Tenant) => oneSlow(stage, tenant, await startReceiver(1800)),
  ],
])('%s of one tenant delay neither deliveries nor retries of another', async (_load, attack) => {
  await attack(await stage.newTenant());
  const { proven, retries, fresh } = await measureTenant(stage, await stage.newTenant(), 8000);
  // The hostile load alone needs minutes. A busy machine exceeds these bounds only if the scheduler is at fault.
  expect(quantile(proven, 0.5)).toBeLessThan(5000);
  expect(quantile(proven, 0.95)).toBeLessThan(15_000);
  expect(retries.length).toBeGreaterThan(0);
  expect(quantile(retries, 1)).toBeLessThan(20_000);
  expect(quantile(fresh, 1)).toBeLessThan(30_000);
});
