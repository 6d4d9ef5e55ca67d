import type { TypedSql } from '../client/database.js';
import { deleteBatch } from '../client/sql.js';
import { Prisma } from '../generated/client.js';

/** Identifies one idempotent request: a key is unique per environment and route. */
interface IdempotencyScope {
  environmentId: string;
  /** Method and route pattern, e.g. `POST /v1/rooms`. */
  route: string;
  key: string;
}

interface IdempotencyRecord {
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
  tx: TypedSql,
  { environmentId, route, key }: IdempotencyScope,
  now: Date,
): Promise<IdempotencyRecord | null> {
  const [record] = await tx.$queryRaw<IdempotencyRecord[]>`
    SELECT request_hash AS "requestHash", made FROM idempotency_records
    WHERE environment_id = ${environmentId} AND route = ${route} AND key = ${key}
      AND expires_at > ${now.toISOString()}::timestamptz`;
  return record ?? null;
}

export async function saveIdempotencyRecord(
  tx: TypedSql,
  { environmentId, route, key }: IdempotencyScope,
  { requestHash, made }: IdempotencyRecord,
  times: { createdAt: Date; expiresAt: Date },
): Promise<void> {
  // Overwrites an expired record that the sweep has not deleted yet.
  await tx.$executeRaw`
    INSERT INTO idempotency_records (environment_id, route, key, request_hash, made, created_at, expires_at)
    VALUES (${environmentId}, ${route}, ${key}, ${requestHash}, ${made}, ${times.createdAt.toISOString()}::timestamptz,
      ${times.expiresAt.toISOString()}::timestamptz)
    ON CONFLICT (environment_id, route, key) DO UPDATE SET request_hash = excluded.request_hash, made = excluded.made,
      created_at = excluded.created_at, expires_at = excluded.expires_at`;
}

export function deleteExpiredIdempotencyRecords(db: TypedSql, now: Date, limit: number): PromiseLike<number> {
  const rows = Prisma.sql`
    SELECT target.ctid FROM idempotency_records target WHERE target.expires_at <= ${now.toISOString()}::timestamptz`;
  return deleteBatch(db, 'idempotency_records', { rows, limit, key: 'ctid' });
}
