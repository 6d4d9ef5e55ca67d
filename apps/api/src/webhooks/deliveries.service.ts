import {
  attemptPhases,
  diagnoseAttempt,
  formatTimestamp,
  PublicError,
  shownRequestHeaders,
  type DeliveryFailureReason,
  type DeliveryStatus,
  type EventType,
  type Tenant,
} from '@callplane/core';
import {
  findDelivery,
  findDeliveryDetail,
  listAttempts,
  listDeliveries,
  webhookEndpointExisted,
  type AttemptRow,
  type DeliveryDetail,
  type DeliveryRow,
  type ReplayResult,
  type RetryResult,
  type TypedSql,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import type { Page, PageCursor } from '../http/cursor.js';
import { pageById } from '../http/schemas.js';

/** A delivery in the form that the API returns. */
export function presentDelivery(delivery: DeliveryRow) {
  return {
    id: delivery.id,
    eventId: delivery.eventId,
    eventType: delivery.eventType,
    endpointId: delivery.endpointId,
    roomId: delivery.roomId,
    url: delivery.url,
    status: delivery.status,
    failureReason: delivery.failureReason,
    replayCount: delivery.replayCount,
    attempts: delivery.attempts,
    lastStatusCode: delivery.lastStatusCode,
    lastErrorCode: delivery.lastErrorCode,
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

interface DeliveriesQuery {
  /** All endpoints of the environment if it is absent. */
  endpointId?: string;
  roomId?: string;
  status?: DeliveryStatus;
  eventType?: EventType;
  failureReason?: DeliveryFailureReason;
  since?: string;
  until?: string;
  limit?: number;
}

/** Lists deliveries newest first. Also works with the id of a deleted endpoint. */
export async function pageOfDeliveries(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  query: DeliveriesQuery,
  cursor: PageCursor<{ id: string }>,
): Promise<Page<DeliveryRow>> {
  const { prisma, sql } = deps.database;
  const { endpointId = null } = query;
  const filter = {
    endpointId,
    roomId: query.roomId ?? null,
    status: query.status ?? null,
    eventType: query.eventType ?? null,
    failureReason: query.failureReason ?? null,
    since: query.since === undefined ? null : new Date(query.since),
    until: query.until === undefined ? null : new Date(query.until),
  };
  const deliveries = await pageById(cursor, query, (part) => listDeliveries(sql, tenant, filter, part));
  if (
    deliveries.rows.length === 0 &&
    endpointId !== null &&
    !(await webhookEndpointExisted(prisma, tenant, endpointId))
  )
    throw new PublicError('WEBHOOK_NOT_FOUND');
  return deliveries;
}

/** Reads a delivery with its event and its last attempt, from one snapshot. */
export async function readDeliveryDetail(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
): Promise<DeliveryDetail> {
  const detail = await findDeliveryDetail(deps.database.sql, tenant, endpointId, deliveryId, 1);
  return detail ?? notFound(deps, tenant, endpointId);
}

/** Throws the error for the missing resource: the endpoint or the delivery. */
async function notFound(deps: Pick<Deps, 'database'>, tenant: Tenant, endpointId: string): Promise<never> {
  const existed = await webhookEndpointExisted(deps.database.prisma, tenant, endpointId);
  throw new PublicError(existed ? 'DELIVERY_NOT_FOUND' : 'WEBHOOK_NOT_FOUND');
}

export async function pageOfAttempts(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  path: { endpointId: string; deliveryId: string },
  query: { limit?: number },
  cursor: PageCursor<{ id: string }>,
): Promise<Page<AttemptRow> & { eventId: string }> {
  const { sql } = deps.database;
  const delivery = await findDelivery(sql, tenant, path.endpointId, path.deliveryId);
  const { eventId } = delivery ?? (await notFound(deps, tenant, path.endpointId));
  const attempts = await pageById(cursor, query, (part) => listAttempts(deps.database.prisma, path.deliveryId, part));
  return { eventId, ...attempts };
}

/**
 * Sends a delivery again, with a replay or a retry.
 * @throws PublicError for the conflict that forbids it.
 */
export async function sendAgain(
  deps: Pick<Deps, 'database' | 'producer'>,
  change: (tx: TypedSql) => Promise<ReplayResult | RetryResult>,
): Promise<DeliveryRow> {
  const result = await deps.database.transaction(change);
  if (!result.ok) throw refusal(result);
  void deps.producer.wakeDeliveries([result.wake]);
  return result.delivery;
}

function refusal(result: (ReplayResult | RetryResult) & { ok: false }): PublicError {
  switch (result.conflict) {
    case 'no endpoint':
      return new PublicError('WEBHOOK_NOT_FOUND');
    case 'no delivery':
      return new PublicError('DELIVERY_NOT_FOUND');
    case 'REPLAY_COUNT_MISMATCH':
      return new PublicError(result.conflict, {
        details: [{ path: 'body.expectedReplayCount', message: `the replay count is ${result.replayCount}` }],
      });
    default:
      return new PublicError(result.conflict);
  }
}
