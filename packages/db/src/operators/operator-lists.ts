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
import type { Prisma } from '../generated/client.js';

/** What every list of an operator may be restricted to. */
export interface ListFilter {
  environmentId: string | null;
  /** Rows that were created from this time on. */
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

/** The tenant of an environment; null if it does not exist. */
export async function tenantOfEnvironment(db: Db, environmentId: string): Promise<Tenant | null> {
  const environment = await db.environment.findUnique({ where: { id: environmentId }, select: { projectId: true } });
  return environment && { environmentId, ...environment };
}

const OPERATION = {
  id: true,
  kind: true,
  status: true,
  environmentId: true,
  roomId: true,
  participantId: true,
  run: true,
  attempts: true,
  dueAt: true,
  leaseExpiresAt: true,
  lastError: true,
  createdAt: true,
  completedAt: true,
} as const;

export type OperationListing = Omit<
  Prisma.RuntimeOperationGetPayload<{ select: typeof OPERATION }>,
  'kind' | 'status' | 'lastError' | 'leaseExpiresAt'
> & { kind: OperationKind; status: OperationStatus; lastError: OperationError | null; held: boolean };

/** Newest first. */
export async function listAllOperations(
  db: Db,
  filter: ListFilter & { status: OperationStatus | null; kind: OperationKind | null },
  now: Date,
): Promise<OperationListing[]> {
  const { status, kind } = filter;
  const rows = await db.runtimeOperation.findMany({ ...newestWith(filter, { status, kind }), select: OPERATION });
  return rows.map((row) => toOperation(row, now));
}

export async function findOperationById(
  db: Db,
  operationId: string,
  now: Date,
): Promise<(OperationListing & Tenant) | null> {
  const row = await db.runtimeOperation.findUnique({
    where: { id: operationId },
    select: { ...OPERATION, room: { select: { environment: { select: { projectId: true } } } } },
  });
  if (row === null) return null;
  const { room, ...operation } = row;
  return { ...toOperation(operation, now), ...room.environment };
}

function toOperation({ leaseExpiresAt, ...row }: { leaseExpiresAt: Date | null; lastError: unknown }, now: Date) {
  return { ...row, held: leaseExpiresAt !== null && leaseExpiresAt > now } as OperationListing;
}

const ROOM = {
  id: true,
  environmentId: true,
  name: true,
  status: true,
  maxParticipants: true,
  emptyTimeoutSeconds: true,
  createdAt: true,
  startedAt: true,
  endedAt: true,
  _count: { select: { sessions: { where: { endedAt: null } } } },
} as const;

/** `participants` counts the live sessions. */
export type RoomListing = Omit<Prisma.RoomGetPayload<{ select: typeof ROOM }>, 'status' | '_count'> & {
  status: RoomStatus;
  participants: number;
};

/** Newest first. */
export async function listAllRooms(db: Db, filter: ListFilter & { status: RoomStatus | null }): Promise<RoomListing[]> {
  const rows = await db.room.findMany({ ...newestWith(filter, { status: filter.status }), select: ROOM });
  return rows.map(({ _count: { sessions }, ...row }) => ({ ...row, participants: sessions }) as RoomListing);
}

export interface RoomFacts extends RoomListing {
  /** The media server that carries it; null while it has none. */
  mediaNodeId: string | null;
  /** Id and status of its clean-up; null while it was not ended. */
  operationId: string | null;
  operationStatus: string | null;
  /** Number of its latest event. */
  lastSequence: number;
}

export async function findRoomById(db: Db, roomId: string): Promise<RoomFacts | null> {
  const operations = { where: { kind: 'room.end' }, select: { id: true, status: true } };
  const found = await db.room.findUnique({
    where: { id: roomId },
    select: { ...ROOM, mediaNodeId: true, lastSequence: true, operations },
  });
  if (found === null) return null;
  const {
    _count: count,
    operations: [end],
    ...row
  } = found;
  const facts = { operationId: end?.id ?? null, operationStatus: end?.status ?? null };
  return { ...row, ...facts, participants: count.sessions } as RoomFacts;
}

export async function tenantOfRoom(db: Db, roomId: string): Promise<Tenant | null> {
  const room = await db.room.findUnique({
    where: { id: roomId },
    select: { environmentId: true, environment: { select: { projectId: true } } },
  });
  return room && { environmentId: room.environmentId, ...room.environment };
}

const PARTICIPANT = {
  id: true,
  roomId: true,
  environmentId: true,
  name: true,
  externalId: true,
  createdAt: true,
  connectedAt: true,
  leftAt: true,
  removedAt: true,
  sessions: { where: { endedAt: null }, select: { id: true } },
} as const;

/** `sessionId` is the live session; null outside of a call. */
export type ParticipantListing = Omit<Prisma.ParticipantGetPayload<{ select: typeof PARTICIPANT }>, 'sessions'> & {
  sessionId: string | null;
};

/** Participants in a call (`active`), those that have left, or all including those that never connected; newest first. */
export async function listAllParticipants(
  db: Db,
  filter: ListFilter & { roomId: string | null; status: ParticipantStatus | null },
): Promise<ParticipantListing[]> {
  const { where, ...newest } = newestWith(filter, { roomId: filter.roomId });
  const ofStatus = { connectedAt: { not: null }, leftAt: filter.status === 'left' ? { not: null } : null };
  const rows = await db.participant.findMany({
    ...newest,
    where: filter.status === null ? where : { ...where, ...ofStatus },
    select: PARTICIPANT,
  });
  return rows.map(({ sessions: [live], ...row }) => ({ ...row, sessionId: live?.id ?? null }));
}

const EVENT = {
  id: true,
  type: true,
  environmentId: true,
  roomId: true,
  sequence: true,
  createdAt: true,
  erasedAt: true,
} as const;

export type EventListing = Omit<Prisma.EventGetPayload<{ select: typeof EVENT }>, 'type'> & { type: EventType };

/** Newest first. */
export async function listAllEvents(
  db: Db,
  filter: ListFilter & { roomId: string | null; type: EventType | null },
): Promise<EventListing[]> {
  const { roomId, type } = filter;
  return (await db.event.findMany({ ...newestWith(filter, { roomId, type }), select: EVENT })) as EventListing[];
}

/** @returns the event with its JSON text, as it is sent. */
export async function findEventById(db: Db, eventId: string): Promise<(EventListing & { body: string }) | null> {
  const event = await db.event.findUnique({ where: { id: eventId }, select: { ...EVENT, body: true } });
  return event as (EventListing & { body: string }) | null;
}
