import { TERMINAL_RETENTION_DAYS, INSTANCE_DEAD_MS } from '@callplane/core';
import type { TypedSql } from '../client/database.js';

/** Tables whose rows change often. docs/data-model.md has the reasons for their autovacuum settings. */
const HOT_TABLES = [
  'events',
  'idempotency_records',
  'participant_sessions',
  'rooms',
  'runtime_operations',
  'signaling_instances',
  'webhook_attempts',
  'webhook_deliveries',
] as const;

export interface TableHealth {
  table: (typeof HOT_TABLES)[number];
  liveRows: number;
  deadRows: number;
  bytes: number;
  /** The last vacuum, automatic or not; null if there was none since the statistics began. */
  vacuumedAt: Date | null;
}

export function readTableHealth(db: TypedSql): PromiseLike<TableHealth[]> {
  return db.$queryRaw<TableHealth[]>`
    SELECT relname::text AS table, n_live_tup::float8 AS "liveRows", n_dead_tup::float8 AS "deadRows",
      pg_total_relation_size(relid)::float8 AS bytes,
      greatest(last_vacuum, last_autovacuum)::timestamptz(3) AS "vacuumedAt"
    FROM pg_stat_user_tables
    WHERE schemaname = current_schema() AND relname = ANY(${[...HOT_TABLES]}::text[]) ORDER BY relname`;
}

export interface OldestSnapshot {
  /** The kind of holder that keeps PostgreSQL from removing dead rows. */
  holder: 'session' | 'prepared' | 'slot' | 'standby';
  /** Number of transactions since the oldest snapshot of this kind; 0 if there is none. */
  transactions: number;
  /** Age of the oldest open transaction, in seconds; null for slots and standbys, which have no time. */
  seconds: number | null;
  /** The process, prepared transaction, slot or standby with the oldest snapshot; null if there is none. */
  name: string | null;
}

/**
 * Reads the oldest snapshot of each kind. Without the rights of `pg_read_all_stats`, it misses sessions and standbys of
 * other database roles.
 */
export function readOldestSnapshots(db: TypedSql): PromiseLike<OldestSnapshot[]> {
  return db.$queryRaw<OldestSnapshot[]>`
    SELECT 'session' AS holder, coalesce(max(age(backend_xmin)), 0)::int AS transactions,
      greatest(0, extract(epoch FROM now() - min(xact_start)))::float8 AS seconds,
      (array_agg(concat_ws(' ', 'pid ' || pid, usename, application_name) ORDER BY xact_start))[1] AS name
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
    UNION ALL
    SELECT 'prepared', coalesce(max(age(transaction)), 0)::int,
      greatest(0, extract(epoch FROM now() - min(prepared)))::float8, (array_agg(gid ORDER BY prepared))[1]
    FROM pg_prepared_xacts
    UNION ALL
    SELECT 'slot', coalesce(max(age), 0)::int, NULL, (array_agg(slot_name::text ORDER BY age DESC))[1]
    FROM pg_replication_slots, LATERAL (SELECT greatest(age(xmin), age(catalog_xmin)) AS age) a WHERE age IS NOT NULL
    UNION ALL
    SELECT 'standby', coalesce(max(age(backend_xmin)), 0)::int, NULL,
      (array_agg(application_name ORDER BY age(backend_xmin) DESC))[1]
    FROM pg_stat_replication WHERE backend_xmin IS NOT NULL`;
}

export type Retained = 'deliveries' | 'idempotency_records' | 'rooms';

/**
 * Reads for how long the oldest row is past its retention, in seconds; 0 if none is.
 * @param roomDays 0: rooms are never deleted.
 */
export async function readRetentionLags(db: TypedSql, roomDays: number): Promise<Partial<Record<Retained, number>>> {
  const [{ rooms, ...lags }] = await db.$queryRaw<[Record<Retained, number>]>`
    SELECT greatest(0, extract(epoch FROM now() - ${TERMINAL_RETENTION_DAYS}::int * interval '1 day' - (
        SELECT min(completed_at) FROM webhook_deliveries WHERE status IN ('succeeded', 'failed'))))::float8 AS deliveries,
      greatest(0, extract(epoch FROM now() - (SELECT min(expires_at) FROM idempotency_records)))::float8
        AS idempotency_records,
      greatest(0, extract(epoch FROM now() - ${roomDays}::int * interval '1 day' - (
        SELECT min(ended_at) FROM rooms WHERE status = 'ended')))::float8 AS rooms`;
  return roomDays === 0 ? lags : { ...lags, rooms };
}

