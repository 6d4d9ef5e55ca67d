import { expect, test } from '@jest/globals';
import { Repeating } from './repeating.js';

test('Repeating reports a failure and continues, and close waits for the current run', async () => {
  let runs = 0;
  let finish: () => void = () => undefined;
  let begin: () => void = () => undefined;
  const third = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const errors: unknown[] = [];
  const work = async () => {
    runs += 1;
    if (runs < 3) throw new Error('not this time');
    await new Promise<void>((resolve) => {
      finish = resolve;
      begin();
    });
  };
  const repeating = new Repeating(1, work, (error) => errors.push(error));
  await third;
  let closed = false;
  const closing = repeating.close().then(() => {
    closed = true;
  });
  await new Promise(setImmediate);
  expect(closed).toBe(false);
  finish();
  await closing;
  expect(runs).toBe(3);
  expect(errors).toHaveLength(2);
  await repeating.close();
});
