import { INSTANCE_DEAD_MS } from '@callplane/core';
import type { TypedSql } from '../client/database.js';

/** Facts about PostgreSQL that `rtc doctor` checks. */
export interface DatabaseFacts {
  /** Such as 180004. */
  versionNumber: number;
  version: string;
  /** How the database stores text: `UTF8`. */
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
  /** Signaling processes with a recent heartbeat. */
  signalingInstances: number;
  projects: number;
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
      (SELECT count(*)::int FROM projects) AS projects`;
  return facts;
}
