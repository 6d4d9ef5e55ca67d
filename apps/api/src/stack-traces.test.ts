import { expect, test } from '@jest/globals';
import { freePort } from '@callplane/local-servers';
import { spawnApp } from '@callplane/testing';

test('a stack trace in the log of the built API names lines of the TypeScript sources', async () => {
  const nobody = await freePort();
  const api = await spawnApp({
    name: 'api',
    env: {
      DATABASE_URL: `postgresql://user:secret@127.0.0.1:${nobody}/callplane`,
      REDIS_URL: `redis://127.0.0.1:${nobody}`,
    },
    untilReady: false,
  });
  const line = await api.waitForLog(({ message }) => message === 'signing keys not loaded');
  expect(line['error']).toHaveProperty('stack', expect.stringMatching(/\/apps\/api\/src\/main\.ts:\d+:\d+/));
});
