import { createTestDatabase } from '@callplane/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { AT, insertRow, insertRowsBefore, LATER, type Row, type Table } from './valid-rows.testkit.js';

const UUID = '00000000-0000-4000-8000-000000000000';
const LONG_NAME = 'é'.repeat(121);
const RETIRED = { status: 'retired', private_key_sealed: null, retired_at: AT, verifies_until: LATER };

/** For each check constraint, changes of the valid row that each violate it. */
const CHECKS: Record<string, [table: Table, ...changes: Row[]]> = {
  projects_name_length: ['projects', { name: '' }, { name: LONG_NAME }],
  environments_name_length: ['environments', { name: '' }, { name: LONG_NAME }],
  api_keys_type: ['api_keys', { type: 'public' }],
  api_keys_hash_length: ['api_keys', { key_hash: Buffer.alloc(31) }, { key_hash: Buffer.alloc(33) }],
  console_sessions_hashes: [
    'console_sessions',
    { code_hash: null },
    { secret_hash: Buffer.alloc(32) },
    { code_hash: Buffer.alloc(31) },
    { code_hash: null, secret_hash: Buffer.alloc(33) },
  ],
  console_sessions_lifetime: ['console_sessions', { lifetime_seconds: 0 }, { lifetime_seconds: 86_401 }],
  console_sessions_expiry: ['console_sessions', { expires_at: AT }],
  rooms_name_length: ['rooms', { name: '' }, { name: LONG_NAME }],
  rooms_metadata_object: ['rooms', { metadata: '[]' }, { metadata: 'null' }],
  rooms_status: ['rooms', { status: 'closed' }],
  rooms_max_participants: ['rooms', { max_participants: 0 }, { max_participants: 100_001 }],
  rooms_empty_timeout_seconds: ['rooms', { empty_timeout_seconds: 59 }, { empty_timeout_seconds: 604_801 }],
  rooms_encryption: ['rooms', { encryption: 'optional' }],
  rooms_encrypted_record: ['rooms', { encryption: 'required', record: '{"mode":"tracks"}' }],
  rooms_ended_at: ['rooms', { status: 'ended' }, { ended_at: AT }],
  rooms_started_at: ['rooms', { status: 'active' }],
  participants_name_length: ['participants', { name: '' }, { name: LONG_NAME }],
  participants_external_id_length: ['participants', { external_id: '' }, { external_id: 'x'.repeat(256) }],
  participants_metadata_object: ['participants', { metadata: '"x"' }],
  participants_role_length: ['participants', { role: '' }, { role: 'x'.repeat(33) }],
  participant_tokens_lifetime: ['participant_tokens', { expires_at: AT }],
  participant_sessions_end_reason: ['participant_sessions', { ended_at: AT, end_reason: 'bored' }],
  participant_sessions_ended: ['participant_sessions', { ended_at: AT }, { end_reason: 'left' }],
  participant_sessions_resume_secret_hash_length: [
    'participant_sessions',
    { resume_secret_hash: Buffer.alloc(31) },
    { resume_secret_hash: Buffer.alloc(33) },
  ],
  participant_sessions_connection: ['participant_sessions', { connection: 0 }],
  session_tracks_source: ['session_tracks', { source: 'camera' }, { kind: 'video' }, { kind: 'data' }],
  session_tracks_track_id_length: ['session_tracks', { track_id: '' }, { track_id: 'x'.repeat(65) }],
  media_nodes_state: ['media_nodes', { state: 'frozen' }],
  media_forwards_state: ['media_forwards', { state: 'open' }],
  media_nodes_url: ['media_nodes', { url: 'http://janus', registered_at: AT }],
  media_nodes_capacity: ['media_nodes', { url: 'ws://janus', registered_at: AT, capacity: 0 }],
  media_nodes_region: ['media_nodes', { region: 'eu' }, { url: 'ws://janus', registered_at: AT, region: 'EU' }],
  media_nodes_registered: [
    'media_nodes',
    { url: 'ws://janus' },
    { registered_at: AT },
    { capacity: 1 },
    { heartbeat_at: AT },
  ],
  turn_servers_state: ['turn_servers', { state: 'frozen' }],
  recordings_mode: ['recordings', { mode: 'video' }],
  recordings_layout: ['recordings', { layout: 'circle' }],
  recordings_status: ['recordings', { status: 'running' }],
  recordings_progress: ['recordings', { progress: -1 }, { progress: 101 }],
  recordings_max_duration_seconds: ['recordings', { max_duration_seconds: 0 }, { max_duration_seconds: 86_401 }],
  recordings_ended_at: ['recordings', { ended_at: LATER }, { status: 'processing' }],
  recordings_completed_at: [
    'recordings',
    { completed_at: LATER },
    { status: 'completed', ended_at: LATER },
    { status: 'failed', ended_at: LATER, completed_at: LATER },
  ],
  recordings_deleted_at: ['recordings', { deleted_at: LATER }],
  recording_captures_kind: ['recording_captures', { kind: 'data' }],
  recording_captures_sizes: ['recording_captures', { bytes: 0 }, { chunks: 0 }],
  runtime_operations_status: ['runtime_operations', { status: 'running' }],
  runtime_operations_attempts: [
    'runtime_operations',
    { run: 0 },
    { run_attempts: -1 },
    { run_attempts: 9, attempts: 9 },
    { run_attempts: 2, attempts: 1 },
  ],
  runtime_operations_lease: ['runtime_operations', { lease_token: UUID }, { lease_expires_at: AT }],
  runtime_operations_lease_pending: [
    'runtime_operations',
    { status: 'failed', lease_token: UUID, lease_expires_at: AT },
  ],
  runtime_operations_completed_at: ['runtime_operations', { status: 'completed' }, { completed_at: AT }],
  signing_keys_status: ['signing_keys', { status: 'spare' }],
  signing_keys_private_key: ['signing_keys', { private_key_sealed: null }, { ...RETIRED, private_key_sealed: 's1' }],
  signing_keys_retired: [
    'signing_keys',
    { retired_at: AT },
    { verifies_until: AT },
    { ...RETIRED, retired_at: null },
    { ...RETIRED, verifies_until: null },
  ],
  idempotency_records_key_length: ['idempotency_records', { key: '' }, { key: 'k'.repeat(256) }],
  idempotency_records_hash_length: ['idempotency_records', { request_hash: Buffer.alloc(20) }],
  webhook_endpoints_url_length: ['webhook_endpoints', { url: '' }, { url: 'x'.repeat(2049) }],
  webhook_endpoints_events: ['webhook_endpoints', { events: [] }],
  webhook_endpoints_version: ['webhook_endpoints', { signing_key_version: 0 }],
  webhook_endpoints_next_version: [
    'webhook_endpoints',
    { next_signing_key_version: 2 },
    { next_activates_at: AT },
    { next_signing_key_version: 1, next_activates_at: AT },
  ],
  webhook_endpoints_ordering: ['webhook_endpoints', { ordering: 'environment' }],
  webhook_endpoints_max_per_second: ['webhook_endpoints', { max_per_second: 0 }, { max_per_second: 1001 }],
  webhook_endpoints_max_concurrent: ['webhook_endpoints', { max_concurrent: 0 }, { max_concurrent: 101 }],
  webhook_endpoints_filter_object: ['webhook_endpoints', { filter: '[]' }],
  webhook_endpoints_headers_object: ['webhook_endpoints', { headers: '[]' }],
  webhook_secrets_version: ['webhook_secrets', { version: 0 }],
  events_sequence: ['events', { sequence: null }, { room_id: null }, { sequence: 0 }],
  webhook_deliveries_status: ['webhook_deliveries', { status: 'sent' }],
  webhook_deliveries_failure_reason: ['webhook_deliveries', { status: 'failed', failure_reason: 'unlucky' }],
  webhook_deliveries_failed: ['webhook_deliveries', { status: 'failed' }, { failure_reason: 'rejected' }],
  webhook_deliveries_replay_count: ['webhook_deliveries', { replay_count: -1 }, { replay_count: 101 }],
  webhook_deliveries_run_attempts: ['webhook_deliveries', { run_attempts: -1 }, { run_attempts: 9 }],
  webhook_deliveries_pinned: ['webhook_deliveries', { url: 'https://example.com' }, { secret_version: 1 }],
  webhook_deliveries_lease: [
    'webhook_deliveries',
    { status: 'delivering' },
    { lease_token: UUID, lease_expires_at: AT },
    { status: 'delivering', lease_token: UUID },
  ],
  webhook_attempts_outcome: ['webhook_attempts', { outcome: 'lost' }],
  webhook_attempts_attempt: ['webhook_attempts', { attempt: 0 }, { attempt: 9 }],
  webhook_attempts_blocked: ['webhook_attempts', { outcome: 'blocked', address: '10.0.0.1' }],
  webhook_recoveries_status: ['webhook_recoveries', { status: 'running' }],
  webhook_recoveries_lease: ['webhook_recoveries', { lease_token: UUID }, { lease_expires_at: AT }],
};

