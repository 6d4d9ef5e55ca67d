import type { TypedSql } from '../client/database.js';

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

/** The standbys of PostgreSQL, as its primary sees them. */
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

/** Whether commits wait for this standby. */
export function isSynchronous({ sync }: Standby): boolean {
  return sync === 'sync' || sync === 'quorum';
}
