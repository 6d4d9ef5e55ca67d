import {
  isOpen,
  ROOM_OPTIONS,
  roomUpdated,
  sameJson,
  type LiveRoomState,
  type RoomOptions,
  type RoomState,
  type Tenant,
} from '@callplane/core';
import type { Database } from '../client/database.js';
import { optionColumns, optionParameters } from '../client/options.sql.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { findRoom } from './rooms.repository.js';

export type RoomPatch = Partial<Pick<RoomState, 'name' | 'metadata'> & RoomOptions>;

export type RoomUpdate =
  | { outcome: 'not_found' | 'room_ended' }
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
    const after: LiveRoomState = { ...room, ...patch };
    const isSame = (Object.keys(patch) as (keyof RoomPatch)[]).every((key) => sameJson(after[key], room[key]));
    if (isSame) return { outcome: 'updated', room, version: null, deliveries: [] };
    const [written] = await sql.$queryRaw<{ version: number }[]>`
      UPDATE rooms SET name = ${after.name}, metadata = ${JSON.stringify(after.metadata)}::jsonb,
        (${optionColumns(ROOM_OPTIONS)}) = ROW(${optionParameters(ROOM_OPTIONS, after)}), version = version + 1
      WHERE id = ${roomId} RETURNING version`;
    const { deliveries } = await writeEvents(sql, [roomUpdated({ tenant, room: after, now }, after.participantCount)]);
    return { outcome: 'updated', room: after, version: written?.version ?? null, deliveries };
  });
}
