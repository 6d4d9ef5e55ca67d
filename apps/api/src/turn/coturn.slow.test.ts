import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from '@jest/globals';
import { startTestCoturn, turnCredential, type TestServer } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

let coturn: TestServer & { host: string; secret: string };
let api: TestApi;
beforeAll(async () => {
  coturn = await startTestCoturn();
  const url = `turn:${coturn.host}:${coturn.port}`;
  api = await startTestApi({
    TURN_URLS: `${url}?transport=udp,${url}?transport=tcp`,
    TURN_SECRET: coturn.secret,
    TURN_TTL_SECONDS: '600',
  });
});

/** Allocates a relay with coturn's own client. Resolves to whether coturn granted it. */
async function allocates(username: string, credential: string, transport: 'udp' | 'tcp'): Promise<boolean> {
  const args = [
    '-y',
    '-c',
    '-n',
    '2',
    '-m',
    '1',
    ...(transport === 'tcp' ? ['-t'] : []),
    '-u',
    username,
    '-w',
    credential,
    '-p',
    String(coturn.port),
    coturn.host,
  ];
  try {
    await promisify(execFile)('turnutils_uclient', args, { timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
}

test('issues credentials that a real coturn accepts over UDP and TCP, unless altered or expired', async () => {
  const { body } = await api.call('POST', '/v1/turn/credentials', { body: {} });
  const { username, iceServers } = body;
  const { credential } = iceServers.find((server: { username?: string }) => server.username !== undefined);
  expect(await allocates(username, credential, 'udp')).toBe(true);
  expect(await allocates(username, credential, 'tcp')).toBe(true);
  expect(await allocates(`${username}x`, credential, 'udp')).toBe(false);
  expect(await allocates(username, `${credential[0] === 'A' ? 'B' : 'A'}${credential.slice(1)}`, 'udp')).toBe(false);
  const expired = turnCredential(coturn.secret, api.tenant.environmentId, -3000);
  expect(await allocates(expired.username, expired.credential, 'udp')).toBe(false);
});
