import { expect, test } from '@jest/globals';
import { Allowance, WAKE_UPS_PER_ENVIRONMENT } from './allowance.js';

function spend(allowance: Allowance, environmentId: string, count: number): number {
  return Array.from({ length: count }, () => allowance.take(environmentId)).filter(Boolean).length;
}

test('bounds the wake-ups of an environment while no worker takes them, without affecting other environments', () => {
  const allowance = new Allowance();
  expect(spend(allowance, 'env_a', 5000)).toBe(WAKE_UPS_PER_ENVIRONMENT);
  allowance.seeWaiting(WAKE_UPS_PER_ENVIRONMENT);
  expect(spend(allowance, 'env_a', 10)).toBe(0);
  expect(spend(allowance, 'env_b', 10)).toBe(10);
});

test('restores the full allowance of an environment once the workers keep up', () => {
  const allowance = new Allowance();
  spend(allowance, 'env_a', 5000);
  allowance.seeWaiting(0);
  expect(spend(allowance, 'env_a', 5000)).toBe(WAKE_UPS_PER_ENVIRONMENT);
});

test('allows no wake-up of any environment while 20,000 jobs wait', () => {
  const allowance = new Allowance();
  allowance.seeWaiting(20_000);
  expect(allowance.take('env_new')).toBe(false);
  allowance.seeWaiting(19_999);
  expect(allowance.take('env_new')).toBe(true);
});
