import { expect, test } from '@jest/globals';
import { startTestJanus } from '@callplane/testing';
import { nodeOn, UP_WITHIN_MS } from './node.testkit.js';
import { isOutdated } from './version.js';

test('versions before the oldest permitted one are outdated', () => {
  const outdated = ['0', '0.15.0', '1.1.2', '1.3.9', '1.3.10', '1.4', '1.4.0'];
  const permitted = ['1.4.1', '1.4.2', '1.4.10', '1.10.0', '2.0.0'];
  expect([...outdated, ...permitted].filter(isOutdated)).toEqual(outdated);
});

test('a node knows the version of its Janus', async () => {
  const node = nodeOn(await startTestJanus());
  expect([node.version, node.isOutdated]).toEqual([null, false]);
  await node.untilUp(UP_WITHIN_MS);
  expect(node.version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(node.isOutdated).toBe(isOutdated(node.version!));
});