export interface RunningApp {
  /** Such as `webhook-worker`. */
  app: string;
  /** Process id and host, such as `4711@node-2`. */
  instance: string;
  /** Time since its latest statement, in milliseconds; null if this role may not see it. */
  silentMs: number | null;
  /** How far its clock is ahead of PostgreSQL's, in seconds; null unless it is wrong. */
  aheadSeconds: number | null;
}

export interface DatabaseFacts {
  /** Such as 180004. */
  versionNumber: number;
  version: string;
  encoding: string;
  /** By PostgreSQL's clock, at the time of the query. */
  now: Date;
  /** Whether `fsync` and `synchronous_commit` are on: without them, a crash would lose accepted work. */
  durable: boolean;
  connections: number;
  connectionsMax: number;
  /** Ids of the master keys that seal secrets at rest. */
  masterKeyIds: string[];
  activeSigningKeys: number;
  signalingInstances: number;
  projects: number;
  /** By the names of their connections. A worker runs a statement at least every 10 s, its scan. */
  running: RunningApp[];
}

export async function readDatabaseFacts(db: TypedSql): Promise<DatabaseFacts> {
  const [facts] = await db.$queryRaw<[DatabaseFacts]>`
    SELECT current_setting('server_version_num')::int AS "versionNumber", current_setting('server_version') AS version,
      current_setting('server_encoding') AS encoding,
      clock_timestamp()::timestamptz(3) AS now,
      current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off' AS durable,
      (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
      current_setting('max_connections')::int AS "connectionsMax",
      ARRAY(
        SELECT DISTINCT split_part(sealed, '.', 2) FROM (
          SELECT secret_sealed AS sealed FROM webhook_secrets
          UNION ALL SELECT header.value FROM webhook_endpoints, jsonb_each_text(headers) AS header (name, value)
          UNION ALL SELECT private_key_sealed FROM signing_keys WHERE private_key_sealed IS NOT NULL
        ) AS secrets ORDER BY 1
      ) AS "masterKeyIds",
      (SELECT count(*)::int FROM signing_keys WHERE status = 'active') AS "activeSigningKeys",
      (SELECT count(*)::int FROM signaling_instances
        WHERE heartbeat_at > now() - ${INSTANCE_DEAD_MS}::int * interval '1 millisecond') AS "signalingInstances",
      (SELECT count(*)::int FROM projects) AS projects,
      coalesce((
        SELECT jsonb_agg(jsonb_build_object('app', app, 'instance', instance, 'aheadSeconds', ahead,
          'silentMs', (extract(epoch FROM clock_timestamp() - latest) * 1000)::float8) ORDER BY app, instance)
        FROM (
          SELECT split_part(application_name, ' ', 2) AS app, split_part(application_name, ' ', 3) AS instance,
            max(state_change) AS latest, max(substring(application_name FROM '^callplane!(-?\\d+) ')::float8) AS ahead
          FROM pg_stat_activity
          WHERE datname = current_database() AND application_name ~ '^callplane[! ]' GROUP BY 1, 2
        ) AS process
      ), '[]') AS running`;
  return facts;
}

export interface Standby {
  /** Its `application_name`. Null without the rights of `pg_monitor`, like the other fields. */
  name: string | null;
  /** `streaming` if it keeps up. */
  state: string | null;
  /** `sync` or `quorum` if commits wait for it, `potential` or `async` if not. */
  sync: string | null;
  /** Log that it has not replayed yet. */
  lagBytes: number | null;
}

export interface Replication {
  /** `synchronous_standby_names`; empty if commits wait for no standby. */
  synchronousNames: string;
  /** Commits of this role that wait for a standby now. */
  waitingCommits: number;
  standbys: Standby[];
}

export async function readReplication(db: TypedSql): Promise<Replication> {
  const [replication] = await db.$queryRaw<[Replication]>`
    SELECT current_setting('synchronous_standby_names') AS "synchronousNames",
      (SELECT count(*)::int FROM pg_stat_activity WHERE wait_event = 'SyncRep') AS "waitingCommits",
      coalesce((
        SELECT jsonb_agg(jsonb_build_object('name', application_name, 'state', state, 'sync', sync_state,
          'lagBytes', pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint) ORDER BY application_name, pid)
        FROM pg_stat_replication
      ), '[]') AS standbys`;
  return replication;
}

export function isSynchronous({ sync }: Standby): boolean {
  return sync === 'sync' || sync === 'quorum';
}
