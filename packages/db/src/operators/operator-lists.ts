/** Queries of `rtc` for operators: across tenants, and therefore by bare id. Request handlers must never call them. */
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
import type { Db, TypedSql } from '../client/database.js';
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
  /** Due time of the next attempt; for a settled operation, of the last one. */
  dueAt: Date;
  /** Whether a worker currently holds it. */
  held: boolean;
  lastError: OperationError | null;
  createdAt: Date;
  completedAt: Date | null;
}

const OPERATION_LISTING = Prisma.sql`id, kind, status, environment_id AS "environmentId", room_id AS "roomId",
  participant_id AS "participantId", run, attempts, due_at AS "dueAt", coalesce(lease_expires_at > now(), false) AS held,
  last_error AS "lastError", created_at AS "createdAt", completed_at AS "completedAt"`;

/** Newest first. */
export function listAllOperations(
  db: TypedSql,
  filter: { status: OperationStatus | null; kind: OperationKind | null; environmentId: string | null; limit: number },
): PromiseLike<OperationListing[]> {
  return db.$queryRaw<OperationListing[]>`
    SELECT ${OPERATION_LISTING} FROM runtime_operations
    ${where([
      filter.status === null ? null : Prisma.sql`status = ${filter.status}`,
      filter.kind === null ? null : Prisma.sql`kind = ${filter.kind}`,
      filter.environmentId === null ? null : Prisma.sql`environment_id = ${filter.environmentId}`,
    ])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
}

export async function findOperationById(
  db: TypedSql,
  operationId: string,
): Promise<(OperationListing & Tenant) | null> {
  const [row] = await db.$queryRaw<(OperationListing & Tenant)[]>`
    SELECT ${OPERATION_LISTING}, (SELECT project_id FROM environments WHERE environments.id = environment_id) AS "projectId"
    FROM runtime_operations WHERE id = ${operationId}`;
  return row ?? null;
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
  /** Attempts of this run. */
  attempts: number;
  dueAt: Date;
  createdAt: Date;
  completedAt: Date | null;
}

const DELIVERY = {
  id: true,
  status: true,
  failureReason: true,
  environmentId: true,
  endpointId: true,
  eventId: true,
  eventType: true,
  replayCount: true,
  runAttempts: true,
  dueAt: true,
  createdAt: true,
  completedAt: true,
} as const;
type DeliverySelected = Prisma.WebhookDeliveryGetPayload<{ select: typeof DELIVERY }>;

const toDeliveryListing = ({ runAttempts, ...row }: DeliverySelected): DeliveryListing =>
  ({ ...row, attempts: runAttempts }) as DeliveryListing;

/** Newest first. */
export async function listAllDeliveries(
  db: Db,
  filter: { status: DeliveryStatus | null; endpointId: string | null; environmentId: string | null; limit: number },
): Promise<DeliveryListing[]> {
  const rows = await db.webhookDelivery.findMany({
    where: {
      ...(filter.status === null ? {} : { status: filter.status }),
      ...(filter.endpointId === null ? {} : { endpointId: filter.endpointId }),
      ...(filter.environmentId === null ? {} : { environmentId: filter.environmentId }),
    },
    orderBy: { id: 'desc' },
    take: filter.limit,
    select: DELIVERY,
  });
  return rows.map(toDeliveryListing);
}

export async function findDeliveryById(db: Db, deliveryId: string): Promise<(DeliveryListing & Tenant) | null> {
  const row = await db.webhookDelivery.findUnique({ where: { id: deliveryId }, select: DELIVERY });
  return row === null ? null : { ...toDeliveryListing(row), projectId: await projectOf(db, row.environmentId) };
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
  /** Deliveries that are pending or delivering. */
  open: number;
  /** Due time of the oldest open delivery; null when there is none. */
  oldestDueAt: Date | null;
}

/** Endpoints with the oldest open delivery come first. */
export function listAllWebhookEndpoints(
  db: TypedSql,
  filter: { environmentId: string | null; limit: number },
): PromiseLike<EndpointListing[]> {
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
  db: TypedSql,
  filter: { status: RoomStatus | null; environmentId: string | null; limit: number },
): PromiseLike<RoomListing[]> {
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

/** The tenant of an environment; null if it does not exist. */
export async function tenantOfEnvironment(db: Db, environmentId: string): Promise<Tenant | null> {
  const row = await db.environment.findUnique({ where: { id: environmentId }, select: { projectId: true } });
  return row === null ? null : { ...row, environmentId };
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
