import type pg from 'pg';

export const ENDPOINTS = 10;
/**
 * Open deliveries. They are due before the floor (docs/decisions/0039), so that there is a backlog with any number of
 * rows. All others are finished.
 */
export const OPEN = 200;
/** Age of the oldest row: a quarter of the rows is past its retention. */
const OLDEST_DAYS = 40;
/** Rows per statement, so that none takes minutes. */
const CHUNK = 500_000;
/** Adds finished deliveries with their events and attempts, and a few open ones, from number `from` up to `to`. */
export async function grow(client: pg.Client, environmentId: string, from: number, to: number) {
  await addEndpoints(client, environmentId);
  await withoutIndexes(client, async () => {
    for (let start = from; start < to; start += CHUNK) {
      await addChunk(client, environmentId, { start, end: Math.min(start + CHUNK, to), to });
    }
  });
  await client.query('VACUUM ANALYZE');
}

/**
 * Builds the indexes after the rows, and checks no foreign keys of the rows: otherwise 5 million take half an hour. The
 * primary keys stay, because foreign keys depend on them.
 */
async function withoutIndexes(client: pg.Client, work: () => Promise<void>) {
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
     WHERE i.indrelid = ANY('{events,webhook_deliveries,webhook_attempts}'::regclass[])
       AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
  );
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`);
  await client.query(`SET session_replication_role = replica`);
  await client.query(`SET maintenance_work_mem = '512MB'`);
  await work();
  await client.query(`RESET session_replication_role`);
  for (const { definition } of indexes) await client.query(definition);
}

async function addEndpoints(client: pg.Client, environmentId: string) {
  await client.query(
    `INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at, updated_at, slot_ms)
     SELECT 'whep_' || lpad(n::text, 26, '0'), $1, 'https://example.com/' || n, ARRAY['*'], true, 1, now(), now(), 64
     FROM generate_series(0, ${ENDPOINTS - 1}) n ON CONFLICT DO NOTHING`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at)
     SELECT id, 1, 's1.k1.x', now() FROM webhook_endpoints ON CONFLICT DO NOTHING`,
  );
}

interface Chunk {
  start: number;
  end: number;
  /** Number of rows after all chunks. */
  to: number;
}

async function addChunk(client: pg.Client, environmentId: string, { start, end, to }: Chunk) {
  const isOpen = `n < ${OPEN}`;
  const due = `now() - interval '1 minute'`;
  const age = `(${to} - n) * interval '${(OLDEST_DAYS * 86_400_000) / to} milliseconds'`;
  const series = `generate_series(${start}, ${end - 1}) n`;
  await client.query(
    `INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at)
     SELECT 'evt_' || lpad(n::text, 26, '0'), $1, 'webhook.test', NULL, NULL, '{"filler":"' || repeat('x', 300) || '"}',
       now() - ${age}
     FROM ${series}`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, failure_reason,
       run_attempts, url, secret_version, due_at, run_started_at, created_at, completed_at, room_id, sequence)
     SELECT 'dlv_' || lpad(n::text, 26, '0'), $1, 'whep_' || lpad((n % ${ENDPOINTS})::text, 26, '0'),
       'evt_' || lpad(n::text, 26, '0'), 'webhook.test',
       CASE WHEN ${isOpen} THEN 'pending' WHEN n % 100 = 1 THEN 'failed' ELSE 'succeeded' END,
       CASE WHEN NOT ${isOpen} AND n % 100 = 1 THEN 'rejected' END, CASE WHEN ${isOpen} THEN 0 ELSE 1 END,
       'https://example.com/', 1, CASE WHEN ${isOpen} THEN ${due} ELSE at END, CASE WHEN ${isOpen} THEN ${due} ELSE at END, at,
       CASE WHEN NOT ${isOpen} THEN at END, 'room_growth', n + 1
     FROM ${series}, LATERAL (SELECT now() - ${age} AS at) t`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
       duration_ms, outcome, status_code, address)
     SELECT 'att_' || lpad(n::text, 26, '0'), 'dlv_' || lpad(n::text, 26, '0'), 0, 1, 'https://example.com/', 1,
       now(), 20, 'success', 200, '192.0.2.1'
     FROM ${series} WHERE NOT ${isOpen}`,
  );
}

/**
 * Lets `count` deliveries and a tenth as many operations become due, claimed and finished while `holder` keeps a
 * snapshot from before: the rows died after it, so PostgreSQL keeps their index entries. They were due from half an
 * hour to a minute ago.
 */
export async function finishBehindSnapshot(client: pg.Client, holder: pg.Client, environmentId: string, count: number) {
  // The open deliveries become due after those that finish, because workers claim the oldest ones first.
  await client.query(`UPDATE webhook_deliveries SET due_at = now() - interval '40 seconds' WHERE status = 'pending'`);
  await client.query('VACUUM ANALYZE webhook_deliveries');
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await holder.query('SELECT count(*) FROM projects');
  const spread = `now() - interval '1 minute' - (n * 1740.0 / ${count}) * interval '1 second'`;
  await client.query(
    `INSERT INTO events (id, environment_id, type, body, created_at)
     SELECT 'evt_h' || n, $1, 'webhook.test', '{}', now() FROM generate_series(1, ${count}) n`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, run_attempts, due_at,
       run_started_at, created_at)
     SELECT 'dlv_h' || n, $1, 'whep_' || lpad((n % ${ENDPOINTS})::text, 26, '0'), 'evt_h' || n, 'webhook.test', 'pending',
       0, at, at, at
     FROM generate_series(1, ${count}) n, LATERAL (SELECT ${spread} AS at) t`,
    [environmentId],
  );
  await client.query(
    `UPDATE webhook_deliveries SET status = 'delivering', run_attempts = 1, lease_token = gen_random_uuid(),
       lease_expires_at = due_at + interval '30 seconds', url = 'https://example.com/', secret_version = 1
     WHERE id LIKE 'dlv_h%'`,
  );
  await client.query(
    `UPDATE webhook_deliveries SET status = 'succeeded', completed_at = due_at, lease_token = NULL,
       lease_expires_at = NULL WHERE id LIKE 'dlv_h%'`,
  );
  await finishOperations(client, environmentId, Math.round(count / 10), spread);
  await client.query('ANALYZE');
}

async function finishOperations(client: pg.Client, environmentId: string, count: number, spread: string) {
  await client.query(
    `INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at, ended_at)
     SELECT 'room_h' || n, $1, 'Room', '{}', 'ended', 2, now(), now() FROM generate_series(1, ${count}) n`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO runtime_operations (id, environment_id, room_id, kind, status, created_at, due_at, woken_at)
     SELECT 'op_h' || n, $1, 'room_h' || n, 'room.end', 'pending', now(), ${spread}, ${spread}
     FROM generate_series(1, ${count}) n`,
    [environmentId],
  );
  await client.query(`UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE id LIKE 'op_h%'`);
}
