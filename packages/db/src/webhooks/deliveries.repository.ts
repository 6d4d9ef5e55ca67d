import {
  decideReplay,
  decideRetry,
  type AttemptExchange,
  type AttemptOutcome,
  type DeliveryFailureReason,
  type DeliveryStatus,
  type EventType,
  type ReplayConflict,
  type RetryConflict,
  type Tenant,
} from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { Prisma, type WebhookAttempt } from '../generated/client.js';
import { DUE_ENDPOINT, type DueEndpoint } from './due-endpoints.js';
import { BRING_FORWARD, IS_OPEN, isErased, SIGNING_KEY_VERSION, START_RUN } from './webhooks.sql.js';

export interface DeliveryRow {
  id: string;
  eventId: string;
  eventType: EventType;
  endpointId: string;
  roomId: string | null;
  /** URL of this run once it is pinned, otherwise the endpoint's current URL; likewise for the key version. */
  url: string;
  signingKeyVersion: number;
  status: DeliveryStatus;
  failureReason: DeliveryFailureReason | null;
  replayCount: number;
  attempts: number;
  /** Of the latest attempt over all runs; both are null before it has ended. */
  lastStatusCode: number | null;
  lastErrorCode: string | null;
  /** Null unless the delivery is pending, its endpoint is enabled and it waits for no other delivery. */
  nextAttemptAt: Date | null;
  /** The delivery of an earlier event of the room that this one waits for, if the endpoint gets rooms in order. */
  blockedBy: string | null;
  createdAt: Date;
  /** Time of the latest terminal outcome. */
  completedAt: Date | null;
}

/** The stored log of one attempt. `exchange` is null if the worker died during the attempt. */
export type AttemptRow = Omit<WebhookAttempt, 'outcome' | 'exchange'> & {
  outcome: AttemptOutcome;
  exchange: AttemptExchange | null;
};

export const DELIVERY_COLUMNS = Prisma.sql`d.id, d.event_id AS "eventId", d.event_type AS "eventType", d.endpoint_id AS "endpointId",
    d.room_id AS "roomId", latest.status_code AS "lastStatusCode", latest.error_code AS "lastErrorCode",
    coalesce(d.url, e.url) AS url, coalesce(d.secret_version, ${SIGNING_KEY_VERSION}) AS "signingKeyVersion",
    d.status, d.failure_reason AS "failureReason", d.replay_count AS "replayCount", d.run_attempts AS attempts,
    CASE WHEN d.status = 'pending' AND e.enabled AND blocker.id IS NULL THEN d.due_at END AS "nextAttemptAt",
    blocker.id AS "blockedBy", d.created_at AS "createdAt", d.completed_at AS "completedAt"`;
/** The tables of {@link DELIVERY_COLUMNS}. The first open delivery of a delivery's line is its blocker. */
export const DELIVERY_TABLES = Prisma.sql`
    webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
    LEFT JOIN LATERAL (
      SELECT id FROM webhook_deliveries
      WHERE d.status = 'pending' AND e.ordering = 'room' AND endpoint_id = d.endpoint_id AND room_id = d.room_id
        AND (replay_count > 0) = (d.replay_count > 0) AND ${IS_OPEN} AND sequence < d.sequence
      ORDER BY sequence LIMIT 1
    ) blocker ON true
    LEFT JOIN LATERAL (
      SELECT a.status_code, a.error_code FROM webhook_attempts a WHERE a.delivery_id = d.id ORDER BY a.id DESC LIMIT 1
    ) latest ON true`;

export async function findDelivery(
  db: TypedSql,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
): Promise<DeliveryRow | null> {
  const [row] = await db.$queryRaw<DeliveryRow[]>`
    SELECT ${DELIVERY_COLUMNS} FROM ${DELIVERY_TABLES}
    WHERE d.id = ${deliveryId} AND d.endpoint_id = ${endpointId} AND d.environment_id = ${tenant.environmentId}`;
  return row ?? null;
}

/**
 * Reads a delivery, the JSON text of its event and its attempts, newest first over all runs. Separate statements could
 * show a delivery as `delivering` beside the attempt that has ended it.
 */
export async function findDeliveryDetail(
  db: TypedSql,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
  attemptsMax: number,
): Promise<{ delivery: DeliveryRow; eventBody: string; attempts: AttemptRow[] } | null> {
  const [row] = await db.$queryRaw<(DeliveryRow & { eventBody: string; recent: StoredAttempt[] })[]>`
    SELECT ${DELIVERY_COLUMNS}, v.body AS "eventBody", coalesce(a.recent, '[]'::jsonb) AS recent
    FROM ${DELIVERY_TABLES} JOIN events v ON v.id = d.event_id
    LEFT JOIN LATERAL (
      SELECT jsonb_agg(to_jsonb(recent) ORDER BY recent.id DESC) AS recent FROM (
        SELECT id, delivery_id AS "deliveryId", replay_count AS "replayCount", attempt, url,
          signing_key_version AS "signingKeyVersion", started_at AS "startedAt", duration_ms AS "durationMs", outcome,
          error_code AS "errorCode", status_code AS "statusCode", address, dns_ms AS "dnsMs", connect_ms AS "connectMs",
          tls_ms AS "tlsMs", first_byte_ms AS "firstByteMs", response_body AS "responseBody",
          response_truncated AS "responseTruncated", exchange
        FROM webhook_attempts WHERE delivery_id = d.id ORDER BY id DESC LIMIT ${attemptsMax}
      ) recent
    ) a ON true
    WHERE d.id = ${deliveryId} AND d.endpoint_id = ${endpointId} AND d.environment_id = ${tenant.environmentId}`;
  if (row === undefined) return null;
  const { eventBody, recent, ...delivery } = row;
  return {
    delivery,
    eventBody,
    attempts: recent.map((attempt) => ({ ...attempt, startedAt: new Date(attempt.startedAt) })),
  };
}

