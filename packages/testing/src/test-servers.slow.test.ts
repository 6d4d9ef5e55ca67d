import { spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import pg from 'pg';
import {
  createRtcPeer,
  createTestDatabase,
  eventually,
  startTestCoturn,
  startTestJanus,
  startTestPostgres,
  startTestPrometheus,
  startTestRedis,
  testClock,
} from './index.js';

/** Long enough for a busy machine. */
const PATIENT_MS = 60_000;
/** For servers that never answer. */
const HASTY_MS = 300;

const query = async (url: string, text: string, timeoutMs = PATIENT_MS) => {
  const timeouts = { connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs };
  const client = new pg.Client({ connectionString: url, ...timeouts });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
};

describe('the shared PostgreSQL', () => {
  test('gives every caller its own migrated database', async () => {
    const [one, two] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    expect(one.url).not.toBe(two.url);
    await query(one.url, 'CREATE TABLE mine (id int)');
    const tables = (url: string) => query(url, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`);
    const names = (await tables(two.url)).map((row) => row['tablename']);
    expect(names.length).toBeGreaterThan(5);
    expect(names).not.toContain('mine');
    await two.drop();
    await expect(query(two.url, 'SELECT 1')).rejects.toThrow(/does not exist/);
  });

  test('requires the password', async () => {
    const url = new URL((await createTestDatabase()).url);
    url.password = 'wrong';
    await expect(query(url.href, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
  });
});

describe('a PostgreSQL of one test file', () => {
  test('restarts on the same address and data, even after a kill', async () => {
    const server = await startTestPostgres();
    const { url } = await server.createDatabase();
    await query(url, 'CREATE TABLE kept (id int); INSERT INTO kept VALUES (7)');
    const before = server.pid;
    await server.restart();
    expect(server.pid).not.toBe(before);
    expect(await query(url, 'SELECT id FROM kept')).toEqual([{ id: 7 }]);
    server.kill('SIGKILL');
    await eventually(() =>
      query(url, 'SELECT 1').then(
        () => false,
        () => true,
      ),
    );
    await server.start();
    expect(await query(url, 'SELECT id FROM kept')).toEqual([{ id: 7 }]);
  });

  test('does not answer while frozen, and stops even then', async () => {
    const server = await startTestPostgres();
    const client = new pg.Client({ connectionString: server.url, query_timeout: HASTY_MS });
    client.on('error', () => undefined);
    await client.connect();
    server.freeze();
    await expect(client.query('SELECT 1')).rejects.toThrow(/timeout/);
    await expect(query(server.url, 'SELECT 1', HASTY_MS)).rejects.toThrow(/timeout/);
    server.thaw();
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    server.freeze();
    await server.stop();
    await client.end().catch(() => undefined);
    await expect(query(server.url, 'SELECT 1')).rejects.toThrow(/ECONNREFUSED/);
  });
});

test('a Redis of one test file restarts with its data, and freezes', async () => {
  const server = await startTestRedis();
  const redis = new Redis(server.url, { commandTimeout: HASTY_MS, maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
  try {
    await eventually(async () => {
      await redis.set('kept', '7');
      return true;
    });
    await server.restart();
    await eventually(async () => (await redis.get('kept')) === '7');
    server.freeze();
    await expect(redis.get('kept')).rejects.toThrow(/timed out/i);
    server.thaw();
    await eventually(async () => (await redis.get('kept')) === '7');
  } finally {
    redis.disconnect();
  }
});

test('a coturn of one test file grants a relay only to clients that know its secret', async () => {
  const turn = await startTestCoturn();
  const username = `${Math.floor(Date.now() / 1000) + 60}:test`;
  const allocate = (secret: string) => {
    const credential = createHmac('sha1', secret).update(username).digest('base64');
    const args = [
      '-y',
      '-c',
      '-n',
      '1',
      '-m',
      '1',
      '-u',
      username,
      '-w',
      credential,
      '-p',
      String(turn.port),
      turn.host,
    ];
    return spawnSync('turnutils_uclient', args).status;
  };
  expect(allocate(turn.secret)).toBe(0);
  expect(allocate('wrong')).not.toBe(0);
});

test('a Janus of one test file restarts on the same port, even after a kill, and stops while frozen', async () => {
  const server = await startTestJanus();
  const { url, pid } = server;
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(server.port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  await server.restart();
  expect(server.pid).not.toBe(pid);
  server.kill('SIGKILL');
  await eventually(async () => !(await accepts()));
  await server.start();
  expect(server.url).toBe(url);
  expect(await accepts()).toBe(true);
  server.freeze();
  await server.stop();
  expect(await accepts()).toBe(false);
});

test('a Prometheus of one test file runs the given configuration and does not start with an invalid one', async () => {
  const server = await startTestPrometheus('scrape_configs: [{ job_name: mine }]');
  const config = (await (await fetch(`${server.url}/api/v1/status/config`)).json()) as { data: { yaml: string } };
  expect(config.data.yaml).toContain('job_name: mine');
  await server.stop();
  await expect(fetch(server.url)).rejects.toThrow();
  await expect(startTestPrometheus('scrape_config: []')).rejects.toThrow(
    /prometheus ended before it was ready[^]*scrape_config /,
  );
});

test('two peers without a browser exchange sound and pictures', async () => {
  const [ada, bob] = [await createRtcPeer(), await createRtcPeer()];
  ada.onCandidate((candidate) => void bob.addCandidate(candidate));
  bob.onCandidate((candidate) => void ada.addCandidate(candidate));
  const audio = ada.addAudio();
  const video = ada.addVideo({ width: 320, height: 240 });
  await ada.acceptAnswer(await bob.answer(await ada.offer()));
  await eventually(() => bob.framesReceived('audio') > 5 && bob.framesReceived('video') > 2);
  expect([audio.mid(), video.mid()]).toEqual(['0', '1']);
  expect([...bob.received()].map(([mid, { kind }]) => [mid, kind]).sort()).toEqual([
    ['0', 'audio'],
    ['1', 'video'],
  ]);
  expect(ada.connectionState()).toBe('connected');
  for (const peer of [ada, bob, ada]) peer.close();
});

describe('eventually', () => {
  test('returns the condition’s result, and throws its last error after the timeout', async () => {
    let calls = 0;
    const third = () => ((calls += 1) === 3 ? 'third' : false);
    expect(await eventually(third, { intervalMs: 1 })).toBe('third');
    const never = () => Promise.reject(new Error('still no'));
    await expect(eventually(never, { timeoutMs: 20, intervalMs: 1 })).rejects.toThrow('not within 20 ms: still no');
  });
});

test('a test clock moves only when the test moves it', () => {
  const clock = testClock('2030-01-01T00:00:00.000Z');
  clock.advance(1_500);
  expect(clock.now().toISOString()).toBe('2030-01-01T00:00:01.500Z');
  clock.set('2031-01-01T00:00:00.000Z');
  expect(clock.now().getUTCFullYear()).toBe(2031);
});
