import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { childrenOf } from '@callplane/local-servers';
import { eventually, repositoryRoot, stopAtEnd, temporaryDirectory } from '@callplane/testing';
import { localStarts } from './start.testkit.js';

const local = localStarts();
const { start, devFile } = local;

test('npm start reports a taken port in one clear line and starts nothing', async () => {
  const port = local.signalingPort();
  const server = createServer();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  try {
    const untouched = join(local.dataDir(), '..', 'untouched');
    const begun = start({ DATA_DIR: untouched });
    expect(await begun.ended).toBe(1);
    // A look at the build may come first, which is announced if it takes a second.
    expect(begun.output().trim().split('\n').at(-1)).toBe(
      `Error: Port ${port} is taken by another program. Stop it, or choose another port: SIGNALING_PORT=${port + 1} npm start`,
    );
    expect(existsSync(join(untouched, 'postgres'))).toBe(false);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});

test('in a bare clone, npm start names the command that installs a missing program before it installs or builds anything', () => {
  const clone = join(temporaryDirectory('clone'), 'clone');
  const empty = join(clone, '..', 'no-programs');
  mkdirSync(empty);
  cpSync(join(repositoryRoot, 'scripts'), join(clone, 'scripts'), { recursive: true });
  cpSync(join(repositoryRoot, 'package.json'), join(clone, 'package.json'));
  // Without apt-get on its PATH, the start cannot install programs, whichever user runs the tests.
  const begun = spawnSync(process.execPath, ['scripts/dev.mjs', 'start'], {
    cwd: clone,
    env: { PATH: empty },
    encoding: 'utf8',
  });
  expect(begun.stderr).toMatch(
    /^\nError: Redis is not installed\. Run "(?:sudo )?apt-get install --no-install-recommends redis-server coturn ffmpeg"/,
  );
  expect(begun).toMatchObject({ status: 1, stdout: '' });
  expect(readdirSync(clone).sort()).toEqual(['package.json', 'scripts']);
});

test('a setting that an app rejects ends npm start with the app’s own error message', async () => {
  const begun = start({ LOG_LEVEL: 'loudest' });
  expect(await begun.ended).toBe(1);
  expect(begun.output()).toMatch(/Error: (api|cleanup-worker) ended before it was ready \(exit code 1\)[^]*LOG_LEVEL/);
  await eventually(() => childrenOf(begun.child.pid!).length === 0);
  expect(existsSync(devFile())).toBe(false);
});

test('a server that takes the port of the API during the start gets no key, and ends the start', async () => {
  const first = start();
  const { secretKey } = await local.ready(first);
  first.child.kill('SIGTERM');
  expect(await first.ended).toBe(0);

  const heard: string[] = [];
  const foreign = createServer((request, response) => {
    heard.push(`${request.url} ${request.headers.authorization ?? ''}`);
    response.end('{"status":"ok"}');
  });
  stopAtEnd(() => new Promise((resolve) => foreign.close(resolve)));
  const second = start();
  // The port was free when the start looked.
  await eventually(() => existsSync(join(local.dataDir(), 'postgres', 'postmaster.pid')));
  await once(foreign.listen(local.port(), '127.0.0.1'), 'listening');
  expect(await second.ended).toBe(1);
  expect(second.output()).toContain('EADDRINUSE');
  expect(heard.join('\n')).not.toContain(secretKey);
});
