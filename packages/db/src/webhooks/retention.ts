import type { TypedSql } from '../client/database.js';
import { deleteBatch } from '../client/sql.js';
import { Prisma } from '../generated/client.js';
import { IS_OPEN } from './webhooks.sql.js';

/** Each function deletes one batch: locked rows are skipped, so it never waits for a lock and holds none for long. */

/**
 * Deletes terminal deliveries with their attempts, `days` days after their latest terminal outcome, oldest first.
 * @param from the cursor of the last batch; null starts from the beginning. With it, a batch does not read the rows
 * again that earlier batches have deleted, which an old snapshot keeps in the index (docs/decisions/0007).
 * @returns `next` is the cursor of this batch; null when it found no delivery.
 */
export async function deleteOldDeliveries(
  db: TypedSql,
  days: number,
  limit: number,
  from: Date | null = null,
): Promise<{ deleted: number; next: Date | null }> {
  const [batch] = await db.$queryRaw<[{ deleted: number; next: Date | null }]>`
    WITH old AS MATERIALIZED (
      SELECT id, completed_at FROM webhook_deliveries
      WHERE status IN ('succeeded', 'failed') AND completed_at <= now() - ${days}::int * interval '1 day'
        AND completed_at >= ${(from ?? new Date(0)).toISOString()}::timestamptz
      ORDER BY completed_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), deleted AS (
      DELETE FROM webhook_deliveries WHERE id = ANY(ARRAY(SELECT id FROM old)) RETURNING 1
    )
    SELECT (SELECT count(*)::int FROM deleted) AS deleted, (SELECT max(completed_at) FROM old) AS next`;
  return batch;
}

/**
 * Deletes events that are at least `days` days old and that no delivery refers to. Walks through them by time with a
 * cursor, so that batches do not read events again that a delivery keeps. The ids of a batch are neighbours in each index
 * and an array, for which PostgreSQL reads a page of the index once; a join descends from the root for each id.
 * @param from the cursor of the last batch; null starts from the beginning.
 * @returns `next` is the cursor of this batch; null when it found no event.
 */
export async function deleteOldEvents(
  db: TypedSql,
  days: number,
  limit: number,
  from: { createdAt: Date; id: string } | null,
): Promise<{ deleted: number; next: { createdAt: Date; id: string } | null; isMore: boolean }> {
  const after = from ?? { createdAt: new Date(0), id: '' };
  const [batch] = await db.$queryRaw<{ seen: number; deleted: number; createdAt: Date | null; id: string | null }[]>`
    WITH old AS MATERIALIZED (
      SELECT id, created_at FROM events
      WHERE created_at <= now() - ${days}::int * interval '1 day'
        AND (created_at, id) > (${after.createdAt.toISOString()}::timestamptz, ${after.id})
      ORDER BY created_at, id LIMIT ${limit}
    ), kept AS MATERIALIZED (
      SELECT event_id FROM webhook_deliveries WHERE event_id = ANY(ARRAY(SELECT id FROM old))
    ), unused AS MATERIALIZED (
      SELECT id FROM events WHERE id = ANY(ARRAY(SELECT id FROM old EXCEPT SELECT event_id FROM kept))
      FOR UPDATE SKIP LOCKED
    ), deleted AS (
      DELETE FROM events WHERE id = ANY(ARRAY(SELECT id FROM unused)) RETURNING 1
    )
    SELECT (SELECT count(*)::int FROM old) AS seen, (SELECT count(*)::int FROM deleted) AS deleted,
      (SELECT created_at FROM old ORDER BY created_at DESC, id DESC LIMIT 1) AS "createdAt",
      (SELECT id FROM old ORDER BY created_at DESC, id DESC LIMIT 1) AS id`;
  if (batch === undefined || batch.createdAt === null || batch.id === null)
    return { deleted: 0, next: null, isMore: false };
  return { deleted: batch.deleted, next: { createdAt: batch.createdAt, id: batch.id }, isMore: batch.seen === limit };
}

/**
 * Deletes secrets that are older than the current one and that no open run is pinned to. A replaced secret is kept for
 * an hour, because a concurrent claim may still pin it: by `updated_at`, which every rotation sets, or after an
 * activation by time.
 */
export function deleteUnusedSecrets(db: TypedSql, limit: number): PromiseLike<number> {
  const rows = Prisma.sql`
    SELECT target.endpoint_id, target.version
    FROM webhook_secrets target JOIN webhook_endpoints e ON e.id = target.endpoint_id
    WHERE target.version < CASE
        WHEN e.next_activates_at <= now() - interval '1 hour' THEN e.next_signing_key_version
        WHEN e.updated_at <= now() - interval '1 hour' THEN e.signing_key_version END
      AND NOT EXISTS (
        SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = target.endpoint_id
          AND ${IS_OPEN} AND d.secret_version = target.version)`;
  return deleteBatch(db, 'webhook_secrets', { rows, limit, key: '(endpoint_id, version)' });
}

export function deleteOldRecoveries(db: TypedSql, days: number, limit: number): PromiseLike<number> {
  const rows = Prisma.sql`
    SELECT target.id FROM webhook_recoveries target
    WHERE target.status <> 'pending' AND target.completed_at <= now() - ${days}::int * interval '1 day'`;
  return deleteBatch(db, 'webhook_recoveries', { rows, limit });
}

/** With their secrets. Keeps endpoints that a delivery or recovery refers to. */
export function deleteEmptyEndpoints(db: TypedSql, days: number, limit: number): PromiseLike<number> {
  const rows = Prisma.sql`
    SELECT target.id FROM webhook_endpoints target
    WHERE target.deleted_at <= now() - ${days}::int * interval '1 day'
      AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = target.id)
      AND NOT EXISTS (SELECT 1 FROM webhook_recoveries r WHERE r.endpoint_id = target.id)`;
  return deleteBatch(db, 'webhook_endpoints', { rows, limit });
}
