import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { hostIPv4 } from '@callplane/local-servers';
import { eventually } from '@callplane/testing';
import { startReceiver, startSender } from './node.testkit.js';
import { entrypoint, newFolder, startProduction } from './production.testkit.js';

test('Janus runs with the unchanged production configuration, and media flows through it', async () => {
  const { child, ended, output, node, run, isHealthy } = await startProduction();
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
  const before = output();
  expect(await isHealthy()).toBe(true);
  expect(output()).toBe(before);
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