/** For each partial unique index: a row that conflicts with the valid one, and rows that do not. */
const PARTIAL_UNIQUE: Record<string, { table: Table; first?: Row; excluded: Row; allowed: Row[] }> = {
  participant_sessions_live_key: {
    table: 'participant_sessions',
    excluded: {},
    allowed: [{ ended_at: AT, end_reason: 'left' }],
  },
  signing_keys_active_key: { table: 'signing_keys', excluded: {}, allowed: [{ status: 'next' }, RETIRED] },
  signing_keys_next_key: {
    table: 'signing_keys',
    first: { status: 'next' },
    excluded: { status: 'next' },
    allowed: [{ status: 'active' }, RETIRED],
  },
  media_forwards_opening: {
    table: 'media_forwards',
    excluded: { port: 4002 },
    allowed: [
      { port: 4004, state: 'up' },
      { port: 4000, to_node_id: 'c' },
    ],
  },
  events_room_sequence_key: {
    table: 'events',
    excluded: {},
    allowed: [{ sequence: 2 }, { room_id: 'other' }, { room_id: null, sequence: null }],
  },
};

let client: pg.Client;
beforeAll(async () => {
  client = new pg.Client((await createTestDatabase()).url);
  await client.connect();
});
afterAll(() => client.end());

describe('check constraints', () => {
  test('equal the list of this test, and all are validated', async () => {
    const { rows } = await client.query<{ conname: string; convalidated: boolean }>(
      `SELECT conname, convalidated FROM pg_constraint
       WHERE contype = 'c' AND connamespace = 'public'::regnamespace`,
    );
    expect(rows.map((row) => row.conname).sort()).toEqual(Object.keys(CHECKS).sort());
    expect(rows.every((row) => row.convalidated)).toBe(true);
  });

  test('accept a valid row of each table', async () => {
    await inTransaction(async () => {
      await insertRowsBefore(client);
    });
  });

  test.each(Object.entries(CHECKS))('reject a row that violates %s', async (name, [table, ...violations]) => {
    for (const violation of violations) {
      await inTransaction(async () => {
        await insertRowsBefore(client, table);
        // Some rows violate two constraints; without the others, this one must reject the row.
        for (const other of await checksOf(table)) {
          if (other !== name) await client.query(`ALTER TABLE "${table}" DROP CONSTRAINT "${other}"`);
        }
        await expect(insertRow(client, table, violation)).rejects.toMatchObject({ code: '23514', constraint: name });
      });
    }
  });
});

