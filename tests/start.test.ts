import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { connect } from '@callplane/client-js';
import { childrenOf, commandLineOf, freePort, isAlive } from '@callplane/local-servers';
import { eventually, repositoryRoot, superviseProcess, temporaryDirectory } from '@callplane/testing';

interface Dev {
  baseUrl: string;
  projectId: string;
  environmentId: string;
  secretKey: string;
  publishableKey: string;
  databaseUrl: string;
  redisUrl: string;
  signalingUrl: string;
  demoUrl: string;
  processes: { name: string; pid: number }[];
}

interface Start {
  child: ChildProcess;
  output: () => string;
  /** Exit code, or the signal that ended the process. */
  ended: Promise<number | string>;
}

// Supervised processes start and stop within seconds, but on two cores that other test files use as well.
const SLOW_MS = 300_000;
const READY_MS = 120_000;
let dataDir: string;
let port: number;
let signalingPort: number;
let starts: Start[] = [];

// The tests share one data directory: only the first start has to create the database.
beforeAll(async () => {
  dataDir = join(temporaryDirectory('start'), 'data');
  await choosePorts();
});
afterAll(async () => {
  await endStarts();
  rmSync(join(dataDir, '..'), { recursive: true, force: true });
});

async function choosePorts(): Promise<void> {
  port = await freePort();
  signalingPort = await freePort();
}

async function endStarts(): Promise<void> {
  for (const { child, ended } of starts) {
    child.kill('SIGTERM');
    // A process that a test left frozen must not delay the other tests; the watchdog stops the processes of a killed
    // start.
    const patience = setTimeout(() => child.kill('SIGKILL'), 60_000);
    await ended;
    clearTimeout(patience);
  }
  starts = [];
}

