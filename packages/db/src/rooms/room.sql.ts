import { OPEN_ROOM_STATUSES, ROOM_OPTIONS, type RoomState } from '@callplane/core';
import { optionFields } from '../client/options.sql.js';
import { literals } from '../client/sql.js';
import { Prisma } from '../generated/client.js';

/** The columns of a `RoomState`; the table must have the name or alias `rooms`. */
export const ROOM_COLUMNS = Prisma.sql`rooms.id, rooms.name, rooms.metadata, rooms.status,
  ${optionFields(ROOM_OPTIONS, 'rooms')},
  rooms.created_at AS "createdAt", rooms.started_at AS "startedAt", rooms.ended_at AS "endedAt",
  rooms.recording_since AS "recordingSince"`;

/** The columns of a `LiveRoomState`. The count reads participant_sessions_live_in_room_idx. */
export const LIVE_ROOM_COLUMNS = Prisma.sql`${ROOM_COLUMNS}, (
    SELECT count(*)::int FROM participant_sessions live WHERE live.room_id = rooms.id AND live.ended_at IS NULL
      AND NOT live.waiting
  ) AS "participantCount"`;

/** `isOpen` of core; the table must have the name or alias `rooms`. */
export const isRoomOpen = Prisma.sql`rooms.status IN (${literals(OPEN_ROOM_STATUSES)})`;

/** A room whose columns went through JSON, which has no dates. */
export function reviveRoom<Room extends RoomState>(room: Room): Room {
  const date = (at: Date | null): Date | null => (at === null ? null : new Date(at));
  const [startedAt, endedAt, recordingSince] = [date(room.startedAt), date(room.endedAt), date(room.recordingSince)];
  return { ...room, createdAt: new Date(room.createdAt), startedAt, endedAt, recordingSince };
}
