/** Reads of `rtc` for operators: across tenants, and therefore by bare id. Request handlers must never call them. */
import {
  ROOM_OPTIONS,
  type RoomOptions,
  type EventType,
  type OperationError,
  type OperationKind,
  type OperationStatus,
  type ParticipantStatus,
  type RecordingStatus,
  type RoomStatus,
  type Tenant,
  QUEUE_OF_OPERATION,
} from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { selectedOptions } from '../client/options.sql.js';
import { Prisma } from '../generated/client.js';
import { isUnleased } from '../operations/operation.sql.js';

export interface ListFilter {
  environmentId: string | null;
  since: Date | null;
  limit: number;
}

/** The newest rows with these values; null stands for any. */
export function newestWith({ environmentId, since, limit }: ListFilter, values: Record<string, string | null>) {
  const given = Object.entries({ environmentId, ...values }).filter(([, value]) => value !== null);
  return {
    where: { ...(Object.fromEntries(given) as Record<string, string>), createdAt: { gte: since ?? new Date(0) } },
    orderBy: { id: 'desc' as const },
    take: limit,
  };
}

/** The columns of a row whose environment has the id `environmentId`, for {@link toTenant}. */
export const OF_TENANT = { environmentId: true, environment: { select: { projectId: true } } } as const;

export function toTenant(row: { environmentId: string; environment: { projectId: string } } | null): Tenant | null {
  return row && { environmentId: row.environmentId, ...row.environment };
}

export async function tenantOfEnvironment(db: Db, environmentId: string): Promise<Tenant | null> {
  const environment = await db.environment.findUnique({ where: { id: environmentId }, select: { projectId: true } });
  return environment && { environmentId, ...environment };
}

export async function tenantOfRoom(db: Db, roomId: string): Promise<Tenant | null> {
  return toTenant(await db.room.findUnique({ where: { id: roomId }, select: OF_TENANT }));
}

/** Columns that every list shows. */
export const ROW = { id: true, environmentId: true, createdAt: true } as const;

export type OperationListing = Awaited<ReturnType<typeof listAllOperations>>[number];

export async function listAllOperations(
  db: Db,
  filter: ListFilter & { status: OperationStatus | null; kind: OperationKind | null },
  now: Date,
) {
  const { status, kind } = filter;
  const rows = await db.runtimeOperation.findMany({
    ...newestWith(filter, { status, kind }),
    omit: { runAttempts: true, leaseToken: true, traceparent: true },
  });
  return rows.map(({ leaseExpiresAt, lastError, ...row }) => ({
    ...row,
    lastError: lastError as OperationError | null,
    held: leaseExpiresAt !== null && leaseExpiresAt > now,
  }));
}

export async function findOperationStatus(db: Db, operationId: string): Promise<OperationStatus | null> {
  const found = await db.runtimeOperation.findUnique({ where: { id: operationId }, select: { status: true } });
  return found && (found.status as OperationStatus);
}

const ROOM = {
  ...ROW,
  name: true,
  status: true,
  ...selectedOptions(ROOM_OPTIONS),
  startedAt: true,
  endedAt: true,
  _count: { select: { sessions: { where: { endedAt: null, waiting: false } } } },
} as const;

/** Newest first. `participants` counts the live sessions. */
export async function listAllRooms(db: Db, filter: ListFilter & { status: RoomStatus | null }) {
  const rows = await db.room.findMany({ ...newestWith(filter, { status: filter.status }), select: ROOM });
  return rows.map(({ _count: { sessions: participants }, ...row }) => ({ ...row, participants }));
}

/** @returns the room with the id and status of its clean-up, which are null while it was not ended. */
export async function findRoomById(db: Db, roomId: string) {
  const operations = { where: { kind: 'room.end' }, select: { id: true, status: true } };
  const select = { ...ROOM, mediaNodeId: true, furtherNodeIds: true, lastSequence: true, operations };
  const found = await db.room.findUnique({ where: { id: roomId }, select });
  if (found === null) return null;
  const { _count: count, operations: ends, ...row } = found;
  const [end] = ends;
  return {
    ...row,
    record: row.record as RoomOptions['record'],
    encryption: row.encryption as RoomOptions['encryption'],
    operationId: end?.id ?? null,
    operationStatus: end?.status ?? null,
    participants: count.sessions,
  };
}

export async function tenantOfRecording(db: Db, recordingId: string): Promise<Tenant | null> {
  const found = await db.recording.findUnique({ where: { id: recordingId }, select: { roomId: true } });
  return found && tenantOfRoom(db, found.roomId);
}

export function listAllRecordings(
  db: Db,
  { environmentId, since, limit, ...values }: ListFilter & { roomId: string | null; status: RecordingStatus | null },
) {
  const given = Object.entries({ environmentId, ...values }).filter(([, value]) => value !== null);
  return db.recording.findMany({
    where: { ...Object.fromEntries(given), startedAt: { gte: since ?? new Date(0) }, deletedAt: null },
    orderBy: { id: 'desc' },
    take: limit,
    select: {
      ...{ id: true, environmentId: true, roomId: true, mode: true, status: true, progress: true },
      ...{ startedAt: true, endedAt: true },
    },
  });
}

