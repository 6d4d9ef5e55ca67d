import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import WebSocket from 'ws';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  commandLineOf,
  freePort,
  hostIPv4,
  isAlive,
  isPortFree,
  startJanus,
  startPostgres,
  startRedis,
  type LocalServer,
} from './index.js';

const isRoot = process.getuid?.() === 0;
let dir: string;
const running: LocalServer[] = [];
const keep = <S extends LocalServer>(server: S): S => {
  running.push(server);
  return server;
};
const childExit = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve));

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'callplane-servers-'));
  chmodSync(dir, 0o755);
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()));
  rmSync(dir, { recursive: true, force: true });
});

const postgres = async (dataDir = join(dir, 'postgres')) =>
  keep(await startPostgres({ dataDir, port: await freePort(), password: 'local-test', durable: false }));

describe('PostgreSQL', () => {
  test('starts on loopback without a socket, not as root, in its own session, and leaves no password file', async () => {
    const server = await postgres();
    expect(isAlive(server.pid)).toBe(true);
    expect(server.url).toBe(`postgresql://callplane:local-test@127.0.0.1:${server.port}/callplane`);
    expect(server.adminUrl).toBe(`postgresql://postgres:local-test@127.0.0.1:${server.port}/postgres`);
    const [user, session] = psLine(server.pid, 'euid', 'sid');
    expect(Number(user)).toBe(isRoot ? Number(spawnSync('id', ['-u', 'nobody']).stdout) : process.getuid?.());
    expect(Number(session)).toBe(server.pid);
    expect(statSync(join(dir, 'postgres')).mode & 0o777).toBe(0o700);
    expect(() => statSync(join(dir, 'postgres.password'))).toThrow();
    expect(await isPortFree(server.port)).toBe(false);
    expect(readFileSync(join(dir, 'postgres', 'pg_hba.conf'), 'utf8')).not.toMatch(/^[^#]*\btrust$/m);
  });

  test('a pid file that names an unrelated process neither blocks the start nor harms that process', async () => {
    const first = await postgres();
    const pidFile = readFileSync(join(dir, 'postgres', 'postmaster.pid'), 'utf8');
    await first.stop();
    const ids = isRoot ? { uid: statSync(join(dir, 'postgres')).uid } : {};
    const stranger = spawn('sleep', ['60'], ids);
    const exited = childExit(stranger);
    try {
      writeFileSync(join(dir, 'postgres', 'postmaster.pid'), pidFile.replace(/^\d+/, String(stranger.pid)));
      await postgres();
      expect(isAlive(stranger.pid!)).toBe(true);
    } finally {
      stranger.kill('SIGKILL');
      await exited;
    }
  });

  test('an interrupted initialisation starts over', async () => {
    mkdirSync(join(dir, 'postgres.new'));
    writeFileSync(join(dir, 'postgres.new', 'PG_VERSION'), '18\n');
    const server = await postgres();
    expect(isAlive(server.pid)).toBe(true);
    expect(() => statSync(join(dir, 'postgres.new'))).toThrow();
  });

  test('a failed start throws with the end of the log', async () => {
    const { port } = await postgres();
    const start = startPostgres({ dataDir: join(dir, 'pg'), port, password: 'x', durable: false });
    await expect(start).rejects.toThrow(/postgres ended before it was ready[^]*Address already in use/);
  });

  const onlyAsRoot = isRoot ? test : test.skip;
  onlyAsRoot('runs as nobody even below a directory that only root may enter', async () => {
    chmodSync(dir, 0o700);
    const server = await postgres(join(dir, 'deep', 'postgres'));
    expect(psLine(server.pid, 'user')).toEqual(['nobody']);
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    // The one capability for looking past directory permissions: DAC_READ_SEARCH, or DAC_OVERRIDE where that is not
    // available.
    expect(Number.parseInt(/^CapEff:\s*([0-9a-f]+)/m.exec(status)![1]!, 16)).toBeLessThanOrEqual(4);
  });

  onlyAsRoot('takes over data that belongs to another user, as after a copy', async () => {
    await (await postgres()).stop();
    spawnSync('chown', ['-R', 'root', join(dir, 'postgres')]);
    expect(isAlive((await postgres()).pid)).toBe(true);
  });
});

describe('Redis', () => {
  const redis = async () =>
    keep(await startRedis({ dir: join(dir, 'redis'), port: await freePort(), password: 'hush' }));

  test('requires the password, keeps it in a private file, and keeps its data after a kill', async () => {
    const server = await redis();
    expect(statSync(join(dir, 'redis', 'redis.conf')).mode & 0o777).toBe(0o600);
    expect(commandLineOf(server.pid)).not.toContain('hush');
    expect(await converse(server.port, 'PING\r\n')).toContain('NOAUTH');
    const replies = await converse(
      server.port,
      'AUTH hush\r\nSET a 1\r\nCONFIG GET maxmemory-policy\r\nCONFIG GET appendonly\r\nBGREWRITEAOF\r\n',
    );
    expect(replies).toMatch(/noeviction[^]*yes/);
    await server.stop();
    const again = await redis();
    expect(await converse(again.port, 'AUTH hush\r\nGET a\r\n')).toContain('$1\r\n1');
  });

  test('the error for a missing program names it', async () => {
    const path = process.env['PATH'];
    process.env['PATH'] = dir;
    try {
      await expect(redis()).rejects.toThrow(/^redis [^]*redis-server/);
    } finally {
      process.env['PATH'] = path;
    }
  });
});

describe('Janus', () => {
  const secrets = { apiSecret: 'hush-api', adminKey: 'hush-key', adminSecret: 'hush "admin" \\' };
  const janus = async () =>
    keep(
      await startJanus({
        dir: join(dir, 'janus'),
        host: hostIPv4(),
        wsPort: await freePort(),
        adminPort: await freePort(),
        rtpPortMin: 30_000,
        rtpPortMax: 30_050,
        ...secrets,
      }),
    );

  test('runs only the VideoRoom plug-in, not as root, on loopback, and exposes no secrets', async () => {
    const server = await janus();
    expect(server.url).toBe(`ws://127.0.0.1:${server.port}`);
    const [user, session] = psLine(server.pid, 'euid', 'sid');
    expect(Number(user)).toBe(isRoot ? Number(spawnSync('id', ['-u', 'nobody']).stdout) : process.getuid?.());
    expect(Number(session)).toBe(server.pid);
    expect(commandLineOf(server.pid)).not.toContain('hush');
    for (const name of ['janus', 'janus.plugin.videoroom', 'janus.transport.websockets']) {
      expect(statSync(join(dir, 'janus', 'etc', `${name}.jcfg`)).mode & 0o777).toBe(0o600);
    }
    const info = await askJanus(server.port, { janus: 'info' });
    expect(Object.keys(info.plugins)).toEqual(['janus.plugin.videoroom']);
    expect(Object.keys(info.transports)).toEqual(['janus.transport.websockets']);
    expect(info['local-ip']).toBe(hostIPv4());
    expect(await askJanus(server.port, { janus: 'create', apisecret: 'guessed' })).toMatchObject({
      error: { code: 403 },
    });
    expect(readFileSync(join(dir, 'janus', 'janus.log'), 'utf8')).not.toContain('hush');
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
  });
});

describe('a server whose starter is killed', () => {
  /** Starts a server in a process of its own, which is killed. */
  async function startAndKill(call: string, freeze: boolean): Promise<void> {
    const starter = spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import * as servers from ${JSON.stringify(join(import.meta.dirname, '..', 'dist', 'index.js'))};
         const server = await servers.${call.replace('PORT', String(await freePort()))};
         console.log(server.pid);
         setInterval(() => undefined, 1000);`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [pid] = (await once(createInterface(starter.stdout), 'line')).map(Number) as [number];
    expect(isAlive(pid)).toBe(true);
    if (freeze) process.kill(pid, 'SIGSTOP');
    starter.kill('SIGKILL');
    for (let i = 0; isAlive(pid) && i < 400; i += 1) await new Promise((resolve) => setTimeout(resolve, 25));
    expect(isAlive(pid)).toBe(false);
  }

  test('is killed by the kernel, even a frozen one', async () => {
    await startAndKill(`startRedis({ dir: ${JSON.stringify(join(dir, 'redis'))}, port: PORT })`, true);
  });

  test('is killed by the kernel although it runs as another user and with one capability', async () => {
    chmodSync(dir, 0o700);
    const options = `dataDir: ${JSON.stringify(join(dir, 'postgres'))}, port: PORT, password: 'x', durable: false`;
    await startAndKill(`startPostgres({ ${options} })`, false);
    // The data can be used at once.
    expect(isAlive((await postgres()).pid)).toBe(true);
  });
});

function psLine(pid: number, ...columns: string[]): string[] {
  const format = columns.map((column) => `${column}=`).join(',');
  return spawnSync('ps', ['-o', format, '-p', String(pid)], { encoding: 'utf8' })
    .stdout.trim()
    .split(/\s+/);
}

/** Sends lines to Redis, ends the connection, and returns the whole answer. */
async function converse(port: number, lines: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.end(lines);
  let received = '';
  for await (const chunk of socket) received += String(chunk);
  return received;
}

/** Sends one request to Janus and returns its answer. */
async function askJanus(port: number, request: Record<string, unknown>): Promise<any> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, 'janus-protocol');
  socket.once('open', () => socket.send(JSON.stringify({ ...request, transaction: 'test' })));
  const answer = await new Promise<Buffer>((resolve, reject) => {
    socket.once('message', resolve).once('error', reject);
  });
  socket.terminate();
  return JSON.parse(answer.toString());
}
