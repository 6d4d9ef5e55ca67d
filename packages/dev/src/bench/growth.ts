import { randomUUID } from 'node:crypto';
import { roomCreated } from '@callplane/core';
import {
  claimDueDeliveries,
  claimGated,
  deleteOldDeliveries,
  deleteOldEvents,
  endExpiredLeases,
  expireRuns,
  findDelivery,
  findRoom,
  freeParkedDeliveries,
  insertRooms,
  listDeliveries,
  listEvents,
  Prisma,
  readOldestDue,
  scanDueEndpoints,
  settleDeliveries,
  takeDueOperations,
} from '@callplane/db';
import pg from 'pg';
import { median, openStage } from './stage.js';

/**
 * The time of the frequent statements and the sweeps as the tables grow. SQL generates the rows: ten endpoints, one
 * attempt per delivery, nearly all of them finished. Each statement runs in a transaction that is rolled back.
 */
const SIZES = [10_000, 100_000, 1_000_000];
const ROUNDS = 30;
const ENDPOINTS = 10;
/** The number of deliveries per thousand that are still open and due. */
const OPEN_PER_MILLE = 2;

interface Measured {
  name: string;
  ms: number;
  plan: string;
}

export async function run() {
  const stage = await openStage();
  try {
    await stage.rtc('db', 'migrate');
    const project = await stage.rtc('projects', 'create', '--name', 'Growth');
    const environment = await stage.rtc('environments', 'create', '--project', project.id, '--name', 'growth');
    const tenant = { projectId: project.id, environmentId: environment.id };
    const client = new pg.Client({ connectionString: stage.environment.DATABASE_URL });
    await client.connect();
    stage.onClose(() => client.end());
    const table = new Map<string, { ms: number[]; plan: string }>();
    let present = 0;
    for (const size of SIZES) {
      await grow(client, tenant.environmentId, present, size);
      present = size;
      for (const { name, ms, plan } of await measure(client, tenant)) {
        const row = table.get(name) ?? { ms: [], plan };
        row.ms.push(ms);
        row.plan = plan;
        table.set(name, row);
      }
    }
    console.log(
      `| statement, ms | ${SIZES.map((size) => size.toLocaleString('en')).join(' | ')} | last against first |`,
    );
    console.log(`| --- | ${SIZES.map(() => '---').join(' | ')} | --- |`);
    for (const [name, { ms }] of table) {
      const ratio = (ms.at(-1) ?? NaN) / (ms[0] ?? NaN);
      console.log(`| ${name} | ${ms.map((each) => each.toFixed(2)).join(' | ')} | ${ratio.toFixed(1)} |`);
    }
    console.log(`\nPlans with ${present.toLocaleString('en')} deliveries:\n`);
    for (const [name, { plan }] of table) console.log(`### ${name}\n\n\`\`\`\n${plan}\n\`\`\`\n`);
  } finally {
    await stage.close();
  }
}

