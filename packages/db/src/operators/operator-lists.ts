/**
 * What `rtc` asks for operators: across tenants, and so by bare id. Nothing that a request can reach may call these.
 */
import type {
  DeliveryFailureReason,
  DeliveryStatus,
  EventType,
  OperationError,
  OperationKind,
  OperationStatus,
  RoomStatus,
  Tenant,
} from '@callplane/core';
import type { Db } from '../client/database.js';
import { Prisma } from '../generated/client.js';

export interface OperationListing {
  id: string;
  kind: OperationKind;
  status: OperationStatus;
  environmentId: string;
  roomId: string;
  participantId: string | null;
  run: number;
  attempts: number;
  /** When the next attempt is due; of a settled operation when the last one was. */
  dueAt: Date;
  /** Whether a worker holds it at present. */
  held: boolean;
  lastError: OperationError | null;
  createdAt: Date;
  completedAt: Date | null;
}

const OPERATION = Prisma.sql`
  SELECT id, kind, status, environment_id AS "environmentId", room_id AS "roomId", participant_id AS "participantId", run,
    attempts, due_at AS "dueAt", coalesce(lease_expires_at > now(), false) AS held, last_error AS "lastError",
    created_at AS "createdAt", completed_at AS "completedAt"
  FROM runtime_operations`;

/** Newest first. */
export function listAllOperations(
  db: Db,
  filter: { status: OperationStatus | null; kind: OperationKind | null; environmentId: string | null; limit: number },
): Promise<OperationListing[]> {
  return db.$queryRaw<OperationListing[]>`
    ${OPERATION}
    ${where([
      filter.status === null ? null : Prisma.sql`status = ${filter.status}`,
      filter.kind === null ? null : Prisma.sql`kind = ${filter.kind}`,
      filter.environmentId === null ? null : Prisma.sql`environment_id = ${filter.environmentId}`,
    ])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
}

export async function findOperationById(db: Db, operationId: string): Promise<(OperationListing & Tenant) | null> {
  const [row] = await db.$queryRaw<OperationListing[]>`${OPERATION} WHERE id = ${operationId}`;
  return row === undefined ? null : { ...row, projectId: await projectOf(db, row.environmentId) };
}

export interface DeliveryListing {
  id: string;
  status: DeliveryStatus;
  failureReason: DeliveryFailureReason | null;
  environmentId: string;
  endpointId: string;
  eventId: string;
  eventType: EventType;
  replayCount: number;
  /** Of this run. */
  attempts: number;
  dueAt: Date;
  createdAt: Date;
  completedAt: Date | null;
}

const DELIVERY = Prisma.sql`
  SELECT id, status, failure_reason AS "failureReason", environment_id AS "environmentId", endpoint_id AS "endpointId",
    event_id AS "eventId", event_type AS "eventType", replay_count AS "replayCount", run_attempts AS attempts,
    due_at AS "dueAt", created_at AS "createdAt", completed_at AS "completedAt"
  FROM webhook_deliveries`;

/** Newest first. */
export function listAllDeliveries(
  db: Db,
  filter: { status: DeliveryStatus | null; endpointId: string | null; environmentId: string | null; limit: number },
): Promise<DeliveryListing[]> {
  return db.$queryRaw<DeliveryListing[]>`
    ${DELIVERY}
    ${where([
      filter.status === null ? null : Prisma.sql`status = ${filter.status}`,
      filter.endpointId === null ? null : Prisma.sql`endpoint_id = ${filter.endpointId}`,
      filter.environmentId === null ? null : Prisma.sql`environment_id = ${filter.environmentId}`,
    ])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
}

export async function findDeliveryById(db: Db, deliveryId: string): Promise<(DeliveryListing & Tenant) | null> {
  const [row] = await db.$queryRaw<DeliveryListing[]>`${DELIVERY} WHERE id = ${deliveryId}`;
  return row === undefined ? null : { ...row, projectId: await projectOf(db, row.environmentId) };
}

export interface EndpointListing {
  id: string;
  environmentId: string;
  url: string;
  enabled: boolean;
  disabledReason: string | null;
  /** Whether its last attempt succeeded quickly. */
  proven: boolean;
  failingSince: Date | null;
  /** Deliveries that are not finished. */
  open: number;
  /** When the oldest of these has been due since; null when there is none. */
  oldestDueAt: Date | null;
}

/** Those with the oldest open delivery first. */
export function listAllWebhookEndpoints(
  db: Db,
  filter: { environmentId: string | null; limit: number },
): Promise<EndpointListing[]> {
  return db.$queryRaw<EndpointListing[]>`
    SELECT e.id, e.environment_id AS "environmentId", e.url, e.enabled, e.disabled_reason AS "disabledReason", e.proven,
      e.failing_since AS "failingSince", coalesce(d.open, 0)::int AS open, d.oldest AS "oldestDueAt"
    FROM webhook_endpoints e
    LEFT JOIN (
      SELECT endpoint_id, count(*) AS open, min(due_at) AS oldest FROM webhook_deliveries
      WHERE status IN ('pending', 'delivering') GROUP BY endpoint_id
    ) d ON d.endpoint_id = e.id
    ${where([
      Prisma.sql`e.deleted_at IS NULL`,
      filter.environmentId === null ? null : Prisma.sql`e.environment_id = ${filter.environmentId}`,
    ])}
    ORDER BY d.oldest NULLS LAST, e.id DESC LIMIT ${filter.limit}`;
}

/** The tenant of an endpoint that is not deleted. */
export async function tenantOfWebhookEndpoint(db: Db, endpointId: string): Promise<Tenant | null> {
  const row = await db.webhookEndpoint.findFirst({
    where: { id: endpointId, deletedAt: null },
    select: { environmentId: true },
  });
  return row === null ? null : { ...row, projectId: await projectOf(db, row.environmentId) };
}

export interface RoomListing {
  id: string;
  environmentId: string;
  name: string;
  status: RoomStatus;
  /** Live sessions. */
  participants: number;
  maxParticipants: number;
  createdAt: Date;
  startedAt: Date | null;
  endedAt: Date | null;
}

/** Newest first. */
export function listAllRooms(
  db: Db,
  filter: { status: RoomStatus | null; environmentId: string | null; limit: number },
): Promise<RoomListing[]> {
  return db.$queryRaw<RoomListing[]>`
    SELECT id, environment_id AS "environmentId", name, status, max_participants AS "maxParticipants",
      (SELECT count(*)::int FROM participant_sessions s WHERE s.room_id = rooms.id AND s.ended_at IS NULL) AS participants,
      created_at AS "createdAt", started_at AS "startedAt", ended_at AS "endedAt"
    FROM rooms
    ${where([
      filter.status === null ? null : Prisma.sql`status = ${filter.status}`,
      filter.environmentId === null ? null : Prisma.sql`environment_id = ${filter.environmentId}`,
    ])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
}

export async function tenantOfRoom(db: Db, roomId: string): Promise<Tenant | null> {
  const row = await db.room.findUnique({ where: { id: roomId }, select: { environmentId: true } });
  return row === null ? null : { ...row, projectId: await projectOf(db, row.environmentId) };
}

async function projectOf(db: Db, environmentId: string): Promise<string> {
  const { projectId } = await db.environment.findUniqueOrThrow({
    where: { id: environmentId },
    select: { projectId: true },
  });
  return projectId;
}

function where(conditions: readonly (Prisma.Sql | null)[]): Prisma.Sql {
  const present = conditions.filter((condition) => condition !== null);
  return present.length === 0 ? Prisma.empty : Prisma.sql`WHERE ${Prisma.join(present, ' AND ')}`;
}
