import {
  isOpen,
  ROOM_OPTIONS,
  ROOM_STATUSES,
  roomUpdated,
  sameJson,
  type ChangingValues,
  type NewEvent,
  type LiveRoomState,
  type RoomState,
  type RoomStatus,
  type Tenant,
} from '@callplane/core';
import { optionColumns, optionParameters, optionRows } from '../client/options.sql.js';
import { newRows } from '../client/sql.js';
import type { Database, Db, TypedSql } from '../client/database.js';
import { readRequested, type RowRequest } from '../client/row-requests.js';
import { fanOut, insertEvents, numberEvents, writeEvents, type WrittenDelivery } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { LIVE_ROOM_COLUMNS } from './room.sql.js';

export interface RoomToInsert {
  tenant: Tenant;
  room: Omit<RoomState, 'status' | 'startedAt' | 'endedAt' | 'recordingSince'>;
  created: NewEvent;
}

const OPTION_COLUMNS = optionColumns(ROOM_OPTIONS);

/**
 * Inserts rooms of any tenants, their first events and these events' deliveries, in one statement.
 * @returns the deliveries of each room, in the order of the rooms.
 */
export async function insertRooms(db: TypedSql, rooms: readonly RoomToInsert[]): Promise<WrittenDelivery[][]> {
  const events = rooms.flatMap(({ created }) => numberEvents([created], 1));
  const states = rooms.map(({ room }) => room);
  const deliveries = await db.$queryRaw<WrittenDelivery[]>`
    WITH room AS (
      INSERT INTO rooms (id, environment_id, name, metadata, status, ${OPTION_COLUMNS}, empty_since, created_at,
        last_sequence)
      SELECT id, environment_id, name, metadata::jsonb, 'created', ${OPTION_COLUMNS}, now(), created_at::timestamptz, 1
      FROM ${newRows({
        id: ['text', states.map(({ id }) => id)],
        environment_id: ['text', rooms.map(({ tenant }) => tenant.environmentId)],
        name: ['text', states.map(({ name }) => name)],
        metadata: ['text', states.map(({ metadata }) => JSON.stringify(metadata))],
        ...optionRows(ROOM_OPTIONS, states),
        created_at: ['text', states.map(({ createdAt }) => createdAt.toISOString())],
      })}
    ), ${insertEvents(events)}
    ${fanOut()}`;
  const byEvent = new Map<string, WrittenDelivery[]>(events.map(({ id }) => [id, []]));
  for (const delivery of deliveries) byEvent.get(delivery.eventId)?.push(delivery);
  return [...byEvent.values()];
}

/** @returns the rooms in the order of the requests; null if the environment has no such room. */
export async function findRooms(db: TypedSql, requests: readonly RowRequest[]): Promise<(LiveRoomState | null)[]> {
  const [one] = requests;
  if (requests.length === 1 && one !== undefined) return [await findRoom(db, one.tenant, one.id)];
  return readRequested<LiveRoomState>(
    requests,
    (table) => db.$queryRaw`
      SELECT request.at::int AS at, ${LIVE_ROOM_COLUMNS}
      FROM ${table} JOIN rooms ON rooms.id = request.id AND rooms.environment_id = request.environment_id`,
  );
}

export async function findRoom(
  db: TypedSql,
  tenant: Tenant,
  roomId: string,
  lock = Prisma.empty,
): Promise<LiveRoomState | null> {
  const [row] = await db.$queryRaw<LiveRoomState[]>`
    SELECT ${LIVE_ROOM_COLUMNS} FROM rooms WHERE id = ${roomId} AND environment_id = ${tenant.environmentId} ${lock}`;
  return row ?? null;
}

/** The fields that an owner may change. */
export type RoomPatch = Partial<Pick<RoomState, 'name' | 'metadata'> & ChangingValues<typeof ROOM_OPTIONS>>;

export type RoomUpdate =
  | { outcome: 'not_found' | 'room_ended' | 'room_encrypted' }
  | {
      outcome: 'updated';
      room: LiveRoomState;
      /** The room's version after the change; null if nothing has changed. */
      version: number | null;
      deliveries: DueEndpoint[];
    };

/**
 * Changes an open room and writes its event, in one transaction. Writes nothing if nothing changes. A capacity below the
 * number of participants removes none of them: joins are refused until enough have left.
 */
export function updateRoom(
  database: Database,
  tenant: Tenant,
  roomId: string,
  patch: RoomPatch,
  now: Date,
): Promise<RoomUpdate> {
  return database.transaction(async (sql) => {
    const room = await findRoom(sql, tenant, roomId, Prisma.sql`FOR NO KEY UPDATE`);
    if (room === null) return { outcome: 'not_found' };
    if (!isOpen(room.status)) return { outcome: 'room_ended' };
    if (patch.record != null && room.encryption === 'required') return { outcome: 'room_encrypted' };
    const after: LiveRoomState = { ...room, ...patch };
    const isSame = (Object.keys(patch) as (keyof RoomPatch)[]).every((key) => sameJson(after[key], room[key]));
    if (isSame) return { outcome: 'updated', room, version: null, deliveries: [] };
    const [written] = await sql.$queryRaw<{ version: number }[]>`
      UPDATE rooms SET name = ${after.name}, metadata = ${JSON.stringify(after.metadata)}::jsonb,
        (${OPTION_COLUMNS}) = ROW(${optionParameters(ROOM_OPTIONS, after)}), version = version + 1
      WHERE id = ${roomId} RETURNING version`;
    const { deliveries } = await writeEvents(sql, [roomUpdated({ tenant, room: after, now }, after.participantCount)]);
    return { outcome: 'updated', room: after, version: written?.version ?? null, deliveries };
  });
}