async function grow(client: pg.Client, environmentId: string, from: number, to: number) {
  const openEvery = Math.round(1000 / OPEN_PER_MILLE);
  await client.query(
    `INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at, updated_at, proven)
     SELECT 'whep_' || lpad(n::text, 26, '0'), $1, 'https://example.com/' || n, ARRAY['*'], true, 1, now(), now(), true
     FROM generate_series(0, ${ENDPOINTS - 1}) n ON CONFLICT DO NOTHING`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at)
     SELECT id, 1, 's1.k1.x', now() FROM webhook_endpoints ON CONFLICT DO NOTHING`,
  );
  const series = `generate_series(${from}, ${to - 1}) n`;
  await client.query(
    `INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at)
     SELECT 'evt_' || lpad(n::text, 26, '0'), $1, 'webhook.test', NULL, NULL, '{"filler":"' || repeat('x', 300) || '"}',
       now() - (${to} - n) * interval '2 seconds'
     FROM ${series}`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, failure_reason,
       run_attempts, url, secret_version, due_at, woken_at, run_started_at, created_at, completed_at, room_id, sequence)
     SELECT 'dlv_' || lpad(n::text, 26, '0'), $1, 'whep_' || lpad((n % ${ENDPOINTS})::text, 26, '0'),
       'evt_' || lpad(n::text, 26, '0'), 'webhook.test',
       CASE WHEN n % ${openEvery} = 0 THEN 'pending' WHEN n % 100 = 1 THEN 'failed' ELSE 'succeeded' END,
       CASE WHEN n % ${openEvery} <> 0 AND n % 100 = 1 THEN 'rejected' END, CASE WHEN n % ${openEvery} = 0 THEN 0 ELSE 1 END,
       'https://example.com/', 1, at, at, CASE WHEN n % ${openEvery} = 0 THEN now() ELSE at END, at,
       CASE WHEN n % ${openEvery} <> 0 THEN at END, 'room_growth', n + 1
     FROM ${series}, LATERAL (SELECT now() - (${to} - n) * interval '2 seconds' AS at) t`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
       duration_ms, outcome, status_code, address)
     SELECT 'att_' || lpad(n::text, 26, '0'), 'dlv_' || lpad(n::text, 26, '0'), 0, 1, 'https://example.com/', 1,
       now(), 20, 'success', 200, '192.0.2.1'
     FROM ${series} WHERE n % ${openEvery} <> 0`,
  );
  await client.query('VACUUM ANALYZE');
}

async function measure(client: pg.Client, tenant: { projectId: string; environmentId: string }): Promise<Measured[]> {
  const { rows } = await client.query(
    `SELECT id, endpoint_id FROM webhook_deliveries WHERE status = 'pending' ORDER BY due_at DESC LIMIT 4`,
  );
  const asks = rows.map(({ endpoint_id: endpointId }) => ({ endpointId, isRetry: false, count: 1, since: null }));
  const endpointId = `whep_${'0'.repeat(26)}`;
  const deliveryId = `dlv_${'1'.padStart(26, '0')}`;
  const roomId = `room_${'0'.repeat(25)}x`;
  const room = {
    id: roomId,
    name: 'Growth',
    metadata: {},
    maxParticipants: 10,
    createdAt: new Date(),
    status: 'created' as const,
    startedAt: null,
    endedAt: null,
  };
  const page = { beforeId: null, limit: 20 };
  const noFilter = { endpointId: null, status: null, eventType: null, since: null, until: null };
  const attempt = {
    durationMs: 20,
    outcome: 'success' as const,
    errorCode: null,
    statusCode: 200,
    address: '192.0.2.1',
    timings: { dnsMs: 1, connectMs: 1, tlsMs: 1, firstByteMs: 1 },
    responseBody: '',
    responseTruncated: false,
  };
  const settled = rows.map(({ id }) => ({
    claim: {
      id,
      leaseToken: randomUUID(),
      url: 'https://example.com/',
      secretVersion: 1,
      startedAt: new Date(),
      replayCount: 0,
      runAttempt: 1,
    },
    attempt,
    after: { status: 'succeeded' } as const,
    proves: true,
    slotMs: 20,
  }));
  const statements: [string, (db: any) => unknown][] = [
    ['create a room: 10 deliveries', (db) => insertRooms(db, [{ tenant, room, created: roomCreated(tenant, room) }])],
    ['claim 4 deliveries', (db) => claimDueDeliveries(db, asks, 120_000)],
    ['settle 4 deliveries (not held)', (db) => settleDeliveries(db, settled)],
    ['read a delivery', (db) => findDelivery(db, tenant, endpointId, deliveryId)],
    ['list deliveries', (db) => listDeliveries(db, tenant, { ...noFilter, endpointId }, page)],
    ['list failed deliveries', (db) => listDeliveries(db, tenant, { ...noFilter, endpointId, status: 'failed' }, page)],
    [
      'list failed deliveries of all endpoints',
      (db) => listDeliveries(db, tenant, { ...noFilter, status: 'failed' }, page),
    ],
    [
      'list deliveries of all endpoints, of a type',
      (db) => listDeliveries(db, tenant, { ...noFilter, eventType: 'webhook.test' }, page),
    ],
    ['list events', (db) => listEvents(db, tenant, { type: null, after: null, limit: 20 })],
    ['read a room', (db) => findRoom(db, tenant, roomId)],
    ['sweep: parked deliveries to free', (db) => freeParkedDeliveries(db, null, 500)],
    ['scan: endpoints with due deliveries', (db) => scanDueEndpoints(db, '', 500)],
    ['sweep: leases that ran out', (db) => endExpiredLeases(db, 120_000, 100)],
    ['sweep: runs that are too old', (db) => expireRuns(db, 7 * 86_400_000, 100)],
    [
      'scan: operations',
      (db) => takeDueOperations(db, { quietMs: 10_000, perEnvironment: 16, limit: 64, after: null }),
    ],
    ['retention: 500 deliveries', (db) => deleteOldDeliveries(db, 1, 500)],
    ['retention: events', (db) => deleteOldEvents(db, 1, 500, null)],
    ['metric: oldest due row', (db) => readOldestDue(db)],
  ];
  const measured = [];
  for (const [name, statement] of statements) {
    const times = [];
    for (let round = 0; round < ROUNDS; round++) times.push(await timed(client, statement));
    measured.push({ name, ms: median(times), plan: await planOf(client, statement) });
  }
  // In order: all deliveries of the endpoint are of one room, so only the first one may be claimed.
  await client.query(`UPDATE webhook_endpoints SET ordering = 'room', max_per_second = 100 WHERE id = $1`, [
    endpointId,
  ]);
  await client.query('INSERT INTO webhook_gates (endpoint_id) VALUES ($1)', [endpointId]);
  const request = { endpointId, isRetry: false, count: 4, since: null };
  const gated = (db: any) => claimGated(db, request, 120_000);
  const times = [];
  for (let round = 0; round < ROUNDS; round++) times.push(await timed(client, gated));
  measured.push({ name: 'claim of an endpoint with an order', ms: median(times), plan: await planOf(client, gated) });
  await client.query('DELETE FROM webhook_gates');
  await client.query(`UPDATE webhook_endpoints SET ordering = 'none', max_per_second = NULL`);
  return measured;
}

/** The database object that the repository functions expect, on this connection. */
function database(ask: (statement: { text: string; values: unknown[] }) => Promise<any>) {
  const statementOf = (query: any, values: unknown[]) =>
    query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
  const send = async (query: any, ...values: unknown[]) => {
    const { text, values: all } = statementOf(query, values);
    return ask({ text, values: [...all] });
  };
  return { $queryRaw: send, $executeRaw: send };
}

async function timed(client: pg.Client, statement: (db: any) => unknown) {
  let ms = 0;
  await client.query('BEGIN');
  const db = database(async ({ text, values }) => {
    const began = performance.now();
    const { rows } = await client.query(text, values);
    ms += performance.now() - began;
    return rows;
  });
  await statement(db);
  await client.query('ROLLBACK');
  return ms;
}

async function planOf(client: pg.Client, statement: (db: any) => unknown) {
  const plans: string[] = [];
  await client.query('BEGIN');
  const db = database(async ({ text, values }) => {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) ${text}`, values);
    plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    return [];
  });
  try {
    await statement(db);
  } catch {
    // Only the plan matters: the statement's function may fail on the empty result.
  }
  await client.query('ROLLBACK');
  return plans.join('\n\n');
}
