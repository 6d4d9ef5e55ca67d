import type { Db } from '../client/database.js';

/**
 * Each function deletes one batch and returns how many rows it was; call it until that is less than the limit. Rows
 * that somebody holds are skipped, so no lock is waited for and none is held for long.
 */

/** Terminal deliveries with their attempts, so many days after their latest terminal outcome. */
export function deleteOldDeliveries(db: Db, days: number, limit: number): Promise<number> {
  return db.$executeRaw`
    DELETE FROM webhook_deliveries WHERE id IN (
      SELECT id FROM webhook_deliveries
      WHERE status IN ('succeeded', 'failed') AND completed_at <= now() - ${days}::int * interval '1 day'
      ORDER BY completed_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    )`;
}

/**
 * Events that are as old and that no delivery refers to. Walks through them by time: those that are kept by a
 * delivery must not be read again at every batch.
 * @param from where the last batch ended; null to begin.
 * @returns where this one ended; null when there are no more.
 */
export async function deleteOldEvents(
  db: Db,
  days: number,
  limit: number,
  from: { createdAt: Date; id: string } | null,
): Promise<{ deleted: number; next: { createdAt: Date; id: string } | null }> {
  const after = from ?? { createdAt: new Date(0), id: '' };
  const [batch] = await db.$queryRaw<{ seen: number; deleted: number; createdAt: Date | null; id: string | null }[]>`
    WITH old AS (
      SELECT id, created_at FROM events
      WHERE created_at <= now() - ${days}::int * interval '1 day'
        AND (created_at, id) > (${after.createdAt.toISOString()}::timestamptz, ${after.id})
      ORDER BY created_at, id LIMIT ${limit}
    ), deleted AS (
      DELETE FROM events WHERE id IN (
        SELECT v.id FROM events v JOIN old ON old.id = v.id
        WHERE NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event_id = v.id)
        FOR UPDATE OF v SKIP LOCKED
      ) RETURNING 1
    )
    SELECT (SELECT count(*)::int FROM old) AS seen, (SELECT count(*)::int FROM deleted) AS deleted,
      (SELECT created_at FROM old ORDER BY created_at DESC, id DESC LIMIT 1) AS "createdAt",
      (SELECT id FROM old ORDER BY created_at DESC, id DESC LIMIT 1) AS id`;
  if (batch === undefined || batch.createdAt === null || batch.id === null) return { deleted: 0, next: null };
  const next = batch.seen < limit ? null : { createdAt: batch.createdAt, id: batch.id };
  return { deleted: batch.deleted, next };
}

/**
 * Secrets that are not current and that no open run is pinned to. One is kept for an hour after it was replaced: a
 * claim that is under way may still pin it.
 */
export function deleteUnusedSecrets(db: Db, limit: number): Promise<number> {
  return db.$executeRaw`
    DELETE FROM webhook_secrets WHERE (endpoint_id, version) IN (
      SELECT s.endpoint_id, s.version
      FROM webhook_secrets s
        JOIN webhook_endpoints e ON e.id = s.endpoint_id AND s.version < e.signing_key_version
      WHERE EXISTS (
          SELECT 1 FROM webhook_secrets newer WHERE newer.endpoint_id = s.endpoint_id
            AND newer.version > s.version AND newer.created_at <= now() - interval '1 hour')
        AND NOT EXISTS (
          SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = s.endpoint_id
            AND d.status IN ('pending', 'delivering') AND d.secret_version = s.version)
      LIMIT ${limit} FOR UPDATE OF s SKIP LOCKED
    )`;
}

/** Recoveries that ended so long ago. */
export function deleteOldRecoveries(db: Db, days: number, limit: number): Promise<number> {
  return db.$executeRaw`
    DELETE FROM webhook_recoveries WHERE id IN (
      SELECT id FROM webhook_recoveries
      WHERE status <> 'pending' AND completed_at <= now() - ${days}::int * interval '1 day'
      LIMIT ${limit} FOR UPDATE SKIP LOCKED
    )`;
}

/** Deleted endpoints that no delivery and no recovery refers to, with their secrets. */
export function deleteEmptyEndpoints(db: Db, days: number, limit: number): Promise<number> {
  return db.$executeRaw`
    DELETE FROM webhook_endpoints WHERE id IN (
      SELECT e.id FROM webhook_endpoints e
      WHERE e.deleted_at <= now() - ${days}::int * interval '1 day'
        AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.id)
        AND NOT EXISTS (SELECT 1 FROM webhook_recoveries r WHERE r.endpoint_id = e.id)
      LIMIT ${limit} FOR UPDATE OF e SKIP LOCKED
    )`;
}