export async function roomExists(db: Db, { environmentId }: Tenant, roomId: string): Promise<boolean> {
  return (await db.room.count({ where: { id: roomId, environmentId } })) > 0;
}

interface RoomListPage {
  status: RoomStatus | null;
  name: string | null;
  /** Names that begin with this text; null for any. The list is then in the order of names. */
  namePrefix?: string | null;
  /** The last id of the previous page. */
  beforeId: string | null;
  limit: number;
}

/**
 * Lists rooms newest first: ids sort by the time of creation. Rooms that are added meanwhile sort before the last id of
 * a page, so no page shifts.
 */
export function listRooms(db: TypedSql, tenant: Tenant, page: RoomListPage): PromiseLike<LiveRoomState[]> {
  const { status, name, namePrefix, beforeId, limit } = page;
  if (namePrefix != null) return listRoomsByPrefix(db, tenant, { ...page, namePrefix });
  const before = beforeId === null ? Prisma.empty : Prisma.sql`AND rooms.id < ${beforeId}`;
  if (name !== null) {
    const named = Prisma.sql`rooms.name COLLATE "C" = ${name} ${before}`;
    return listRoomsNamed(db, tenant, page, named, (row) => Prisma.sql`${row}.id DESC`);
  }
  return db.$queryRaw<LiveRoomState[]>`
    SELECT ${LIVE_ROOM_COLUMNS} FROM rooms
    WHERE rooms.environment_id = ${tenant.environmentId} ${before}
      ${status === null ? Prisma.empty : Prisma.sql`AND rooms.status = ${status}`}
    ORDER BY rooms.id DESC LIMIT ${limit}`;
}

/**
 * Lists rooms whose names begin with a text, by the bytes of their names, rooms of one name oldest first. The name of
 * the last room of the previous page is read again: if that room is gone, the list ends.
 */
function listRoomsByPrefix(
  db: TypedSql,
  tenant: Tenant,
  page: RoomListPage & { namePrefix: string },
): PromiseLike<LiveRoomState[]> {
  const { name, namePrefix, beforeId } = page;
  const after =
    beforeId === null
      ? Prisma.empty
      : Prisma.sql`AND (rooms.name COLLATE "C", rooms.id) > (
          (SELECT last.name FROM rooms last WHERE last.id = ${beforeId} AND last.environment_id = ${tenant.environmentId}),
          ${beforeId})`;
  const named = Prisma.sql`
    rooms.name COLLATE "C" >= ${namePrefix} AND rooms.name COLLATE "C" < ${`${namePrefix}\u{10ffff}`} ${after}
    ${name === null ? Prisma.empty : Prisma.sql`AND rooms.name COLLATE "C" = ${name}`}`;
  return listRoomsNamed(db, tenant, page, named, (row) => Prisma.sql`${row}.name COLLATE "C", ${row}.id`);
}

function listRoomsNamed(
  db: TypedSql,
  { environmentId }: Tenant,
  { status, limit }: RoomListPage,
  named: Prisma.Sql,
  order: (row: Prisma.Sql) => Prisma.Sql,
): PromiseLike<LiveRoomState[]> {
  const statuses = status === null ? [...ROOM_STATUSES] : [status];
  return db.$queryRaw<LiveRoomState[]>`
    SELECT found.* FROM unnest(${statuses}::text[]) AS status (name)
    CROSS JOIN LATERAL (
      SELECT ${LIVE_ROOM_COLUMNS} FROM rooms
      WHERE rooms.environment_id = ${environmentId} AND rooms.status = status.name AND ${named}
      ORDER BY ${order(Prisma.raw('rooms'))} LIMIT ${limit}
    ) found
    ORDER BY ${order(Prisma.raw('found'))} LIMIT ${limit}`;
}

/**
 * Counts the recipients of a message with a live session, and lists those without one, or in the lobby.
 * @param to participant ids; null for everyone in the room.
 * @returns null when the environment has no such room.
 */
export async function findRecipients(db: TypedSql, tenant: Tenant, roomId: string, to: readonly string[] | null) {
  const chosen = to === null ? Prisma.empty : Prisma.sql`AND s.participant_id = ANY(${[...to]}::text[])`;
  const [row] = await db.$queryRaw<{ status: RoomStatus; present: number; ids: string[] | null }[]>`
    SELECT rooms.status, live.present, live.ids
    FROM rooms CROSS JOIN LATERAL (
      SELECT count(*)::int AS present, ${to === null ? Prisma.sql`NULL::text[]` : Prisma.sql`array_agg(s.participant_id)`} AS ids
      FROM participant_sessions s WHERE s.room_id = rooms.id AND s.ended_at IS NULL AND NOT s.waiting ${chosen}
    ) live
    WHERE rooms.id = ${roomId} AND rooms.environment_id = ${tenant.environmentId}`;
  if (row === undefined) return null;
  const present = new Set(row.ids ?? []);
  return { status: row.status, present: row.present, absent: (to ?? []).filter((id) => !present.has(id)) };
}