type StoredAttempt = Omit<AttemptRow, 'startedAt'> & { startedAt: string };

/** Lists attempts newest first, over all runs. The caller has checked that the delivery belongs to the tenant. */
export async function listAttempts(
  db: Db,
  deliveryId: string,
  page: { beforeId: string | null; limit: number },
): Promise<AttemptRow[]> {
  const attempts = await db.webhookAttempt.findMany({
    where: { deliveryId, ...(page.beforeId === null ? {} : { id: { lt: page.beforeId } }) },
    orderBy: { id: 'desc' },
    take: page.limit,
  });
  return attempts as unknown as AttemptRow[];
}

type NotLocked = { ok: false; conflict: 'no endpoint' | 'no delivery' };
export type ReplayResult =
  | { ok: true; delivery: DeliveryRow; wake: DueEndpoint }
  | NotLocked
  | { ok: false; conflict: ReplayConflict; replayCount: number };

/**
 * Starts a new run of a finished delivery, with the endpoint's current URL and secret. The row's lock lets one of
 * several concurrent replays through, and the changed count rejects the others.
 * @param expectedReplayCount the count that the caller has read.
 */
export async function replayDelivery(
  tx: TypedSql,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
  expectedReplayCount: number,
): Promise<ReplayResult> {
  const locked = await lockDelivery(tx, tenant, endpointId, deliveryId);
  if (!locked.ok) return locked;
  const { row, endpoint } = locked;
  const isErased = await holdEvent(tx, row.eventId);
  const conflict = decideReplay({ ...row, isErased, isEnabled: endpoint.enabled, expectedReplayCount });
  if (conflict !== null) return { ok: false, conflict, replayCount: row.replayCount };
  return { ok: true, delivery: await change(tx, tenant, endpointId, deliveryId, START_RUN), wake: endpoint };
}

export type RetryResult =
  | { ok: true; delivery: DeliveryRow; wake: DueEndpoint }
  | NotLocked
  | { ok: false; conflict: RetryConflict };

/**
 * Brings the next attempt of a pending delivery forward to now. The run, its attempts and the replay count stay. Changes
 * nothing if the attempt is due already. The row's lock decides between this and a claim: a claim skips the locked row,
 * and a row that is claimed first is in flight here.
 */
export async function retryDelivery(
  tx: TypedSql,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
): Promise<RetryResult> {
  const locked = await lockDelivery(tx, tenant, endpointId, deliveryId);
  if (!locked.ok) return locked;
  const { row, endpoint } = locked;
  const conflict = decideRetry({ status: row.status, isEnabled: endpoint.enabled });
  if (conflict !== null) return { ok: false, conflict };
  return { ok: true, delivery: await change(tx, tenant, endpointId, deliveryId, BRING_FORWARD), wake: endpoint };
}

type LockedRow = Pick<DeliveryRow, 'status' | 'replayCount' | 'eventId'>;
type HeldEndpoint = DueEndpoint & { enabled: boolean };

/**
 * Locks a delivery, and its endpoint against changes, disabling and deletion, until the transaction ends: the delivery
 * first, like every other transaction.
 */
async function lockDelivery(
  tx: TypedSql,
  { environmentId }: Tenant,
  endpointId: string,
  deliveryId: string,
): Promise<NotLocked | { ok: true; row: LockedRow; endpoint: HeldEndpoint }> {
  const [row] = await tx.$queryRaw<LockedRow[]>`
    SELECT status, replay_count AS "replayCount", event_id AS "eventId" FROM webhook_deliveries
    WHERE id = ${deliveryId} AND endpoint_id = ${endpointId} AND environment_id = ${environmentId}
    FOR NO KEY UPDATE`;
  const [endpoint] = await tx.$queryRaw<HeldEndpoint[]>`
    SELECT enabled, ${DUE_ENDPOINT} FROM webhook_endpoints e
    WHERE id = ${endpointId} AND environment_id = ${environmentId} AND deleted_at IS NULL FOR SHARE`;
  if (endpoint === undefined) return { ok: false, conflict: 'no endpoint' };
  return row === undefined ? { ok: false, conflict: 'no delivery' } : { ok: true, row, endpoint };
}

async function change(
  tx: TypedSql,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
  assignments: Prisma.Sql,
): Promise<DeliveryRow> {
  await tx.$executeRaw`UPDATE webhook_deliveries SET ${assignments} WHERE id = ${deliveryId}`;
  const delivery = await findDelivery(tx, tenant, endpointId, deliveryId);
  if (delivery === null) throw new Error(`delivery ${deliveryId} is locked but no longer exists`);
  return delivery;
}

/** Prevents the erasure of an event until the transaction ends; true when it was erased or an erasure is pending. */
async function holdEvent(tx: TypedSql, eventId: string): Promise<boolean> {
  const [event] = await tx.$queryRaw<{ erased: boolean }[]>`
    SELECT ${isErased} AS erased FROM events v WHERE v.id = ${eventId} FOR SHARE OF v`;
  return event?.erased ?? true;
}
