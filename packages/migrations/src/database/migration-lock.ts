import { setTimeout as delay } from 'node:timers/promises';
import { withConnection, type ConnectionFields } from './connection.js';

/** An arbitrary fixed number ("call" in ASCII) that no other advisory lock of this database uses. */
const LOCK_KEY = 0x63616c6c;
const RETRY_MS = 200;
/** Longer than any migration should block the others. */
const WAIT_MS_MAX = 15 * 60_000;

/**
 * Runs `work` while no other migrator of this database runs. The lock belongs to a dedicated connection, so PostgreSQL
 * releases it however the process ends. The URL must lead to PostgreSQL itself, not to a pooler that shares sessions
 * between transactions.
 *
 * Polls instead of waiting inside `pg_advisory_lock`: a waiting statement holds a snapshot, and a migration that runs
 * `CREATE INDEX CONCURRENTLY` would wait for that snapshot for ever.
 */
export function withMigrationLock<T>(fields: ConnectionFields, work: () => Promise<T>): Promise<T> {
  return withConnection(fields, async (client) => {
    const retriesMax = WAIT_MS_MAX / RETRY_MS;
    for (let retries = 0; ; retries++) {
      const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [LOCK_KEY]);
      if (rows[0]?.locked === true) return work();
      if (retries >= retriesMax) throw new Error('Another migrator has held the migration lock for 15 minutes.');
      await delay(RETRY_MS);
    }
  });
}
