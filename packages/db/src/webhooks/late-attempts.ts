import { newId, type DeliveryFailureReason } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { ATTEMPT_COLUMNS } from './delivery.sql.js';
import { rounded, type EndedAttempt } from './delivery-leases.js';

/**
 * Logs an attempt that ended after its endpoint was deleted. The deletion has ended the delivery, so the attempt has no
 * lease and changes no outcome. Without the log, it would be unknown whether the receiver got the event. The run and
 * attempt numbers identify the attempt, so a repeated call writes nothing.
 * @returns false when the deletion did not end this delivery, or when the attempt is already logged.
 */
export async function logAttemptOfDeletedEndpoint(
  db: TypedSql,
  { claim, attempt }: Pick<EndedAttempt, 'claim' | 'attempt'>,
): Promise<boolean> {
  const { timings } = attempt;
  const exchange = attempt.exchange === null ? null : JSON.stringify(attempt.exchange);
  const logged = await db.$queryRaw<unknown[]>`
    INSERT INTO webhook_attempts (${ATTEMPT_COLUMNS})
    SELECT ${newId('attempt')}, d.id, d.replay_count, d.run_attempts, ${claim.url}, ${claim.secretVersion}::int,
      ${claim.startedAt.toISOString()}::timestamptz, ${Math.round(attempt.durationMs)}::int, ${attempt.outcome},
      ${attempt.errorCode}, ${attempt.statusCode}::int, ${attempt.address}, ${rounded(timings.dnsMs)}::int,
      ${rounded(timings.connectMs)}::int, ${rounded(timings.tlsMs)}::int, ${rounded(timings.firstByteMs)}::int,
      CASE WHEN v.erased_at IS NULL THEN ${attempt.responseBody}::text END, ${attempt.responseTruncated},
      CASE WHEN v.erased_at IS NULL THEN ${exchange}::jsonb ELSE ${exchange}::jsonb - 'responseHeaders' END
    FROM webhook_deliveries d JOIN events v ON v.id = d.event_id
    WHERE d.id = ${claim.id} AND d.status = 'failed'
      AND d.failure_reason = ${'endpoint_deleted' satisfies DeliveryFailureReason}
      AND d.replay_count = ${claim.replayCount}::int AND d.run_attempts = ${claim.runAttempt}::int
      AND NOT EXISTS (
        SELECT 1 FROM webhook_attempts a
        WHERE a.delivery_id = d.id AND a.replay_count = d.replay_count AND a.attempt = d.run_attempts
      )
    FOR SHARE OF v
    RETURNING 1`;
  return logged.length > 0;
}
