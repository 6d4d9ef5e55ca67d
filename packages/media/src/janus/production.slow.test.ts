import { expect, test } from '@jest/globals';
import { freezeVideoRoom } from '@callplane/testing';
import { SECRETS, startProduction } from './production.testkit.js';

test('a Janus whose VideoRoom is frozen fails its health check, and its supervisor kills it', async () => {
  const { ended, output, node, isHealthy } = await startProduction();
  await freezeVideoRoom(await node.openSession(), SECRETS.MEDIA_ADMIN_KEY);
  expect(await isHealthy()).toBe(false);
  // Janus ignores SIGTERM. The container or the unit starts the script again.
  expect(await ended).toEqual([137, null]);
  expect(output()).toContain('Janus does not answer, and is stopped.');
});
