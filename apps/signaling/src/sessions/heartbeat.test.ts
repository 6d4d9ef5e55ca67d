import { PassThrough } from 'node:stream';
import { expect, jest, test } from '@jest/globals';
import { INSTANCE_DEAD_MS } from '@callplane/core';
import { createLogger } from '@callplane/runtime';
import { Heartbeat } from './heartbeat.js';

const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());

test('reads the rooms again after a silence in which the instance may have been counted as dead, and tells when it ended', async () => {
  let nowMs = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  let away = false;
  let looks = 0;
  const heartbeat = new Heartbeat(
    () => (away ? Promise.reject(new Error('away')) : Promise.resolve()),
    () => Promise.resolve(void (looks += 1)),
    logger,
  );
  const after = async (ms: number) => {
    nowMs += ms;
    await heartbeat.beat();
    return looks;
  };
  expect(await after(2000)).toBe(0);
  away = true;
  expect(await after(2000)).toBe(0);
  away = false;
  expect(await after(2000)).toBe(0);
  expect(heartbeat.steadyMs).toBe(Infinity);
  away = true;
  await after(INSTANCE_DEAD_MS);
  expect(heartbeat.steadyMs).toBe(0);
  away = false;
  expect(await after(2000)).toBe(1);
  expect(heartbeat.steadyMs).toBe(0);
  expect(await after(2000)).toBe(1);
  expect(heartbeat.steadyMs).toBe(2000);
  clock.mockRestore();
});
