/** Reads of `rtc` for operators: across tenants, and therefore by bare id. Request handlers must never call them. */
import {
  ROOM_OPTIONS,
  type RoomOptions,
  type EventType,
  type OperationError,
  type OperationKind,
  type OperationStatus,
  type ParticipantStatus,
  type RoomStatus,
  type Tenant,
} from '@callplane/core';
import type { Db } from '../client/database.js';
import { selectedOptions } from '../client/options.sql.js';

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
  _count: { select: { sessions: { where: { endedAt: null } } } },
} as const;

/** Newest first. `participants` counts the live sessions. */
export async function listAllRooms(db: Db, filter: ListFilter & { status: RoomStatus | null }) {
  const rows = await db.room.findMany({ ...newestWith(filter, { status: filter.status }), select: ROOM });
  return rows.map(({ _count: { sessions: participants }, ...row }) => ({ ...row, participants }));
}

/** @returns the room with the id and status of its clean-up, which are null while it was not ended. */
export async function findRoomById(db: Db, roomId: string) {
  const operations = { where: { kind: 'room.end' }, select: { id: true, status: true } };
  const select = { ...ROOM, mediaNodeId: true, lastSequence: true, operations };
  const found = await db.room.findUnique({ where: { id: roomId }, select });
  if (found === null) return null;
  const { _count: count, operations: ends, ...row } = found;
  const [end] = ends;
  return {
    ...row,
    record: row.record as RoomOptions['record'],
    operationId: end?.id ?? null,
    operationStatus: end?.status ?? null,
    participants: count.sessions,
  };
}

const LIVE_ID = { where: { endedAt: null }, select: { id: true } } as const;
const STAY = { connectedAt: true, leftAt: true, removedAt: true } as const;
export type ParticipantListing = Awaited<ReturnType<typeof listAllParticipants>>[number];

/**
 * Participants in a call (`active`), participants that have left, or all including the ones that never connected;
 * newest first. `sessionId` is the live session; null outside of a call.
 */
export async function listAllParticipants(
  db: Db,
  filter: ListFilter & { roomId: string | null; status: ParticipantStatus | null },
) {
  const { where, ...newest } = newestWith(filter, { roomId: filter.roomId });
  const ofStatus = { connectedAt: { not: null }, leftAt: filter.status === 'left' ? { not: null } : null };
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
