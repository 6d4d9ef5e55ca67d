import { beforeAll, expect, test } from '@jest/globals';
import {
  execute,
  createTestDatabase,
  eventually,
  spawnApp,
  startTestRedis,
  type TestDatabase,
  type TestServer,
} from '@callplane/testing';
import { startTestApi, type Sent, type TestApi } from '../api.testkit.js';
import { CONTEXT_ROUTE } from '../context/context.routes.js';
import { createResources, pathOf, type PathValues } from '../hostile-requests.testkit.js';
import { bodyExamples } from '../openapi/examples.js';
import { makeRecordable, recording } from '../recordings/recordings.testkit.js';
import { apiRoutes } from '../routes.js';
import { delivery, webhook } from '../webhooks/webhooks.testkit.js';

/**
 * PostgreSQL rejects writes while its disk is full or it is read-only. The API answers 503, because the state is
 * temporary and not the caller's fault. It needs Redis for few requests.
 */

let database: TestDatabase;
let redis: TestServer;
let api: TestApi;
let values: PathValues;
/** A delivery that waits. */
let pendingId: string;
/** An endpoint whose next secret waits. */
let rotatingId: string;
/** A recording that runs. */
let runningId: string;
/** A room with a participant, and a room to move it to. */
let moving: { from: string; participantId: string; to: string };
/** Of a console session. */
let cookie: string;
beforeAll(async () => {
  [database, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  api = await startTestApi({ DATABASE_URL: database.url, REDIS_URL: redis.url });
  values = await createResources(api);
  pendingId = (await delivery(api, `/v1/webhooks/${values['endpointId']}`)).id;
  const rotating = await webhook(api);
  rotatingId = rotating.id;
  await api.call('POST', `${rotating.path}/rotate-secret`, { body: { activateInSeconds: 86_400 } });
  await makeRecordable(api);
  const from = await api.room();
  const invited = await api.invite(from);
  await api.join(from, invited);
  moving = { from, participantId: invited.participantId, to: await api.room() };
  runningId = (await recording(api, values['roomId']!, 'recording')).recordingId;
  const { headers } = await api.call('POST', '/v1/console/sessions', { body: {} });
  [cookie = ''] = (headers['set-cookie'] as unknown as string[])[0]!.split(';');
});

/** These change nothing in PostgreSQL. */
const WITHOUT_WRITES = [
  'sendMessage',
  'issueTurnCredentials',
  'createRecordingLink',
  'tryWebhookFilter',
  'askParticipant',
  // Nobody waits in the room.
  'admitParticipant',
];
const WRITES = apiRoutes({} as never).filter(
  ({ method, operationId }) => method !== 'get' && !WITHOUT_WRITES.includes(operationId),
);

async function expectUnavailable(): Promise<void> {
  const ownPage = { cookie, origin: api.url, 'x-callplane-csrf': '1' };
  const writes = WRITES.map(({ method, path, body }): [string, string, Sent] => {
    const { complete = {} } = bodyExamples(body);
    const endsRotation = path.endsWith('/activate') || (method === 'delete' && path.endsWith('/rotate-secret'));
    const ids = {
      ...values,
      ...(path.endsWith('/retry') ? { deliveryId: pendingId } : {}),
      ...(path.endsWith('/stop') ? { recordingId: runningId } : {}),
      ...(endsRotation ? { endpointId: rotatingId } : {}),
      ...(/moves?$/.test(path) ? { roomId: moving.from, participantId: moving.participantId } : {}),
    };
    const { participantId, to } = moving;
    const moved = path.endsWith('/move') ? { roomId: to } : { moves: [{ participantId, roomId: to }] };
    const byPage = path.endsWith('/current') ? { key: null, headers: ownPage } : {};
    const known = 'participantId' in complete ? { participantId: values['participantId'] } : {};
    return [
      method,
      pathOf(path, 'GET', ids),
      { body: { ...complete, ...known, ...(/moves?$/.test(path) ? moved : {}) }, ...byPage },
    ];
  });
  writes.push(['POST', '/v1/rooms', { body: { name: 'A' }, headers: { 'idempotency-key': 'read-only' } }]);
  for (const [method, path, sent] of writes) {
    const { status, body, headers } = await api.call(method, path, sent);
    expect([method, path, status, body.error?.code]).toEqual([method, path, 503, 'UNAVAILABLE']);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  }
  const reads = apiRoutes({} as never).filter(({ method, path }) => method === 'get' && path !== '/v1/stream');
  for (const route of [CONTEXT_ROUTE, ...reads]) {
    const query = route.path === '/v1/usage' ? '?from=2026-11-01&to=2026-11-02' : '';
    const path = `${pathOf(route.path, 'GET', values)}${query}`;
    // No clean-up and no move has begun.
    expect([path, (await api.call('GET', path)).status]).toEqual([
      path,
      /runtime-operation$|move$/.test(path) ? 404 : 200,
    ]);
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
      await tx.$executeRaw`SET TRANSACTION READ WRITE`;
      const [{ name }] = await tx.$queryRaw<[{ name: string }]>`SELECT current_database() AS name`;
      await execute({ sql: tx }, `ALTER DATABASE "${name}" SET default_transaction_read_only = ${value}`);
    });
  await setReadOnly('on');
  // The setting applies to new connections only, so end all open ones, this one last.
  await api.database.sql.$queryRaw`
    SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE datname = current_database()
    ORDER BY pid = pg_backend_pid()`.then(null, () => undefined);
  await eventually(async () => (await api.call('POST', '/v1/rooms', { body: { name: 'A' } })).status === 503);
  await expectUnavailable();
  const ready = await fetch(`${api.url}/readyz`);
  expect([ready.status, await ready.json()]).toMatchObject([503, { checks: { postgres: 'read-only' } }]);
  await setReadOnly('off');
  // No write was half applied, and no connection stays read-only.
  await eventually(async () => (await api.call('POST', '/v1/rooms', { body: { name: 'A' } })).status === 201);
  expect((await api.call('DELETE', `/v1/rooms/${await api.room()}`)).status).toBe(202);
});

