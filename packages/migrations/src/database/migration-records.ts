import { setTimeout as delay } from 'node:timers/promises';
import { SCRIPT_LOCK_KEY } from '../scripts/run-script.js';
import { withConnection, type ConnectionFields } from './connection.js';

const RETRY_MS = 200;
/** Longer than PostgreSQL takes to end the session of a migrator that was killed. */
const WAIT_MS_MAX = 15 * 60_000;

/**
 * Records of migrations that began and neither ended nor failed with an error. The mark of a commit outweighs an error
 * that the migrator saw after it.
 */
const INTERRUPTED = `finished_at IS NULL AND rolled_back_at IS NULL
  AND (coalesce(logs, '') = '' OR applied_steps_count > 0)`;

/**
 * Settles the records of migrators that were killed or lost their connection, so that their migrations go on. A
 * transaction that has committed has marked its record; every other migration runs again. Call it under the migration
 * lock.
 */
export function settleInterrupted(fields: ConnectionFields): Promise<void> {
  return withConnection(fields, async (client) => {
    const { rows: tables } = await client.query<{ found: boolean }>(
      `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS found`,
    );
    if (tables[0]?.found !== true) return;
    const { rowCount } = await client.query(`SELECT 1 FROM _prisma_migrations WHERE ${INTERRUPTED}`);
    if (rowCount === 0) return;
    // The session of the killed migrator may still run its script, and mark its record.
    for (let waitedMs = 0; ; waitedMs += RETRY_MS) {
      const { rows } = await client.query<{ free: boolean }>('SELECT pg_try_advisory_lock($1) AS free', [
        SCRIPT_LOCK_KEY,
      ]);
      if (rows[0]?.free === true) break;
      if (waitedMs >= WAIT_MS_MAX) throw new Error('The session of a killed migrator has not ended for 15 minutes.');
      await delay(RETRY_MS);
    }
    await client.query(`UPDATE _prisma_migrations SET finished_at = now()
      WHERE ${INTERRUPTED} AND applied_steps_count > 0`);
    await client.query(`UPDATE _prisma_migrations SET rolled_back_at = now() WHERE ${INTERRUPTED}`);
  });
}

/** Lets a migration that could not lock its tables be applied again. Call it under the migration lock. */
export function settleUnlocked(fields: ConnectionFields): Promise<void> {
  return withConnection(fields, async (client) => {
    await client.query(
      'UPDATE _prisma_migrations SET rolled_back_at = now() WHERE finished_at IS NULL AND rolled_back_at IS NULL',
    );
  });
}

/** Counts one step for each migration, as Prisma does. The mark of a transaction and the engine count it twice. */
export function correctCounts(fields: ConnectionFields): Promise<void> {
  return withConnection(fields, async (client) => {
    await client.query(
      'UPDATE _prisma_migrations SET applied_steps_count = 1 WHERE finished_at IS NOT NULL AND applied_steps_count > 1',
    );
  });
}
