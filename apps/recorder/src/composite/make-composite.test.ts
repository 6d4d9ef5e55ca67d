import { expect, test } from '@jest/globals';
import { files, work } from '../operations/recorder.testkit.js';
import { beeps, call, probed } from './composite.testkit.js';

test('a composite without pictures has only sound', async () => {
  await call(null, await beeps(), null);
  expect(await work({ compositeFormat: 'webm' })).toBeNull();
  expect(await files()).toMatchObject([{ kind: 'composite', contentType: 'audio/webm', width: null }]);
  expect(await probed()).toMatch(/^stream,opus[^]*format,10\.0/);
});
