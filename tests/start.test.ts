import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
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
  /** Exit code, or the signal that ended it. */
  ended: Promise<number | string>;
}

// Supervised processes start and stop in seconds, on two cores that other test files use as well.
const SLOW_MS = 180_000;
const READY_MS = 60_000;
let dataDir: string;
let port: number;
let signalingPort: number;
let starts: Start[] = [];

beforeEach(async () => {
  dataDir = join(temporaryDirectory('start'), 'data');
  port = await freePort();
  signalingPort = await freePort();
  starts = [];
});
afterEach(async () => {
  for (const { child, ended } of starts) {
    child.kill('SIGTERM');
    // What a test has left frozen or half dead must not hold up the others; the watchdog takes its processes along.
    const patience = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await ended;
    clearTimeout(patience);
  }
  rmSync(join(dataDir, '..'), { recursive: true, force: true });
});

function start(env: Record<string, string> = {}, command = [process.execPath, 'scripts/start.mjs']): Start {
  const [file = '', ...args] = command;
  // Settings of whoever runs the tests must not reach the start that is under test.
  const inherited = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };
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

/** What a process was started with (Linux). */
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
  test(
    'starts everything, tells scripts in dev.json, restarts what is killed, and stops everything on SIGTERM',
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
      expect(begun.output()).toContain(dev.secretKey);
      expect(environmentOf(pidOf('api'))).toMatchObject({
        MEDIA_NODES: expect.stringMatching(/^local=ws:\/\/127\.0\.0\.1:\d+$/),
        MEDIA_API_SECRET: expect.any(String),
        MEDIA_ADMIN_KEY: expect.any(String),
      });

      for (const name of ['api', 'signaling', 'cleanup-worker', 'redis', 'postgres', 'coturn', 'janus']) {
        const before = pidOf(name);
        process.kill(before, 'SIGKILL');
        await eventually(() => pidOf(name) !== before && begun.output().includes(`${name} runs again`), {
          timeoutMs: READY_MS,
        });
        expect(begun.output()).toContain(`${name} was ended by SIGKILL; it starts again in 0.5 s`);
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
    'a second start on the same data is refused; the next one after a stop finds what was stored, without installing or building',
    async () => {
      const first = start();
      const dev = await ready(first);
      const { room } = await createRoom(dev);

      const second = start({ PORT: String(await freePort()) });
      expect(await second.ended).toBe(1);
      expect(second.output()).toContain(`Another start (process ${first.child.pid!}) runs on ${dataDir}`);
      expect(readDev()).toEqual(dev);

      first.child.kill('SIGINT');
      expect(await first.ended).toBe(0);
      const third = start();
      const again = await ready(third);
      expect(third.output()).not.toMatch(/Installing|Building|Making/);
      // Alone on two cores it takes about 2 s, and 5 s are promised; here other test files run beside it.
      expect(Number(/ready in ([\d.]+) s/.exec(third.output())?.[1])).toBeLessThan(15);
      expect({ ...again, processes: [] }).toEqual({ ...dev, processes: [] });
      const read = await get(`/v1/rooms/${room.id}`, again.secretKey);
      expect(read.status).toBe(200);
      expect(read.body).toContain('Kept');
    },
    SLOW_MS,
  );

  test(
    'killed with SIGKILL it leaves no process and no dev.json behind, and starts again at once',
    async () => {
      const first = start();
      const { processes } = await ready(first);
      first.child.kill('SIGKILL');
      await first.ended;
      await eventually(() => !existsSync(devFile()) && !processes.some(({ pid }) => isAlive(pid)), {
        timeoutMs: 20_000,
      });
      const dev = await ready(start());
      expect((await get('/v1/', dev.secretKey)).status).toBe(200);
    },
    SLOW_MS,
  );

  test(
    'started by npm, it stops when npm is killed',
    async () => {
      const npm = start({}, ['npm', 'start']);
      const { processes } = await ready(npm);
      npm.child.kill('SIGKILL');
      await eventually(() => !existsSync(devFile()) && !processes.some(({ pid }) => isAlive(pid)), {
        timeoutMs: 20_000,
      });
      await npm.ended;
    },
    SLOW_MS,
  );

  test(
    'when it and its watchdog were killed together, the next start stops what they left',
    async () => {
      const first = start();
      const { processes } = await ready(first);
      const watchdog = childrenOf(first.child.pid!).find((pid) => commandLineOf(pid).includes('callplane-watchdog'))!;
      process.kill(watchdog, 'SIGKILL');
      first.child.kill('SIGKILL');
      await first.ended;
      expect(processes.every(({ pid }) => isAlive(pid))).toBe(true);
      const second = start();
      await ready(second);
      expect(processes.filter(({ pid }) => isAlive(pid))).toEqual([]);
      expect(second.output()).toContain('left running by an earlier start');
    },
    SLOW_MS,
  );

  test('a taken port is one clear line, and nothing is started', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    try {
      const begun = start();
      expect(await begun.ended).toBe(1);
      expect(begun.output().trim()).toBe(
        `Error: Port ${port} is taken by another program. Stop it, or choose another port: PORT=${port + 1} npm start`,
      );
      expect(existsSync(join(dataDir, 'postgres'))).toBe(false);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test(
    'the link that it prints, with a free port, leads to a page whose visitors get tokens for a gateway in reach',
    async () => {
      const taken = createServer();
      // Whether this or somebody else listens on it: it is taken.
      await new Promise<void>((resolve) => taken.once('error', () => resolve()).listen(8082, '127.0.0.1', resolve));
      const begun = start({ SIGNALING_PORT: '' });
      const dev = await ready(begun);
      taken.close();
      expect(begun.output()).toMatch(`${dev.demoUrl}   (open it in two tabs)`);
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
    },
    SLOW_MS,
  );

  test.each(['0', '70000', 'http', '80.5'])('PORT=%s is refused', async (value) => {
    const begun = start({ PORT: value });
    expect(await begun.ended).toBe(1);
    expect(begun.output()).toContain(`PORT must be a number from 1 to 65535, not "${value}"`);
  });

  test('a taken SIGNALING_PORT is as clear', async () => {
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
    'a setting that an app refuses ends the start with the words of the app',
    async () => {
      const begun = start({ LOG_LEVEL: 'loudest' });
      expect(await begun.ended).toBe(1);
      expect(begun.output()).toMatch(
        /LOG_LEVEL[^]*Error: (api|cleanup-worker) ended before it was ready \(exit code 1\)/,
      );
      await eventually(() => childrenOf(begun.child.pid!).length === 0);
      expect(existsSync(devFile())).toBe(false);
    },
    SLOW_MS,
  );

  test(
    'uses the PostgreSQL, Redis and media servers that it is given, and makes new keys when the database is another one',
    async () => {
      const first = start();
      const dev = await ready(first);
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

      // Back on a database of its own, which does not know those keys.
      const third = start({ DATA_DIR: otherDir, ...otherPorts });
      await eventually(() => existsSync(join(otherDir, 'dev.json')), { timeoutMs: READY_MS });
      const moved = JSON.parse(readFileSync(join(otherDir, 'dev.json'), 'utf8')) as Dev;
      expect(moved.secretKey).not.toBe(other.secretKey);
      third.child.kill('SIGTERM');
      expect(await third.ended).toBe(0);
    },
    SLOW_MS,
  );
});

describe('npm run rtc', () => {
  test(
    'finds the servers of the local start, and its standard output is the command line’s alone',
    async () => {
      const dev = await ready(start());
      const rtc = (...args: string[]) =>
        spawnSync('npm', ['run', '--silent', 'rtc', '--', ...args], {
          cwd: repositoryRoot,
          encoding: 'utf8',
          env: { PATH: process.env['PATH'], HOME: process.env['HOME'], DATA_DIR: dataDir },
        });
      const made = rtc('keys', 'create', '--env', dev.environmentId, '--type', 'secret', '--json');
      expect(made.status).toBe(0);
      const { key } = JSON.parse(made.stdout) as { key: string };
      expect((await get('/v1/', key)).status).toBe(200);
      expect(rtc('keys', 'create', '--env', dev.environmentId, '--type', 'golden').status).toBe(2);
    },
    SLOW_MS,
  );
});
