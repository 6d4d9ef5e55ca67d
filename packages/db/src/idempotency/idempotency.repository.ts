import type { Db, TypedSql } from '../client/database.js';

/** Identifies one idempotent request: a key is unique per environment and route. */
export interface IdempotencyScope {
  environmentId: string;
  /** Method and route pattern, e.g. `POST /v1/rooms`. */
  route: string;
  key: string;
}

export interface IdempotencyRecord {
  requestHash: Uint8Array;
  /** Values that the request generated beside those in its body, as JSON. */
  made: string;
}

/**
 * Locks the key until the transaction ends, without waiting. (Waiting on the unique index instead would occupy a
 * connection for each repeated request.)
 * @param lockId 64-bit hash of the scope.
 * @returns false when another request with the key is in progress.
 */
export async function tryLockIdempotencyKey(tx: TypedSql, lockId: bigint): Promise<boolean> {
  const [row] = await tx.$queryRaw<{ locked: boolean }[]>`
    SELECT pg_try_advisory_xact_lock(${lockId.toString()}::bigint) AS locked`;
  return row?.locked === true;
}

export async function findIdempotencyRecord(
  tx: Db,
  scope: IdempotencyScope,
  now: Date,
): Promise<IdempotencyRecord | null> {
  const record = await tx.idempotencyRecord.findUnique({
    where: { environmentId_route_key: { environmentId: scope.environmentId, route: scope.route, key: scope.key } },
  });
  return record !== null && record.expiresAt > now ? record : null;
}

export async function saveIdempotencyRecord(
  tx: Db,
  scope: IdempotencyScope,
  record: { requestHash: Uint8Array<ArrayBuffer>; made: string },
  times: { createdAt: Date; expiresAt: Date },
): Promise<void> {
  // Overwrites an expired record that the sweep has not deleted yet.
  await tx.idempotencyRecord.upsert({
    where: { environmentId_route_key: { environmentId: scope.environmentId, route: scope.route, key: scope.key } },
    create: { ...scope, ...record, ...times },
    update: { ...record, ...times },
  });
}

/**
 * Deletes up to `limit` expired records, oldest first.
 * @param from `next` of the last batch, so that no batch reads again what earlier ones have deleted; null starts from
 * the beginning.
 */
export async function deleteExpiredIdempotencyRecords(
  db: TypedSql,
  now: Date,
  limit: number,
  from: Date | null = null,
): Promise<{ deleted: number; next: Date | null }> {
  const [batch] = await db.$queryRaw<[{ deleted: number; next: Date | null }]>`
    WITH old AS MATERIALIZED (
      SELECT ctid, expires_at FROM idempotency_records
      WHERE expires_at <= ${now.toISOString()}::timestamptz
        AND expires_at >= ${(from ?? new Date(0)).toISOString()}::timestamptz
      ORDER BY expires_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), deleted AS (
      DELETE FROM idempotency_records WHERE ctid = ANY(ARRAY(SELECT ctid FROM old)) RETURNING 1
    )
    SELECT (SELECT count(*)::int FROM deleted) AS deleted, (SELECT max(expires_at) FROM old) AS next`;
  return batch;
}
