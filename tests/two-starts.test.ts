import { expect, test } from '@jest/globals';
import { localStarts } from './start.testkit.js';

const [one, other] = [localStarts(), localStarts()];

test('two starts at the same time choose different ports, and both run', async () => {
  const devs = await Promise.all([one, other].map((local) => local.ready(local.start({ SIGNALING_PORT: '' }))));
  const urls = devs.flatMap(({ baseUrl, signalingUrl, demoUrl, metricsUrls, databaseUrl, redisUrl }) =>
    [baseUrl, signalingUrl, demoUrl, databaseUrl, redisUrl, ...Object.values(metricsUrls)].map(
      (url) => new URL(url).port,
    ),
  );
  expect(new Set(urls).size).toBe(urls.length);
});
