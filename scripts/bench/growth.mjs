import { randomUUID } from 'node:crypto';
import {
  claimDeliveries,
  deleteOldDeliveries,
  deleteOldEvents,
  endExpiredLeases,
  expireRuns,
  findDelivery,
  findRoom,
  glanceAtDeliveries,
  insertRoom,
  listDeliveries,
  listEvents,
  Prisma,
  readOldestDue,
  settleDeliveries,
  takeUnwokenDeliveries,
  takeUnwokenOperations,
} from '@callplane/db';
import pg from 'pg';
import { median, openStage } from './stage.mjs';

/**
 * What the hot statements and the sweeps cost as the tables grow. Rows are made in SQL: ten endpoints, one attempt a
 * delivery, nearly all of them finished. Each statement runs in a transaction that is rolled back.
 */
const SIZES = [10_000, 100_000, 1_000_000];
const ROUNDS = 30;
const ENDPOINTS = 10;
/** Of a thousand deliveries so many are still open, and due. */
const OPEN_PER_MILLE = 2;

/** @typedef {{ name: string, ms: number, plan: string }} Measured */

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
    /** @type {Map<string, { ms: number[], plan: string }>} */
    const table = new Map();
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

/**
 * @param {pg.Client} client
 * @param {string} environmentId
 * @param {number} from
 * @param {number} to
 */
async function grow(client, environmentId, from, to) {
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
       run_attempts, url, secret_version, due_at, woken_at, run_started_at, created_at, completed_at)
     SELECT 'dlv_' || lpad(n::text, 26, '0'), $1, 'whep_' || lpad((n % ${ENDPOINTS})::text, 26, '0'),
       'evt_' || lpad(n::text, 26, '0'), 'webhook.test',
       CASE WHEN n % ${openEvery} = 0 THEN 'pending' WHEN n % 100 = 1 THEN 'failed' ELSE 'succeeded' END,
       CASE WHEN n % ${openEvery} <> 0 AND n % 100 = 1 THEN 'rejected' END, CASE WHEN n % ${openEvery} = 0 THEN 0 ELSE 1 END,
       'https://example.com/', 1, at, at, CASE WHEN n % ${openEvery} = 0 THEN now() ELSE at END, at,
       CASE WHEN n % ${openEvery} <> 0 THEN at END
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

/**
 * @param {pg.Client} client
 * @param {{ projectId: string, environmentId: string }} tenant
 * @returns {Promise<Measured[]>}
 */
async function measure(client, tenant) {
  const { rows } = await client.query(
    `SELECT id FROM webhook_deliveries WHERE status = 'pending' ORDER BY due_at DESC LIMIT 4`,
  );
  /** @type {string[]} */
  const open = rows.map(({ id }) => id);
  const endpointId = `whep_${'0'.repeat(26)}`;
  const deliveryId = `dlv_${'1'.padStart(26, '0')}`;
  const asked = open.map((id) => ({ deliveryId: id, leaseToken: randomUUID() }));
  const roomId = `room_${'0'.repeat(25)}x`;
  const room = { id: roomId, name: 'Growth', metadata: {}, maxParticipants: 10, createdAt: new Date() };
  const event = { id: `evt_${'z'.repeat(26)}`, type: /** @type {const} */ ('room.created'), body: '{}' };
  const page = { beforeId: null, limit: 20 };
  const attempt = {
    ...{ durationMs: 20, outcome: /** @type {const} */ ('success'), errorCode: null, statusCode: 200 },
    ...{ address: '192.0.2.1', timings: { dnsMs: 1, connectMs: 1, tlsMs: 1, firstByteMs: 1 } },
    ...{ responseBody: '', responseTruncated: false },
  };
  const settled = asked.map(({ deliveryId: id, leaseToken }) => ({
    claim: { id, leaseToken, url: 'https://example.com/', secretVersion: 1, claimedAt: new Date() },
    attempt,
    after: /** @type {const} */ ({ status: 'succeeded' }),
    proves: true,
  }));
  /** @type {[string, (db: any) => unknown][]} */
  const statements = [
    ['create a room: 10 deliveries', (db) => insertRoom(db, tenant, room, event)],
    ['look at 4 deliveries', (db) => glanceAtDeliveries(db, open)],
    ['claim 4 deliveries', (db) => claimDeliveries(db, asked, 120_000)],
    ['settle 4 deliveries (not held)', (db) => settleDeliveries(db, settled)],
    ['read a delivery', (db) => findDelivery(db, tenant, endpointId, deliveryId)],
    ['list deliveries', (db) => listDeliveries(db, tenant, endpointId, { ...page, status: null, eventType: null })],
    [
      'list failed deliveries',
      (db) => listDeliveries(db, tenant, endpointId, { ...page, status: 'failed', eventType: null }),
    ],
    ['list events', (db) => listEvents(db, tenant, { type: null, after: null, limit: 20 })],
    ['read a room', (db) => findRoom(db, tenant, roomId)],
    ['sweep: deliveries that nothing woke', (db) => takeUnwokenDeliveries(db, 10_000, 100)],
    ['sweep: leases that ran out', (db) => endExpiredLeases(db, 120_000, 100)],
    ['sweep: runs that are too old', (db) => expireRuns(db, 7 * 86_400_000, 100)],
    ['sweep: operations', (db) => takeUnwokenOperations(db, 10_000, 100)],
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
  return measured;
}

/**
 * What the repository functions take, on this connection.
 * @param {(statement: { text: string, values: unknown[] }) => Promise<any>} ask
 */
function database(ask) {
  const statementOf = (/** @type {any} */ query, /** @type {unknown[]} */ values) =>
    query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
  const send = async (/** @type {any} */ query, /** @type {unknown[]} */ ...values) => {
    const { text, values: all } = statementOf(query, values);
    return ask({ text, values: [...all] });
  };
  return { $queryRaw: send, $executeRaw: send };
}

/**
 * @param {pg.Client} client
 * @param {(db: any) => unknown} statement
 */
async function timed(client, statement) {
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

/**
 * @param {pg.Client} client
 * @param {(db: any) => unknown} statement
 */
async function planOf(client, statement) {
  /** @type {string[]} */
  const plans = [];
  await client.query('BEGIN');
  const db = database(async ({ text, values }) => {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) ${text}`, values);
    plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    return [];
  });
  try {
    await statement(db);
  } catch {
    // A plan is no row: what makes something of rows may not like that.
  }
  await client.query('ROLLBACK');
  return plans.join('\n\n');
}
