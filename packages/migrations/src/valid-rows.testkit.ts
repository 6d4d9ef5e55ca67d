import type pg from 'pg';

export type Row = Record<string, unknown>;

export const AT = '2030-01-01T00:00:00.000Z';
export const LATER = '2030-01-01T00:01:00.000Z';

/** One valid row of each table, in the order of their references; a test case changes some of its columns. */
const VALID = {
  projects: { id: 'proj', name: 'p', created_at: AT },
  environments: { id: 'env', project_id: 'proj', name: 'e', created_at: AT },
  api_keys: {
    id: 'key',
    environment_id: 'env',
    type: 'secret',
    key_hash: Buffer.alloc(32),
    key_hint: 'abcd',
    scopes: [],
    created_at: AT,
  },
  console_sessions: {
    id: 'cses',
    environment_id: 'env',
    code_hash: Buffer.alloc(32),
    scopes: [],
    read_only: false,
    lifetime_seconds: 60,
    created_at: AT,
    expires_at: LATER,
  },
  rooms: {
    id: 'room',
    environment_id: 'env',
    name: 'r',
    metadata: {},
    status: 'created',
    max_participants: 1,
    created_at: AT,
  },
  participants: {
    id: 'part',
    environment_id: 'env',
    room_id: 'room',
    name: 'p',
    metadata: {},
    role: 'participant',
    created_at: AT,
    token_expires_at: LATER,
  },
  participant_tokens: { id: 'tok', participant_id: 'part', permissions: [], created_at: AT, expires_at: LATER },
  participant_sessions: {
    id: 'sess',
    environment_id: 'env',
    room_id: 'room',
    participant_id: 'part',
    started_at: AT,
  },
  session_tracks: {
    session_id: 'sess',
    track_id: 'track',
    kind: 'audio',
    source: 'microphone',
    feed_id: 'feed',
    mid: '0',
    muted: false,
    published_at: AT,
  },
  signaling_instances: { id: 'instance' },
  media_nodes: { id: 'node' },
  media_forwards: {
    id: 'feed+00000001',
    environment_id: 'env',
    room_id: 'room',
    session_id: 'sess',
    feed_id: 'feed',
    from_node_id: 'a',
    to_node_id: 'b',
    port: 4000,
    created_at: AT,
    wanted_until: AT,
  },
  turn_servers: { address: 'a:1', state: 'up', checked_at: AT },
  recordings: {
    id: 'rec',
    environment_id: 'env',
    room_id: 'room',
    mode: 'tracks',
    audio_only: false,
    metadata: {},
    max_duration_seconds: 60,
    status: 'recording',
    started_at: AT,
  },
  recording_captures: {
    room_id: 'room',
    node_id: 'm1',
    name: 'file',
    kind: 'audio',
    feed_id: 'feed',
    section: 0,
    started_at: AT,
    shipped_at: AT,
    bytes: 1,
    chunks: 1,
    closed: false,
  },
  recording_spans: {
    room_id: 'room',
    participant_id: 'part',
    session_id: 'sess',
    track_id: 'track',
    kind: 'audio',
    source: 'microphone',
    feed_id: 'feed',
    mid: '0',
    muted: false,
    started_at: AT,
  },
  runtime_operations: {
    id: 'op',
    environment_id: 'env',
    room_id: 'room',
    kind: 'room.end',
    subject_id: 'room',
    status: 'pending',
    created_at: AT,
  },
  signing_keys: {
    id: 'kid',
    status: 'active',
    public_jwk: {},
    private_key_sealed: 's1',
    created_at: AT,
    activates_at: AT,
  },
  idempotency_records: {
    environment_id: 'env',
    route: 'POST /v1/rooms',
    key: 'k',
    request_hash: Buffer.alloc(32),
    made: '{}',
    created_at: AT,
    expires_at: LATER,
  },
  webhook_endpoints: {
    id: 'whep',
    environment_id: 'env',
    url: 'https://example.com',
    events: ['*'],
    enabled: true,
    signing_key_version: 1,
    created_at: AT,
    updated_at: AT,
  },
  webhook_secrets: { endpoint_id: 'whep', version: 1, secret_sealed: 's1', created_at: AT },
  events: {
    id: 'evt',
    environment_id: 'env',
    type: 'room.created',
    room_id: 'room',
    sequence: 1,
    body: '{}',
    created_at: AT,
  },
  participant_erasures: { participant_id: 'part', environment_id: 'env' },
  webhook_deliveries: {
    id: 'dlv',
    environment_id: 'env',
    endpoint_id: 'whep',
    event_id: 'evt',
    event_type: 'room.created',
    status: 'pending',
    created_at: AT,
  },
  webhook_attempts: {
    id: 'att',
    delivery_id: 'dlv',
    endpoint_id: 'whep',
    replay_count: 0,
    attempt: 1,
    url: 'https://example.com',
    signing_key_version: 1,
    started_at: AT,
    duration_ms: 1,
    outcome: 'success',
  },
  webhook_recoveries: {
    id: 'rcv',
    environment_id: 'env',
    endpoint_id: 'whep',
    since: AT,
    until: LATER,
    dry_run: false,
    status: 'pending',
    created_at: AT,
  },
} satisfies Record<string, Row>;
export type Table = keyof typeof VALID;

/** Inserts the valid rows of all tables before this one; without a table, of all. */
export async function insertRowsBefore(client: pg.Client, table?: Table): Promise<void> {
  const tables = Object.keys(VALID) as Table[];
  for (const earlier of table === undefined ? tables : tables.slice(0, tables.indexOf(table))) {
    // No row refers to operations, and they would conflict with each other.
    if (table === undefined || earlier !== 'runtime_operations') await insertRow(client, earlier);
  }
}

export async function insertRow(client: pg.Client, table: Table, changes: Row = {}): Promise<void> {
  const row: Row = { ...VALID[table], ...changes };
  const columns = Object.keys(row).map((column) => `"${column}"`);
  const values = columns.map((_, index) => `$${index + 1}`);
  await client.query(
    `INSERT INTO "${table}" (${columns.join(', ')}) VALUES (${values.join(', ')})`,
    Object.values(row),
  );
}
