import type { Db } from '../client/database.js';

/** One request that may be repeated: a key is known per environment and route. */
export interface IdempotencyScope {
  environmentId: string;
  /** Method and route pattern, e.g. `POST /v1/rooms`. */
  route: string;
  key: string;
}

export interface IdempotencyRecord {
  requestHash: Uint8Array;
  responseStatus: number;
  responseBody: string;
}

/**
 * Holds the key until the transaction ends, without waiting: false when a request with it is under way. (Waiting on
 * the unique index instead would tie up a connection for each repetition.)
 * @param lockId 64 bits that stand for the scope, in decimal.
 */
export async function tryLockIdempotencyKey(tx: Db, lockId: bigint): Promise<boolean> {
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
  record: { requestHash: Uint8Array<ArrayBuffer>; responseStatus: number; responseBody: string },
  times: { createdAt: Date; expiresAt: Date },
): Promise<void> {
  // An expired record that the sweep has not deleted yet gives way.
  await tx.idempotencyRecord.upsert({
    where: { environmentId_route_key: { environmentId: scope.environmentId, route: scope.route, key: scope.key } },
    create: { ...scope, ...record, ...times },
    update: { ...record, ...times },
  });
}

/** Deletes up to `limit` expired records; returns how many. */
export async function deleteExpiredIdempotencyRecords(db: Db, now: Date, limit: number): Promise<number> {
  return db.$executeRaw`
    DELETE FROM idempotency_records WHERE ctid IN (
      SELECT ctid FROM idempotency_records WHERE expires_at <= ${now} LIMIT ${limit} FOR UPDATE SKIP LOCKED
    )`;
}
