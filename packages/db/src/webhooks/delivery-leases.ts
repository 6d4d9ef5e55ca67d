import {
  newId,
  type AfterAttempt,
  type AttemptExchange,
  type DiagnosedAttempt,
  type EndpointOptions,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { NOTE_STANDING } from './webhooks.sql.js';

/**
 * A delivery that this worker has claimed. All times are PostgreSQL's, so the workers' clocks need not agree. A worker
 * that starts the attempt later adds the time that it has waited, measured on its own clock.
 */
export interface ClaimedDelivery extends EndpointOptions {
  id: string;
  environmentId: string;
  endpointId: string;
  eventId: string;
  eventType: string;
  replayCount: number;
  runAttempt: number;
  /** Pinned for the run, like the version of the secret. */
  url: string;
  secretVersion: number;
  secretSealed: string;
  body: string;
  traceparent: string | null;
  /**
   * Fencing token, one for all deliveries of a turn: after another worker has claimed the row or taken the turn over, a
   * late worker cannot write.
   */
  leaseToken: string;
  startedAt: Date;
  runAgeMs: number;
  /** Time from the due time to the start of the attempt. */
  lagMs: number;
  roomId: string | null;
}

export interface AttemptRecord extends DiagnosedAttempt {
  durationMs: number;
  address: string | null;
  timings: Record<'dnsMs' | 'connectMs' | 'tlsMs' | 'firstByteMs', number | null>;
  responseBody: string | null;
  responseTruncated: boolean;
  /** Null if nothing was sent to any address. */
  exchange: AttemptExchange | null;
}

export interface EndedAttempt {
  claim: Pick<ClaimedDelivery, 'id' | 'leaseToken' | 'url' | 'secretVersion' | 'startedAt'>;
  attempt: AttemptRecord;
  after: AfterAttempt;
  /** Expected duration of the endpoint's next attempt, in milliseconds. */
  slotMs: number;
}

/**
 * A settled attempt. Its key is the delivery with the lease token: a worker may hold two attempts at one delivery if a
 * crash of PostgreSQL undid the claim of the first one.
 */
export interface SettledDelivery {
  id: string;
  leaseToken: string;
}

/**
 * Settles attempts in one statement: writes the log, the deliveries, and the state of the endpoints where it changes.
 * The token decides, not the lease's expiry, unlike for operations: while the row holds the token, no other worker has
 * claimed the delivery, and a late response still counts. A sweep that ends the lease removes the token.
 * @param ended in the order in which the attempts ended.
 * @returns the settled deliveries. A missing one has lost its lease, and nothing was written for it. With several
 *   attempts, a delivery that is currently locked is missing too: settle it alone, which waits for the lock.
 */
export function settleDeliveries(db: TypedSql, ended: readonly EndedAttempt[]): PromiseLike<SettledDelivery[]> {
  const rows = ended.map(toRow);
  const ids = rows.map(({ id }) => id);
  // A statement about several rows delays none for a lock of another, and cannot be part of a deadlock.
  const locked = rows.length > 1 ? Prisma.sql`SKIP LOCKED` : Prisma.empty;
  // With a sub-select, the cost of the plan does not depend on the number of ids. With a plain array, PostgreSQL would
  // plan anew each time, which takes twice as long as the statement itself.
  return db.$queryRaw<SettledDelivery[]>`
    WITH ended AS (
      SELECT new.* FROM webhook_deliveries d
      JOIN json_to_recordset(${JSON.stringify(rows)}::json) AS new (${ENDED_COLUMNS}) ON new.id = d.id
      WHERE d.id = ANY(ARRAY(SELECT unnest(${ids}::text[]))) AND d.lease_token = new.token
      FOR NO KEY UPDATE OF d ${locked}
    ), settled AS (
      UPDATE webhook_deliveries d
      SET status = ended.status, failure_reason = ended.reason, lease_token = NULL, lease_expires_at = NULL,
        completed_at = CASE WHEN ended.delay_ms IS NULL THEN now() ELSE d.completed_at END,
        due_at = CASE WHEN ended.delay_ms IS NULL THEN d.due_at ELSE now() + ended.delay_ms * interval '1 millisecond' END
      FROM ended WHERE d.id = ended.id AND d.lease_token = ended.token
      RETURNING d.endpoint_id, d.replay_count, d.run_attempts, ended.*
    ), logged AS (
      INSERT INTO webhook_attempts (id, delivery_id, endpoint_id, replay_count, attempt, url, signing_key_version, started_at,
        duration_ms, outcome, error_code, status_code, address, dns_ms, connect_ms, tls_ms, first_byte_ms,
        response_body, response_truncated, exchange)
      SELECT attempt_id, id, endpoint_id, replay_count, run_attempts, url, version, started_at, duration_ms, outcome, error_code,
        status_code, address, dns_ms, connect_ms, tls_ms, first_byte_ms, response_body, response_truncated, exchange
      FROM settled
    ), ${NOTE_STANDING}
    SELECT id, token::text AS "leaseToken" FROM settled`;
}

const ENDED_COLUMNS = Prisma.sql`position int, id text, token uuid, status text, reason text, delay_ms int, slot_ms int,
  attempt_id text, url text, version int, started_at timestamptz, duration_ms int, outcome text,
  error_code text, status_code int, address text, dns_ms int, connect_ms int, tls_ms int, first_byte_ms int,
  response_body text, response_truncated boolean, exchange jsonb`;

function toRow({ claim, attempt, after, slotMs }: EndedAttempt, position: number) {
  return {
    position,
    id: claim.id,
    token: claim.leaseToken,
    status: after.status,
    reason: after.status === 'failed' ? after.reason : null,
    delay_ms: after.status === 'pending' ? Math.round(after.delayMs) : null,
    slot_ms: slotMs,
    attempt_id: newId('attempt'),
    url: claim.url,
    version: claim.secretVersion,
    started_at: claim.startedAt.toISOString(),
    duration_ms: Math.round(attempt.durationMs),
    outcome: attempt.outcome,
    error_code: attempt.errorCode,
    status_code: attempt.statusCode,
    address: attempt.address,
    dns_ms: rounded(attempt.timings.dnsMs),
    connect_ms: rounded(attempt.timings.connectMs),
    tls_ms: rounded(attempt.timings.tlsMs),
    first_byte_ms: rounded(attempt.timings.firstByteMs),
    response_body: attempt.responseBody,
    response_truncated: attempt.responseTruncated,
    exchange: attempt.exchange,
  };
}

/**
 * Releases claimed deliveries without counting the attempt, for failures of the worker itself, not of the receiver.
 * Without an attempt, a run is pinned to nothing: its URL or its secret may change before the next claim. A delivery
 * whose lease was lost stays as it is.
 */
export async function releaseDeliveries(
  db: TypedSql,
  claims: readonly Pick<ClaimedDelivery, 'id' | 'leaseToken'>[],
  delayMs: number,
): Promise<void> {
  await db.$executeRaw`
    UPDATE webhook_deliveries d
    SET status = 'pending', run_attempts = run_attempts - 1, lease_token = NULL, lease_expires_at = NULL,
      url = CASE WHEN run_attempts > 1 THEN d.url END,
      secret_version = CASE WHEN run_attempts > 1 THEN d.secret_version END,
      due_at = now() + ${delayMs}::int * interval '1 millisecond'
    FROM unnest(${claims.map(({ id }) => id)}::text[], ${claims.map(({ leaseToken }) => leaseToken)}::uuid[])
      claim (id, lease_token)
    WHERE d.id = claim.id AND d.lease_token = claim.lease_token`;
}

function rounded(milliseconds: number | null): number | null {
  return milliseconds === null ? null : Math.round(milliseconds);
}
