import {
  newId,
  PublicError,
  ROOM_MAX_PARTICIPANTS_DEFAULT,
  roomCreated,
  type OperationState,
  type RoomState,
  type RoomStatus,
  type Tenant,
} from '@callplane/core';
import {
  acceptRoomEnd,
  insertRooms,
  listRooms,
  roomExists,
  updateRoom,
  type AcceptedOperation,
  type RoomPatch,
  type RoomToInsert,
  type DueEndpoint,
  type TypedSql,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from '../deps.js';
import { cutPage, type Page, type PageCursor } from '../http/cursor.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';

export interface RoomInput {
  name: string;
  metadata?: Record<string, unknown>;
  maxParticipants?: number;
}

/** The generated values of a new room; the request body supplies the others. */
export interface GeneratedRoomValues {
  id: string;
  /** ISO 8601. */
  createdAt: string;
}

/**
 * The state of a room at its creation. The answer to the create request uses it, even if the room has changed since.
 */
export function roomAtCreation(input: RoomInput, made: GeneratedRoomValues): RoomState {
  return {
    id: made.id,
    name: input.name,
    metadata: input.metadata ?? {},
    status: 'created',
    maxParticipants: input.maxParticipants ?? ROOM_MAX_PARTICIPANTS_DEFAULT,
    createdAt: new Date(made.createdAt),
    startedAt: null,
    endedAt: null,
  };
}

/** A new room, to be inserted. */
export interface CreatedRoom {
  made: GeneratedRoomValues;
  /** The deliveries to wake after the commit. */
  deliveries: DueEndpoint[];
}

/** Creates a room and its `room.created` event. Concurrent requests share the statement. */
export async function createRoom(
  deps: Pick<Deps, 'clock' | 'statements'>,
  tenant: Tenant,
  input: RoomInput,
): Promise<CreatedRoom> {
  const { made, insert } = newRoom(deps, tenant, input);
  return { made, deliveries: await deps.statements.insertRoom(insert) };
}

/** {@link createRoom} in a transaction. */
export async function createRoomIn(
  deps: Pick<Deps, 'clock'>,
  tx: TypedSql,
  tenant: Tenant,
  input: RoomInput,
): Promise<CreatedRoom> {
  const { made, insert } = newRoom(deps, tenant, input);
  const [deliveries = []] = await insertRooms(tx, [insert]);
  return { made, deliveries };
}

function newRoom(
  { clock }: Pick<Deps, 'clock'>,
  tenant: Tenant,
  input: RoomInput,
): { made: GeneratedRoomValues; insert: RoomToInsert } {
  const made = { id: newId('room'), createdAt: clock.now().toISOString() };
  const room = roomAtCreation(input, made);
  return { made, insert: { tenant, room, created: roomCreated(tenant, room) } };
}

export async function readRoom(deps: Pick<Deps, 'statements'>, tenant: Tenant, roomId: string): Promise<RoomState> {
  const room = await deps.statements.findRoom({ tenant, id: roomId });
  if (room === null) throw new PublicError('ROOM_NOT_FOUND');
  return room;
}

export async function pageOfRooms(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  query: { status?: RoomStatus; name?: string; namePrefix?: string; limit?: number },
  cursor: PageCursor<{ id: string }>,
): Promise<Page<RoomState>> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const rooms = await listRooms(deps.database.sql, tenant, {
    status: query.status ?? null,
    name: query.name ?? null,
    namePrefix: query.namePrefix ?? null,
    beforeId: cursor.position?.id ?? null,
    limit: limit + 1,
  });
  return cutPage(cursor, rooms, limit);
}

/** Changes an open room. A running call follows as soon as its gateways get the notice. */
export async function changeRoom(
  { database, clock, producer }: Pick<Deps, 'database' | 'clock' | 'producer'>,
  tenant: Tenant,
  roomId: string,
  patch: RoomPatch,
): Promise<RoomState> {
  const update = await updateRoom(database, tenant, roomId, patch, clock.now());
  if (update.outcome !== 'updated') {
    throw new PublicError(update.outcome === 'not_found' ? 'ROOM_NOT_FOUND' : 'ROOM_ENDED');
  }
  // The request waits for neither: gateways find a change without a notice at their next resync.
  if (update.version !== null) void publishRoomChanged(producer.redis, roomId, update.version);
  void producer.wakeDeliveries(update.deliveries);
  return update.room;
}

/** Once this commits, the room issues no tokens and accepts no joins. A worker does the clean-up. */
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
  deps: Pick<Deps, 'database' | 'statements'>,
  tenant: Tenant,
  roomId: string,
): Promise<OperationState> {
  const operation = await deps.statements.findRoomOperation({ tenant, id: roomId });
  if (operation !== null) return operation;
  if (!(await roomExists(deps.database.prisma, tenant, roomId))) throw new PublicError('ROOM_NOT_FOUND');
  throw new PublicError('OPERATION_NOT_FOUND');
}
