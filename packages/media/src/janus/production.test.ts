import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { freePort, hostIPv4 } from '@callplane/local-servers';
import { eventually, repositoryRoot, stopAtEnd, temporaryDirectory } from '@callplane/testing';
import { nodeOn, startReceiver, startSender, UP_WITHIN_MS } from './node.testkit.js';

const folder = join(repositoryRoot, 'infra', 'janus');
const newFolder = () => {
  const dir = temporaryDirectory('janus-production');
  stopAtEnd(async () => rmSync(dir, { recursive: true, force: true }));
  return join(dir, 'run');
};

function entrypoint(env: Record<string, string>) {
  const child = spawn('sh', [join(folder, 'entrypoint.sh')], {
    env: { PATH: process.env['PATH'], JANUS_PATH: process.env['JANUS_PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const ended = once(child, 'exit') as Promise<[number | null, string | null]>;
  stopAtEnd(() => {
    child.kill('SIGTERM');
    return ended;
  });
  return { child, ended, output: () => output };
}

test('Janus runs with the unchanged production configuration, and media flows through it', async () => {
  const run = newFolder();
  const port = await freePort();
  const secrets = { MEDIA_API_SECRET: 'production-api-secret', MEDIA_ADMIN_KEY: 'production_admin_key' };
  const { child, ended, output } = entrypoint({
    ...secrets,
    JANUS_IP: hostIPv4(),
    JANUS_WS_PORT: String(port),
    JANUS_RTP_PORTS: '30000-30999',
    JANUS_RUN: run,
  });
  const node = nodeOn({
    url: `ws://127.0.0.1:${port}`,
    apiSecret: secrets.MEDIA_API_SECRET,
    adminKey: secrets.MEDIA_ADMIN_KEY,
  });
  await node.untilUp(UP_WITHIN_MS);
  expect(await node.listRooms()).toEqual([]);
  await node.ensureRoom('room');
  const ada = await startSender(node, 'room', 'ada-1');
  const bob = await startReceiver(node, 'room');
  await bob.change([{ feedId: 'ada-1', mid: '1' }]);
  await eventually(() => bob.peer.framesReceived('video') > 3);
  ada.peer.close();
  bob.peer.close();

  for (const name of readdirSync(join(run, 'etc'))) {
    expect(statSync(join(run, 'etc', name)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(run, 'etc', name), 'utf8')).not.toMatch(/@|nat_1_1_mapping|keep_private_host/);
  }
  expect(output()).not.toMatch(/production.(api|admin)/);
  const healthcheck = spawn('bash', [join(folder, 'healthcheck.sh')], { env: { JANUS_WS_PORT: String(port) } });
  expect(await once(healthcheck, 'exit')).toEqual([0, null]);
  await node.close();
  child.kill('SIGTERM');
  expect((await ended)[0]).toBe(0);
});

test('Janus does not start without a secret or with a secret that would break its files', async () => {
  const needed = { JANUS_IP: hostIPv4(), MEDIA_API_SECRET: 'a', JANUS_RUN: newFolder() };
  const without = entrypoint(needed);
  expect((await without.ended)[0]).not.toBe(0);
  expect(without.output()).toContain('MEDIA_ADMIN_KEY');
  const broken = entrypoint({ ...needed, MEDIA_ADMIN_KEY: 'a"; ws_ip = "0.0.0.0' });
  expect((await broken.ended)[0]).toBe(1);
  expect(broken.output()).toContain('letters, digits');
});
