import type { Db } from '../client/database.js';

/** What `rtc doctor` judges of PostgreSQL. */
export interface DatabaseFacts {
  /** Such as 180004. */
  versionNumber: number;
  version: string;
  /** By PostgreSQL's clock, at the moment of the answer. */
  now: Date;
  /** `fsync` and `synchronous_commit`: off would lose accepted work in a crash. */
  durable: boolean;
  connections: number;
  connectionsMax: number;
  /** Ids of the master keys that secrets at rest are sealed with. */
  masterKeyIds: string[];
  activeSigningKeys: number;
  /** Signaling processes whose heart beats. */
  signalingInstances: number;
}

export async function readDatabaseFacts(db: Db): Promise<DatabaseFacts> {
  const [facts] = await db.$queryRaw<[DatabaseFacts]>`
    SELECT current_setting('server_version_num')::int AS "versionNumber", current_setting('server_version') AS version,
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
      (SELECT count(*)::int FROM signaling_instances WHERE heartbeat_at > now() - interval '8 seconds')
        AS "signalingInstances"`;
  return facts;
}
