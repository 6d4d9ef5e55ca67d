import { expect, test } from '@jest/globals';
import { OutageWatch, WATCH_EVERY_MS } from './outage-watch.js';

function setUp() {
  const at = { nowMs: 0, isAway: false };
  const watch = new OutageWatch(
    () => (at.isAway ? Promise.reject(new Error('away')) : Promise.resolve()),
    () => at.nowMs,
  );
  /** Looks every two seconds. */
  const look = async (seconds: number): Promise<void> => {
    for (let passed = 0; passed < seconds; passed += WATCH_EVERY_MS / 1000) {
      at.nowMs += WATCH_EVERY_MS;
      await watch.look().catch(() => undefined);
    }
  };
  return { at, watch, look };
}

test('silence proves nothing before writes have got through for 16 s', async () => {
  const { watch, look } = setUp();
  expect(watch.isSettled).toBe(false);
  await look(16);
  expect(watch.isSettled).toBe(false);
  await look(2);
  expect(watch.isSettled).toBe(true);
});

test('a failed write makes silence prove nothing until writes have got through for 16 s again', async () => {
  const { at, watch, look } = setUp();
  await look(20);
  at.isAway = true;
  await look(2);
  at.isAway = false;
  expect(watch.isSettled).toBe(false);
  await look(16);
  expect(watch.isSettled).toBe(false);
  await look(2);
  expect(watch.isSettled).toBe(true);
});

test('a write that waits for more than 6 s is an outage from then on, and begins a new 16 s when it gets through', async () => {
  const { at, watch, look } = setUp();
  await look(20);
  at.nowMs += 6000;
  expect(watch.isSettled).toBe(true);
  at.nowMs += 1;
  expect(watch.isSettled).toBe(false);
  await look(2);
  expect(watch.isSettled).toBe(false);
  await look(16);
  expect(watch.isSettled).toBe(true);
});