describe('partial unique indexes', () => {
  test('equal the list of this test', async () => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT indexrelid::regclass::text AS name FROM pg_index
       WHERE indisunique AND indpred IS NOT NULL AND indisvalid
         AND indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)`,
    );
    expect(rows.map((row) => row.name).sort()).toEqual(Object.keys(PARTIAL_UNIQUE).sort());
  });

  test.each(Object.entries(PARTIAL_UNIQUE))(
    'reject a second row only where %s applies',
    async (name, { table, first, excluded, allowed }) => {
      await inTransaction(async () => {
        await insertRowsBefore(client, table);
        await insertRow(client, table, first);
        for (const [index, row] of allowed.entries()) await insertRow(client, table, { ...row, id: `allowed${index}` });
        await expect(insertRow(client, table, { ...excluded, id: 'excluded' })).rejects.toMatchObject({
          code: '23505',
          constraint: name,
        });
      });
    },
  );
});

test('ids sort by their bytes, whatever the collation of the database', async () => {
  const { rows } = await client.query<{ column: string }>(
    `SELECT a.attrelid::regclass || '.' || a.attname AS column
     FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid AND t.relkind = 'r'
     WHERE t.relnamespace = 'public'::regnamespace AND t.relname <> '_prisma_migrations'
       AND (a.attname = 'id' OR a.attname LIKE '%\\_id') AND a.attname <> 'external_id'
       AND a.attcollation NOT IN (0, '"C"'::regcollation)`,
  );
  expect(rows).toEqual([]);
});

async function checksOf(table: Table): Promise<string[]> {
  const { rows } = await client.query<{ conname: string }>(
    "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = $1::regclass",
    [table],
  );
  return rows.map((row) => row.conname);
}

async function inTransaction(work: () => Promise<void>): Promise<void> {
  await client.query('BEGIN');
  try {
    await work();
  } finally {
    await client.query('ROLLBACK');
  }
}
