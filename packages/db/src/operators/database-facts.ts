import { INSTANCE_DEAD_MS } from '@callplane/core';
import type { TypedSql } from '../client/database.js';

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