test('answers writes with 503 while the disk is full, is not ready, and recovers by itself', async () => {
  await api.database.transaction(async (tx) => {
    // Connections of the tests may still be read-only.
    await tx.$executeRaw`SET TRANSACTION READ WRITE`;
    await tx.$executeRaw`CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`;
    const tables = await tx.$queryRaw<{ name: string }[]>`
      SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`;
    for (const { name } of tables) {
      const event = 'INSERT OR UPDATE OR DELETE';
      await execute({ sql: tx }, `CREATE TRIGGER disk_full BEFORE ${event} ON ${name} EXECUTE FUNCTION disk_full()`);
    }
    await tx.$executeRaw`CREATE FUNCTION no_file() RETURNS event_trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'could not create file: No space left on device' USING ERRCODE = '53100'; END $$`;
    await tx.$executeRaw`CREATE EVENT TRIGGER no_file ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS')
      EXECUTE FUNCTION no_file()`;
  });
  await expectUnavailable();
  // A connection that is still read-only closes at its first check.
  const ready = await eventually(async () => {
    const answer = await fetch(`${api.url}/readyz`);
    const body = (await answer.json()) as { checks: { postgres: string } };
    return body.checks.postgres === 'read-only' ? null : { status: answer.status, body };
  });
  expect(ready).toMatchObject({ status: 503, body: { checks: { postgres: 'disk-full' } } });
  await api.database.transaction(async (tx) => {
    await tx.$executeRaw`SET TRANSACTION READ WRITE`;
    await tx.$executeRaw`DROP EVENT TRIGGER no_file`;
    await tx.$executeRaw`DROP FUNCTION disk_full CASCADE`;
  });
  expect((await fetch(`${api.url}/readyz`)).status).toBe(200);
  expect((await api.call('POST', '/v1/rooms', { body: { name: 'A' } })).status).toBe(201);
});

test('reports ready without Redis, but not without PostgreSQL, and live in both cases', async () => {
  const get = (path: string) => fetch(api.url + path);
  const readiness = async () => (await get('/readyz')).json();
  expect(await readiness()).toEqual({ status: 'ok', checks: { postgres: 'ok', redis: 'ok' } });
  await redis.stop();
  const degraded = { status: 'degraded', checks: { postgres: 'ok', redis: 'unreachable' } };
  await eventually(async () => {
    expect(await readiness()).toEqual(degraded);
    return true;
  });
  const away = await api.call('POST', `/v1/rooms/${values['roomId']}/messages`, { body: { data: 1 } });
  expect([away.status, away.headers['retry-after']]).toEqual([503, '2']);
  expect((await get('/livez')).status).toBe(200);
  await database.drop();
  expect((await get('/readyz')).status).toBe(503);
  expect((await get('/livez')).status).toBe(200);
});
