import { attemptPhases, diagnoseAttempt, formatTimestamp, shownRequestHeaders } from '@callplane/core';
import type { AttemptRow, DeliveryRow } from '@callplane/db';

/** A delivery in the form that the API returns. */
export function presentDelivery(delivery: DeliveryRow) {
  return {
    id: delivery.id,
    eventId: delivery.eventId,
    eventType: delivery.eventType,
    endpointId: delivery.endpointId,
    url: delivery.url,
    status: delivery.status,
    failureReason: delivery.failureReason,
    replayCount: delivery.replayCount,
    attempts: delivery.attempts,
    nextAttemptAt: delivery.nextAttemptAt === null ? null : formatTimestamp(delivery.nextAttemptAt),
    blockedBy: delivery.blockedBy,
    signingKeyVersion: delivery.signingKeyVersion,
    createdAt: formatTimestamp(delivery.createdAt),
    completedAt: delivery.completedAt === null ? null : formatTimestamp(delivery.completedAt),
  };
}

/**
 * An attempt in the form that the API returns.
 * @param eventId event of its delivery
 */
export function presentAttempt(attempt: AttemptRow, eventId: string) {
  const { dnsMs, connectMs, tlsMs, firstByteMs, exchange } = attempt;
  const earlierAddresses = exchange?.earlierAddresses ?? [];
  return {
    id: attempt.id,
    deliveryId: attempt.deliveryId,
    replayCount: attempt.replayCount,
    attempt: attempt.attempt,
    url: attempt.url,
    signingKeyVersion: attempt.signingKeyVersion,
    startedAt: formatTimestamp(attempt.startedAt),
    durationMs: attempt.durationMs,
    outcome: attempt.outcome,
    errorCode: attempt.errorCode,
    statusCode: attempt.statusCode,
    address: attempt.address,
    timings: { dnsMs, connectMs, tlsMs, firstByteMs },
    responseBody: attempt.responseBody,
    responseTruncated: attempt.responseTruncated,
    responseHeaders: exchange?.responseHeaders ?? null,
    requestHeaders: exchange?.request ? shownRequestHeaders(exchange.request, { ...attempt, eventId }) : null,
    earlierAddresses,
    phases: attemptPhases({ ...attempt, earlierAddresses }),
    diagnosis: diagnoseAttempt(attempt),
  };
}
