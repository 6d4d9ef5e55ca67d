import { Prisma } from '../generated/client.js';

/** The columns of a `RoomState`, of a table that is called `rooms` here. */
export const ROOM_COLUMNS = Prisma.sql`rooms.id, rooms.name, rooms.metadata, rooms.status,
  rooms.max_participants AS "maxParticipants", rooms.created_at AS "createdAt", rooms.started_at AS "startedAt",
  rooms.ended_at AS "endedAt"`;
