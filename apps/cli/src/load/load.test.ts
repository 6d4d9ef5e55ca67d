import { createServer } from 'node:http';
import { formatApiKey } from '@callplane/core';
import { listenUntilEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { runCommand } from '../cli.testkit.js';

/** tests/load.full.test.ts loads a deployment. */

const CALLPLANE_API_KEY = formatApiKey('secret', Buffer.alloc(32, 1));
const load = (environment: Record<string, string>, ...options: string[]) =>
  runCommand(environment, ['load', ...options]);

test.each([
  [[], {}, /CALLPLANE_API_KEY/],
  [[], { CALLPLANE_API_KEY: formatApiKey('publishable', Buffer.alloc(32, 1)) }, /secret API key/],
  [['--publishers', '0'], { CALLPLANE_API_KEY }, /at least one publisher/],
  [['--publishers', '21'], { CALLPLANE_API_KEY }, /from 0 to 20/],
  [['--viewers', '1001'], { CALLPLANE_API_KEY }, /from 1 to 1000/],
  [['--minutes', '121'], { CALLPLANE_API_KEY }, /at most 120/],
  [['--minutes', '0'], { CALLPLANE_API_KEY }, /above 0/],
  [['--metrics', 'file:///etc/passwd'], { CALLPLANE_API_KEY }, /URLs/],
  [['--metrics', Array(17).fill('http://a/metrics').join()], { CALLPLANE_API_KEY }, /at most 16/],
])('refuses %j before it asks the service', async (options, environment, reason) => {
  const outcome = await load(environment, ...options);
  expect(outcome).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(reason) });
});

test('names the scope that its key lacks', async () => {
  const error = { code: 'FORBIDDEN', message: 'The API key lacks the scope rooms:create.' };
  const { origin } = await listenUntilEnd(
    createServer((_, response) => response.writeHead(403).end(JSON.stringify({ error }))),
  );
  expect(await load({ CALLPLANE_API_KEY }, '--url', origin)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('rooms:create'),
  });
});
