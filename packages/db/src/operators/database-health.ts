import { TERMINAL_RETENTION_DAYS } from '@callplane/core';
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
