import { beforeAll, expect, test } from '@jest/globals';
import { eventually, spawnApp } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

/**
 * PostgreSQL rejects writes while its disk is full or it is read-only. The API answers 503, because the state is
 * temporary and not the caller's fault.
 */

let api: TestApi;
let roomId: string;
beforeAll(async () => {
  api = await startTestApi();
  roomId = await api.room();
});

const writes = (): [string, string, object?][] => [
  ['POST', '/v1/rooms', { body: { name: 'A' } }],
  ['POST', '/v1/rooms', { body: { name: 'A' }, headers: { 'idempotency-key': 'read-only' } }],
  ['POST', `/v1/rooms/${roomId}/tokens`, { body: { participantName: 'Ada' } }],
  ['POST', '/v1/webhooks', { body: { url: 'https://example.com/' } }],
  ['DELETE', `/v1/rooms/${roomId}`],
];

async function expectUnavailable(): Promise<void> {
  for (const [method, path, sent] of writes()) {
    const { status, body, headers } = await api.call(method, path, sent);
    expect([method, path, status, body.error.code]).toEqual([method, path, 503, 'UNAVAILABLE']);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  }
  for (const path of ['/v1/rooms', `/v1/rooms/${roomId}`, '/v1/webhooks', '/v1/events']) {
    expect([path, (await api.call('GET', path)).status]).toEqual([path, 200]);
  }
}

test.each(['api', 'signaling'])(
  'the app %s with a database URL that no client can parse exits before it listens',
  async (name) => {
    const app = await spawnApp({
      name,
      untilReady: false,
      env: { DATABASE_URL: 'postgresql://root:hunter2@db:nine/x' },
    });
    expect(await app.exited).toEqual({ code: 1, signal: null });
    expect(app.output()).toMatch(/- DATABASE_URL must be a URL like .*\n/);
    expect(app.output()).not.toMatch(/hunter2|listening/);
  },
);

test('answers writes with 503 and reads with 200 while PostgreSQL is read-only, and recovers by itself', async () => {
  const setReadOnly = (value: 'on' | 'off') =>
    api.database.transaction(async (tx) => {
      await tx.$executeRawUnsafe('SET TRANSACTION READ WRITE');
      const [{ name }] = await tx.$queryRaw<[{ name: string }]>`SELECT current_database() AS name`;
      await tx.$executeRawUnsafe(`ALTER DATABASE "${name}" SET default_transaction_read_only = ${value}`);
    });
  await setReadOnly('on');
  // The setting applies to new connections only, so end all open ones, this one last.
  await api.database.prisma.$queryRaw`
    SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE datname = current_database()
    ORDER BY pid = pg_backend_pid()`.catch(() => undefined);
  await eventually(async () => (await api.call('POST', '/v1/rooms', { body: { name: 'A' } })).status === 503);
  await expectUnavailable();
  const ready = await fetch(`${api.url}/readyz`);
  expect([ready.status, await ready.json()]).toMatchObject([503, { checks: { postgres: 'read-only' } }]);
  await setReadOnly('off');
  // No write was half applied, and no connection stays read-only.
  await eventually(async () => (await api.call('POST', '/v1/rooms', { body: { name: 'A' } })).status === 201);
  expect((await api.call('DELETE', `/v1/rooms/${roomId}`)).status).toBe(202);
});

test('answers writes with 503 while the disk is full', async () => {
  roomId = await api.room();
  const { prisma } = api.database;
  await prisma.$executeRawUnsafe(`CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`);
  for (const table of ['rooms', 'participants', 'webhook_endpoints', 'runtime_operations']) {
    await prisma.$executeRawUnsafe(
      `CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON ${table} EXECUTE FUNCTION disk_full()`,
    );
  }
  await expectUnavailable();
});