function start(env: Record<string, string> = {}, command = [process.execPath, 'scripts/dev.mjs', 'start']): Start {
  const [file = '', ...args] = command;
  // Settings of the user who runs the tests must not reach the start under test.
  const inherited = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
  };
  const child = spawn(file, args, {
    cwd: repositoryRoot,
    env: { ...inherited, DATA_DIR: dataDir, PORT: String(port), SIGNALING_PORT: String(signalingPort), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  superviseProcess(child.pid!, () => {
    child.kill('SIGTERM');
    return ended;
  });
  const begun = { child, output: () => text, ended };
  starts.push(begun);
  return begun;
}

const devFile = () => join(dataDir, 'dev.json');
const readDev = () => JSON.parse(readFileSync(devFile(), 'utf8')) as Dev;
const pidOf = (name: string) => readDev().processes.find((entry) => entry.name === name)!.pid;

/** The environment that a process was started with (Linux). */
const environmentOf = (pid: number) =>
  Object.fromEntries(
    readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  );

async function ready(begun: Start): Promise<Dev> {
  await eventually(
    () => {
      if (begun.child.exitCode !== null) throw new Error(`the start ended:\n${begun.output()}`);
      return existsSync(devFile()) && begun.output().includes('Callplane runs');
    },
    { timeoutMs: READY_MS },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${begun.output()}`);
  });
  return readDev();
}

const get = async (path: string, key: string) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}` } });
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
      expect(dev.baseUrl).toBe(`http://127.0.0.1:${port}/v1`);
      expect(dev.processes.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['api', 'signaling', 'cleanup-worker', 'redis', 'postgres', 'coturn', 'janus']),
      );
      expect(dev.processes.every(({ pid }) => isAlive(pid))).toBe(true);
      for (const file of ['dev.json', 'secrets.json', 'development.json']) {
        expect(statSync(join(dataDir, file)).mode & 0o777).toBe(0o600);
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
      expect(second.output()).toContain(`Another start (process ${first.child.pid!}) uses ${dataDir}`);
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
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    try {
      const untouched = join(dataDir, '..', 'untouched');
      const begun = start({ DATA_DIR: untouched });
      expect(await begun.ended).toBe(1);
      expect(begun.output().trim()).toBe(
        `Error: Port ${port} is taken by another program. Stop it, or choose another port: PORT=${port + 1} npm start`,
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
    await new Promise<void>((resolve) => server.listen(signalingPort, '127.0.0.1', resolve));
    try {
      const begun = start();
      expect(await begun.ended).toBe(1);
      expect(begun.output()).toContain(`Port ${signalingPort} is taken by another program.`);
      expect(begun.output()).toContain(`SIGNALING_PORT=${signalingPort + 1} npm start`);
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

describe('npm start by npm, without a free port 8082', () => {
  let npm: Start;
  let dev: Dev;
  beforeAll(async () => {
    await choosePorts();
    const taken = createServer();
    // The port is taken, whether by this server or by another program.
    await new Promise<void>((resolve) => taken.once('error', () => resolve()).listen(8082, '127.0.0.1', resolve));
    npm = start({ SIGNALING_PORT: '' }, ['npm', 'start']);
    dev = await ready(npm);
    taken.close();
  }, SLOW_MS);

  test('prints a link to a page whose visitors get tokens for a reachable gateway', async () => {
    expect(npm.output()).toMatch(`${dev.demoUrl}   (open it in two tabs)`);
    const { host } = new URL(dev.demoUrl);
    expect(Number(host.split(':')[1])).toBeGreaterThan(8082);
    expect(dev.demoUrl).toBe(`http://${host}/demo/`);
    expect(dev.signalingUrl).toBe(`ws://${host}/v1/signaling`);
    expect(await (await fetch(dev.demoUrl)).text()).toContain('Join a call');
    const joined = await fetch(`${dev.demoUrl}api/join`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ room: 'demo', name: 'Ada' }),
    });
    expect(joined.status).toBe(200);
    const { token, roomId } = (await joined.json()) as { token: string; roomId: string };
    const call = await connect({ url: dev.signalingUrl, token, platform: { WebSocket: WebSocket } });
    expect(call.room['id']).toBe(roomId);
    await call.leave();
  });

  test('lets rtc find its servers, and the standard output of rtc contains only the output of the command', async () => {
    const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], DATA_DIR: dataDir };
    const rtc = (...args: string[]) =>
      spawnSync('npm', ['run', '--silent', 'rtc', '--', ...args], { cwd: repositoryRoot, encoding: 'utf8', env });
    const direct = (more: Record<string, string>, ...args: string[]) =>
      spawnSync(join(repositoryRoot, 'rtc'), args, { cwd: tmpdir(), encoding: 'utf8', env: { ...env, ...more } });
    const elsewhere = { DATA_DIR: join(dataDir, 'not-started') };
    expect(direct(elsewhere, 'projects', 'list')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^The local start does not run: start it with "npm start".*\n$/),
    });
    expect(direct(elsewhere, '--help').status).toBe(0);
    expect(direct({}, 'projects', 'list', '--json')).toMatchObject({ status: 0, stderr: '' });
    const made = rtc('keys', 'create', '--env', dev.environmentId, '--type', 'secret', '--json');
    expect(made.status).toBe(0);
    const { key } = JSON.parse(made.stdout) as { key: string };
    expect((await get('/v1/', key)).status).toBe(200);
    expect(rtc('keys', 'create', '--env', dev.environmentId, '--type', 'golden').status).toBe(2);
  });

  test(
    'lends PostgreSQL and Redis to another start, which uses the given media servers and creates new keys for another database',
    async () => {
      const otherDir = join(dataDir, '..', 'other');
      const otherPorts = { PORT: String(await freePort()), SIGNALING_PORT: String(await freePort()) };
      const second = start({
        DATA_DIR: otherDir,
        ...otherPorts,
        DATABASE_URL: dev.databaseUrl,
        REDIS_URL: dev.redisUrl,
        MEDIA_NODES: 'theirs=ws://127.0.0.1:9',
        MEDIA_API_SECRET: 'their-api-secret',
        MEDIA_ADMIN_KEY: 'their-admin-key',
        ENCRYPTION_KEYS: (JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8')) as { encryptionKeys: string })
          .encryptionKeys,
      });
      await eventually(() => existsSync(join(otherDir, 'dev.json')), { timeoutMs: READY_MS });
      const other = JSON.parse(readFileSync(join(otherDir, 'dev.json'), 'utf8')) as Dev;
      expect(other).toMatchObject({ databaseUrl: dev.databaseUrl, redisUrl: dev.redisUrl });
      expect(other.processes.map(({ name }) => name)).not.toContain('postgres');
      expect(other.processes.map(({ name }) => name)).not.toContain('redis');
      expect(other.processes.map(({ name }) => name)).not.toContain('janus');
      const api = other.processes.find(({ name }) => name === 'api')!;
      expect(environmentOf(api.pid)['MEDIA_NODES']).toBe('theirs=ws://127.0.0.1:9');
      expect(other.environmentId).not.toBe(dev.environmentId);
      second.child.kill('SIGTERM');
      expect(await second.ended).toBe(0);

      // Starts again on its own database, which does not contain those keys.
      const third = start({ DATA_DIR: otherDir, ...otherPorts });
      await eventually(() => existsSync(join(otherDir, 'dev.json')), { timeoutMs: READY_MS });
      const moved = JSON.parse(readFileSync(join(otherDir, 'dev.json'), 'utf8')) as Dev;
      expect(moved.secretKey).not.toBe(other.secretKey);
      third.child.kill('SIGTERM');
      expect(await third.ended).toBe(0);
    },
    SLOW_MS,
  );

  test(
    'stops when npm is killed',
    async () => {
      const { processes } = readDev();
      npm.child.kill('SIGKILL');
      await eventually(() => !existsSync(devFile()) && !processes.some(({ pid }) => isAlive(pid)));
      await npm.ended;
    },
    SLOW_MS,
  );
});
