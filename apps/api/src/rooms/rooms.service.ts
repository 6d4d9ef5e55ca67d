import {
  newId,
  presentRoom,
  type OperationState,
  PublicError,
  ROOM_MAX_PARTICIPANTS_DEFAULT,
  serialiseEvent,
  type RoomState,
  type RoomStatus,
  type Tenant,
} from '@callplane/core';
import {
  acceptRoomEnd,
  findRoom,
  findRoomOperation,
  insertRoom,
  listRooms,
  roomExists,
  type AcceptedOperation,
  type WakeableDelivery,
  type TypedSql,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import { decodeCursor, encodeCursor } from '../http/cursor.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';

export interface RoomInput {
  name: string;
  metadata?: Record<string, unknown>;
  maxParticipants?: number;
}

/**
 * Creates a room and tells of it.
 * @param db the transaction that the room belongs to, or the client itself.
 * @returns the room, and the deliveries to wake once it is committed.
 */
export async function createRoom(
  deps: Pick<Deps, 'clock'>,
  db: TypedSql,
  tenant: Tenant,
  input: RoomInput,
): Promise<{ room: RoomState; deliveries: WakeableDelivery[] }> {
  const room: RoomState = {
    id: newId('room'),
    name: input.name,
    metadata: input.metadata ?? {},
    status: 'created',
    maxParticipants: input.maxParticipants ?? ROOM_MAX_PARTICIPANTS_DEFAULT,
    createdAt: deps.clock.now(),
    startedAt: null,
    endedAt: null,
  };
  const id = newId('event');
  const { projectId, environmentId } = tenant;
  const body = serialiseEvent({
    id,
    type: 'room.created',
    createdAt: room.createdAt,
    projectId,
    environmentId,
    sequence: 1,
    data: { room: presentRoom(tenant, room) },
  });
  const deliveries = await insertRoom(db, tenant, room, { id, type: 'room.created', body });
  return { room, deliveries };
}

export async function readRoom(deps: Pick<Deps, 'database'>, tenant: Tenant, roomId: string): Promise<RoomState> {
  const room = await findRoom(deps.database.hot, tenant, roomId);
  if (room === null) throw new PublicError('ROOM_NOT_FOUND');
  return room;
}

export async function pageOfRooms(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  query: { status?: RoomStatus; limit?: number; cursor?: string },
): Promise<{ rooms: RoomState[]; nextCursor: string | null }> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const [beforeId = null] = query.cursor === undefined ? [] : decodeCursor(query.cursor);
  const rooms = await listRooms(deps.database.prisma, tenant, {
    status: query.status ?? null,
    beforeId,
    limit: limit + 1,
  });
  const shown = rooms.slice(0, limit);
  const last = shown.at(-1);
  return {
    rooms: shown,
    nextCursor: rooms.length > limit && last !== undefined ? encodeCursor('rooms', [last.id]) : null,
  };
}

/** From the commit of this on, nobody gets a token and nobody joins; a worker does the rest. */
export async function endRoom(
  deps: Pick<Deps, 'database' | 'clock'>,
  tenant: Tenant,
  roomId: string,
): Promise<AcceptedOperation> {
  const accepted = await acceptRoomEnd(deps.database, tenant, roomId, deps.clock.now());
  if (accepted === null) throw new PublicError('ROOM_NOT_FOUND');
  return accepted;
}

export async function readRoomOperation(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
): Promise<OperationState> {
  const operation = await findRoomOperation(deps.database.prisma, tenant, roomId);
  if (operation !== null) return operation;
  if (!(await roomExists(deps.database.prisma, tenant, roomId))) throw new PublicError('ROOM_NOT_FOUND');
  throw new PublicError('OPERATION_NOT_FOUND');
}
