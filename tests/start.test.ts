import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { childrenOf, commandLineOf, freePort, isAlive } from '@callplane/local-servers';
import { eventually, repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { environmentOf, localStarts, READY_MS, SLOW_MS, type Dev } from './start.testkit.js';

const local = localStarts();
const { start, ready, readDev, devFile, pidOf, endStarts } = local;

const get = async (path: string, key: string) => {
  const response = await fetch(`http://127.0.0.1:${local.port()}${path}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return { status: response.status, body: await response.text() };
};
const createRoom = async (dev: Dev) => {
  const response = await fetch(`${dev.baseUrl}/rooms`, {
    method: 'POST',
    headers: { authorization: `Bearer ${dev.secretKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Kept' }),
  });
  return { status: response.status, room: (await response.json()) as { id: string; name: string } };
};

describe('npm start', () => {
  afterEach(endStarts);

  test(
    'starts everything, writes dev.json for scripts, restarts killed processes, and stops everything on SIGTERM',
    async () => {
      const begun = start();
      const dev = await ready(begun);
      expect(dev.baseUrl).toBe(`http://127.0.0.1:${local.port()}/v1`);
      expect(dev.processes.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['api', 'signaling', 'cleanup-worker', 'redis', 'postgres', 'coturn', 'janus']),
      );
      expect(dev.processes.every(({ pid }) => isAlive(pid))).toBe(true);
      for (const file of ['dev.json', 'secrets.json', 'development.json']) {
        expect(statSync(join(local.dataDir(), file)).mode & 0o777).toBe(0o600);
      }
      expect((await get('/v1/', dev.secretKey)).status).toBe(200);
      expect((await get('/v1/', dev.publishableKey)).status).toBe(200);
      // The output is no terminal: a log file would keep the secret key.
      expect(begun.output()).not.toContain(dev.secretKey);
      expect(begun.output()).toContain(`Secret key       in ${devFile()}`);
      const pasted = /^ +(export BASE=.*)$/m.exec(begun.output())![1]!;
      expect(spawnSync('sh', ['-c', `${pasted}; printf %s "$KEY"`], { encoding: 'utf8' }).stdout).toBe(dev.secretKey);
      expect(environmentOf(pidOf('api'))).toMatchObject({
        MEDIA_NODES: expect.stringMatching(/^local=ws:\/\/127\.0\.0\.1:\d+$/),
        MEDIA_API_SECRET: expect.any(String),
        MEDIA_ADMIN_KEY: expect.any(String),
      });

      for (const name of ['api', 'signaling', 'cleanup-worker', 'redis', 'postgres', 'coturn', 'janus']) {
        const before = pidOf(name);
        process.kill(before, 'SIGKILL');
        await eventually(() => pidOf(name) !== before && begun.output().includes(`${name} restarted`), {
          timeoutMs: READY_MS,
        });
        expect(begun.output()).toContain(`${name} was ended by SIGKILL; restarts in 0.5 s`);
        expect(isAlive(pidOf(name))).toBe(true);
        expect(statSync(devFile()).mode & 0o777).toBe(0o600);
      }
      await eventually(async () => (await createRoom(dev)).status === 201, { timeoutMs: READY_MS });

      const { processes } = readDev();
      begun.child.kill('SIGTERM');
      expect(await begun.ended).toBe(0);
      expect(processes.filter(({ pid }) => isAlive(pid))).toEqual([]);
      expect(existsSync(devFile())).toBe(false);
    },
    SLOW_MS,
  );

  test(
    'refuses a second start on the same data; killed with SIGKILL, it leaves no process and no dev.json behind; the next start finds the stored data without installing or building',
    async () => {
      const first = start();
      const dev = await ready(first);
      const { room } = await createRoom(dev);

      const second = start({ PORT: String(await freePort()) });
      expect(await second.ended).toBe(1);
      expect(second.output()).toContain(`Another start (process ${first.child.pid!}) uses ${local.dataDir()}`);
      expect(readDev()).toEqual(dev);

      first.child.kill('SIGKILL');
      await first.ended;
      await eventually(() => !existsSync(devFile()) && !dev.processes.some(({ pid }) => isAlive(pid)));
      const third = start();
      const again = await ready(third);
      expect(third.output()).not.toMatch(/Installing|Building|Making/);
      // Alone on two cores it takes about 2 s. The bound excludes an installation or a build.
      expect(Number(/ready in ([\d.]+) s/.exec(third.output())?.[1])).toBeLessThan(60);
      expect({ ...again, processes: [] }).toEqual({ ...dev, processes: [] });
      const read = await get(`/v1/rooms/${room.id}`, again.secretKey);
      expect(read.status).toBe(200);
      expect(read.body).toContain('Kept');

      // Killed together with its watchdog, nothing stops the servers and apps before the next start.
      const watchdog = childrenOf(third.child.pid!).find((pid) => commandLineOf(pid).includes('callplane-watchdog'))!;
      process.kill(watchdog, 'SIGKILL');
      third.child.kill('SIGKILL');
      await third.ended;
      expect(again.processes.every(({ pid }) => isAlive(pid))).toBe(true);
      const fourth = start();
      await ready(fourth);
      expect(again.processes.filter(({ pid }) => isAlive(pid))).toEqual([]);
      expect(fourth.output()).toContain('left running by an earlier start');

      fourth.child.kill('SIGINT');
      expect(await fourth.ended).toBe(0);
    },
    SLOW_MS,
  );

  test('reports a taken port in one clear line and starts nothing', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(local.port(), '127.0.0.1', resolve));
    try {
      const untouched = join(local.dataDir(), '..', 'untouched');
      const begun = start({ DATA_DIR: untouched });
      expect(await begun.ended).toBe(1);
      expect(begun.output().trim()).toBe(
        `Error: Port ${local.port()} is taken by another program. Stop it, or choose another port: PORT=${local.port() + 1} npm start`,
      );
      expect(existsSync(join(untouched, 'postgres'))).toBe(false);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test('in a bare clone, names the command that installs a missing program before it installs or builds anything', () => {
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
      /^\nError: Redis is not installed\. Run "(?:sudo )?apt-get install --no-install-recommends redis-server coturn janus"/,
    );
    expect(begun).toMatchObject({ status: 1, stdout: '' });
    expect(readdirSync(clone).sort()).toEqual(['package.json', 'scripts']);
  });

  test.each(['0', '70000', 'http', '80.5'])('refuses PORT=%s', async (value) => {
    const begun = start({ PORT: value });
    expect(await begun.ended).toBe(1);
    expect(begun.output()).toContain(`PORT must be a number from 1 to 65535, not "${value}"`);
  });

  test('reports a taken SIGNALING_PORT in the same way', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(local.signalingPort(), '127.0.0.1', resolve));
    try {
      const begun = start();
      expect(await begun.ended).toBe(1);
      expect(begun.output()).toContain(`Port ${local.signalingPort()} is taken by another program.`);
      expect(begun.output()).toContain(`SIGNALING_PORT=${local.signalingPort() + 1} npm start`);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test(
    'a setting that an app rejects ends the start with the app’s own error message',
    async () => {
      const begun = start({ LOG_LEVEL: 'loudest' });
      expect(await begun.ended).toBe(1);
      expect(begun.output()).toMatch(
        /Error: (api|cleanup-worker) ended before it was ready \(exit code 1\)[^]*LOG_LEVEL/,
      );
      await eventually(() => childrenOf(begun.child.pid!).length === 0);
      expect(existsSync(devFile())).toBe(false);
    },
    SLOW_MS,
  );
});