const LIVE_ID = { where: { endedAt: null }, select: { id: true } } as const;
const STAY = { connectedAt: true, leftAt: true, removedAt: true } as const;
export type ParticipantListing = Awaited<ReturnType<typeof listAllParticipants>>[number];

/**
 * Participants in a call (`active`), in a lobby (`waiting`), participants that have left, or all including the ones that never connected;
 * newest first. `sessionId` is the live session; null outside of a call.
 */
export async function listAllParticipants(
  db: Db,
  filter: ListFilter & { roomId: string | null; status: ParticipantStatus | null },
) {
  const { where, ...newest } = newestWith(filter, { roomId: filter.roomId });
  const waiting = filter.status === 'left' ? {} : { waiting: filter.status === 'waiting' };
  const ofStatus = { connectedAt: { not: null }, leftAt: filter.status === 'left' ? { not: null } : null, ...waiting };
  const rows = await db.participant.findMany({
    ...newest,
    where: filter.status === null ? where : { ...where, ...ofStatus },
    select: { ...ROW, ...STAY, roomId: true, externalId: true, name: true, sessions: LIVE_ID },
  });
  return rows.map(({ sessions: [live], ...row }) => ({ ...row, sessionId: live?.id ?? null }));
}

/** Newest first. */
export function listAllEvents(db: Db, filter: ListFilter & { roomId: string | null; type: EventType | null }) {
  const { roomId, type } = filter;
  return db.event.findMany({
    ...newestWith(filter, { roomId, type }),
    select: { ...ROW, type: true, roomId: true, sequence: true, erasedAt: true },
  });
}

export async function findEventById(db: Db, eventId: string): Promise<string | null> {
  return (await db.event.findUnique({ where: { id: eventId }, select: { body: true } }))?.body ?? null;
}

const OPERATION_QUEUES = Object.entries(QUEUE_OF_OPERATION);
const QUEUES = [...Object.values(QUEUE_OF_OPERATION), 'webhook-delivery' as const];

/** The backlog of one queue, counted from the rows: Redis may be missing some. */
export interface Backlog {
  queue: (typeof QUEUES)[number];
  due: number;
  scheduled: number;
  held: number;
  /** How long the oldest due row has waited, in milliseconds; null when none is due. */
  oldestDueMs: number | null;
  /** The same without deliveries of endpoints whose attempts fail; null when none of the others is due. */
  oldestWorkingDueMs: number | null;
}

/**
 * Rows of each queue are counted up to this number, so that the cost is bounded: operations in the order of their due
 * times, deliveries in any order, because none of their indexes orders the due times of all endpoints.
 */
const COUNTED_MAX = 10_000;
const FIRST = Prisma.sql`ORDER BY due_at LIMIT ${Prisma.raw(String(COUNTED_MAX))}`;

/**
 * Reads the backlogs of all queues, including empty ones. Deliveries of disabled endpoints are held back on
 * purpose and do not count.
 */
export async function readBacklogs(db: TypedSql): Promise<Backlog[]> {
  const operations = OPERATION_QUEUES.map(
    ([kind, queue]) => Prisma.sql`
    (SELECT ${queue} AS queue, due_at, NOT ${isUnleased} AS held, true AS working FROM runtime_operations
      WHERE status = 'pending' AND kind = ${kind} ${FIRST})`,
  );
  const isEnabled = Prisma.sql`
    EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = endpoint_id AND e.enabled AND e.deleted_at IS NULL)`;
  const isWorking = Prisma.sql`
    EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = endpoint_id AND e.failing_since IS NULL)`;
  const oldestOf = (rows: Prisma.Sql): Prisma.Sql => Prisma.sql`
    (extract(epoch FROM now() - min(due_at) FILTER (WHERE NOT held AND due_at <= now() AND ${rows})) * 1000)::float8`;
  const rows = await db.$queryRaw<Backlog[]>`
    SELECT queue, count(*) FILTER (WHERE NOT held AND due_at <= now())::int AS due,
      count(*) FILTER (WHERE NOT held AND due_at > now())::int AS scheduled,
      count(*) FILTER (WHERE held)::int AS held,
      ${oldestOf(Prisma.sql`true`)} AS "oldestDueMs", ${oldestOf(Prisma.sql`working`)} AS "oldestWorkingDueMs"
    FROM (
      ${Prisma.join(operations, ' UNION ALL ')}
      UNION ALL
      (SELECT 'webhook-delivery', due_at, false, ${isWorking} FROM webhook_deliveries
        WHERE status = 'pending' AND due_at <= now() AND ${isEnabled} LIMIT ${COUNTED_MAX}::int)
      UNION ALL
      (SELECT 'webhook-delivery', due_at, false, ${isWorking} FROM webhook_deliveries
        WHERE status = 'pending' AND due_at > now() AND ${isEnabled} LIMIT ${COUNTED_MAX}::int)
      UNION ALL
      (SELECT 'webhook-delivery', due_at, true, true FROM webhook_deliveries
        WHERE lease_expires_at IS NOT NULL AND ${isEnabled} ORDER BY lease_expires_at LIMIT ${COUNTED_MAX}::int)
    ) AS open (queue, due_at, held, working) GROUP BY queue`;
  const none = { due: 0, scheduled: 0, held: 0, oldestDueMs: null, oldestWorkingDueMs: null };
  return QUEUES.map((queue) => rows.find((row) => row.queue === queue) ?? { queue, ...none });
}
