import {
  decideReplay,
  type AttemptOutcome,
  type DeliveryFailureReason,
  type DeliveryStatus,
  type EventType,
  type ReplayConflict,
  type Tenant,
} from '@callplane/core';
import type { Db } from '../client/database.js';
import type { WakeableDelivery } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { holdWebhookEndpoint } from './endpoints.repository.js';

/** A delivery as a caller may see it. */
export interface DeliveryRow {
  id: string;
  eventId: string;
  eventType: EventType;
  endpointId: string;
  /** Of this run once it is pinned, else the endpoint's present one; so too the version. */
  url: string;
  signingKeyVersion: number;
  status: DeliveryStatus;
  failureReason: DeliveryFailureReason | null;
  replayCount: number;
  /** Of this run. */
  attempts: number;
  dueAt: Date;
  createdAt: Date;
  /** Latest terminal outcome. */
  completedAt: Date | null;
}

/** The log of one attempt, as it is stored. */
export interface AttemptRow {
  id: string;
  deliveryId: string;
  replayCount: number;
  attempt: number;
  url: string;
  signingKeyVersion: number;
  startedAt: Date;
  durationMs: number;
  outcome: AttemptOutcome;
  errorCode: string | null;
  statusCode: number | null;
  address: string | null;
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  firstByteMs: number | null;
  responseBody: string | null;
  responseTruncated: boolean;
}

const DELIVERY = Prisma.sql`
  SELECT d.id, d.event_id AS "eventId", d.event_type AS "eventType", d.endpoint_id AS "endpointId",
    coalesce(d.url, e.url) AS url, coalesce(d.secret_version, e.signing_key_version) AS "signingKeyVersion",
    d.status, d.failure_reason AS "failureReason", d.replay_count AS "replayCount", d.run_attempts AS attempts,
    d.due_at AS "dueAt", d.created_at AS "createdAt", d.completed_at AS "completedAt"
  FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id`;

export async function findDelivery(
  db: Db,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
): Promise<DeliveryRow | null> {
  const [row] = await db.$queryRaw<DeliveryRow[]>`
    ${DELIVERY}
    WHERE d.id = ${deliveryId} AND d.endpoint_id = ${endpointId} AND d.environment_id = ${tenant.environmentId}`;
  return row ?? null;
}

/** Newest first. */
export async function listDeliveries(
  db: Db,
  tenant: Tenant,
  endpointId: string,
  page: { status: DeliveryStatus | null; eventType: EventType | null; beforeId: string | null; limit: number },
): Promise<DeliveryRow[]> {
  const conditions = [
    Prisma.sql`d.endpoint_id = ${endpointId}`,
    Prisma.sql`d.environment_id = ${tenant.environmentId}`,
    ...(page.status === null ? [] : [Prisma.sql`d.status = ${page.status}`]),
    ...(page.eventType === null ? [] : [Prisma.sql`d.event_type = ${page.eventType}`]),
    ...(page.beforeId === null ? [] : [Prisma.sql`d.id < ${page.beforeId}`]),
  ];
  return db.$queryRaw<DeliveryRow[]>`
    ${DELIVERY} WHERE ${Prisma.join(conditions, ' AND ')} ORDER BY d.id DESC LIMIT ${page.limit}`;
}

/** Newest first, over all runs. The caller has found the delivery. */
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
  return attempts as AttemptRow[];
}

export type ReplayResult =
  | { ok: true; delivery: DeliveryRow; wake: WakeableDelivery }
  | { ok: false; conflict: 'no endpoint' | 'no delivery' }
  | { ok: false; conflict: ReplayConflict; replayCount: number };

/**
 * Starts a new run of a delivery that is finished, with the endpoint's present URL and secret. Of replays that race,
 * the row's lock lets one through, and the count turns the others away. Locks the delivery before its endpoint, as
 * everyone does.
 * @param expectedReplayCount what the caller has read.
 */
export async function replayDelivery(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
  expectedReplayCount: number,
): Promise<ReplayResult> {
  const [row] = await tx.$queryRaw<{ status: DeliveryStatus; replayCount: number }[]>`
    SELECT status, replay_count AS "replayCount" FROM webhook_deliveries
    WHERE id = ${deliveryId} AND endpoint_id = ${endpointId} AND environment_id = ${tenant.environmentId}
    FOR NO KEY UPDATE`;
  const endpoint = await holdWebhookEndpoint(tx, tenant, endpointId);
  if (endpoint === null) return { ok: false, conflict: 'no endpoint' };
  if (row === undefined) return { ok: false, conflict: 'no delivery' };
  const conflict = decideReplay({ ...row, isEnabled: endpoint.enabled, expectedReplayCount });
  if (conflict !== null) return { ok: false, conflict, replayCount: row.replayCount };
  const [wake] = await tx.$queryRaw<[WakeableDelivery]>`
    UPDATE webhook_deliveries
    SET status = 'pending', failure_reason = NULL, completed_at = NULL, replay_count = replay_count + 1, run_attempts = 0,
      run_started_at = now(), url = NULL, secret_version = NULL, due_at = now(), woken_at = now(), wake_ups = 1
    WHERE id = ${deliveryId}
    RETURNING id, replay_count AS run, run_attempts AS "runAttempts", wake_ups AS "wakeUps"`;
  const delivery = await findDelivery(tx, tenant, endpointId, deliveryId);
  if (delivery === null) throw new Error(`delivery ${deliveryId} is locked and gone`);
  return { ok: true, delivery, wake };
}
