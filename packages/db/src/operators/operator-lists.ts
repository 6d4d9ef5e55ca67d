/** What `rtc` reads for operators: across tenants, and therefore by bare id. Request handlers must never call them. */
import type {
  EventType,
  OperationError,
  OperationKind,
  OperationStatus,
  ParticipantStatus,
  RoomStatus,
  Tenant,
} from '@callplane/core';
import type { Db } from '../client/database.js';

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
  omit: { metadata: true, emptySince: true, mediaGeneration: true, version: true, rosterPaged: true },
  include: { _count: { select: { sessions: { where: { endedAt: null } } } } },
} as const;

/** Newest first. `participants` counts the live sessions. */
export async function listAllRooms(db: Db, filter: ListFilter & { status: RoomStatus | null }) {
  const rows = await db.room.findMany({
    ...newestWith(filter, { status: filter.status }),
    ...ROOM,
    omit: { ...ROOM.omit, mediaNodeId: true, lastSequence: true },
  });
  return rows.map(({ _count: { sessions: participants }, ...row }) => ({ ...row, participants }));
}

/** @returns the room with the id and status of its clean-up, which are null while it was not ended. */
export async function findRoomById(db: Db, roomId: string) {
  const operations = { where: { kind: 'room.end' }, select: { id: true, status: true } };
  const found = await db.room.findUnique({
    where: { id: roomId },
    ...ROOM,
    include: { ...ROOM.include, operations },
  });
  if (found === null) return null;
  const { _count: count, operations: ends, ...row } = found;
  const [end] = ends;
  return {
    ...row,
    operationId: end?.id ?? null,
    operationStatus: end?.status ?? null,
    participants: count.sessions,
  };
}

export type ParticipantListing = Awaited<ReturnType<typeof listAllParticipants>>[number];

/**
 * Participants in a call (`active`), those that have left, or all including those that never connected; newest first.
 * `sessionId` is the live session; null outside of a call.
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
    omit: { metadata: true, role: true, tokenExpiresAt: true, joinCount: true, joinsFullAt: true, permissions: true },
    include: { sessions: { where: { endedAt: null }, select: { id: true } } },
  });
  return rows.map(({ sessions: [live], ...row }) => ({ ...row, sessionId: live?.id ?? null }));
}

/** Newest first. */
export function listAllEvents(db: Db, filter: ListFilter & { roomId: string | null; type: EventType | null }) {
  const { roomId, type } = filter;
  return db.event.findMany({
    ...newestWith(filter, { roomId, type }),
    omit: { body: true, transactionId: true, traceparent: true, participantId: true },
  });
}

export async function findEventById(db: Db, eventId: string): Promise<string | null> {
  return (await db.event.findUnique({ where: { id: eventId }, select: { body: true } }))?.body ?? null;
}
