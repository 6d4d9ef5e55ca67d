import { createServer, type RequestListener } from 'node:http';
import { formatApiKey } from '@callplane/core';
import { freePort } from '@callplane/local-servers';
import { listenUntilEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { runCommand } from '../cli.testkit.js';

/** tests/line has the tests of lines; these need no network. */

const CALLPLANE_API_KEY = formatApiKey('secret', Buffer.alloc(32, 1));
const doctor = (environment: Record<string, string>, ...options: string[]) =>
  runCommand(environment, ['doctor', '--from-here', ...options]);

async function startService(handle: RequestListener): Promise<string> {
  return (await listenUntilEnd(createServer(handle))).origin;
}

test('needs an API key, and names the scope that it lacks', async () => {
  expect(await doctor({})).toMatchObject({ code: 2, stderr: expect.stringContaining('CALLPLANE_API_KEY') });
  const error = { code: 'FORBIDDEN', message: 'The API key lacks the scope tokens:create.' };
  const service = await startService((_, response) => response.writeHead(403).end(JSON.stringify({ error })));
  expect(await doctor({ CALLPLANE_API_KEY }, '--url', service)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('tokens:create'),
  });
});

test('says that the service is away', async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  expect(await doctor({ CALLPLANE_API_KEY }, '--url', url)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('ECONNREFUSED'),
  });
});

test('finds no way to a gateway and to a relay that are away', async () => {
  const port = await freePort();
  const turns = { urls: [`turns:127.0.0.1:${port}?transport=tcp`], username: 'u', credential: 'c' };
  const service = await startService((_, response) =>
    response.writeHead(201).end(JSON.stringify({ iceServers: [turns], expiresAt: '2030-01-01T00:00:00.000Z' })),
  );
  const signaling = `ws://127.0.0.1:${port}/v1/signaling`;
  const { code, stdout, stderr } = await doctor(
    { CALLPLANE_API_KEY, CALLPLANE_SIGNALING_URL: signaling },
    '--url',
    service,
  );
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'No call works from this machine.\n' });
  expect(stdout).toMatch(/^STATUS +CHECK +TOOK +FINDING\n/);
  expect(stdout).toMatch(new RegExp(`FAILURE +webSocket +\\d+ ms +No WebSocket reaches 127.0.0.1:${port}`));
  expect(stdout).toMatch(new RegExp(`FAILURE +turnTls +\\d+ ms +TURN over TLS is blocked. Open TCP port ${port} to`));
  expect(stdout).toMatch(/skipped +turnUdp +The servers offer no TURN over UDP/);
});
