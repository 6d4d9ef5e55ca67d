/** Queries of `rtc` about rooms: across tenants, and therefore by bare id. Request handlers must never call them. */
import type { EventType, ParticipantStatus, RoomStatus, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { conditions, type ListFilter } from './operator-filters.js';

export interface RoomListing {
  id: string;
  environmentId: string;
  name: string;
  status: RoomStatus;
  /** Live sessions. */
  participants: number;
  maxParticipants: number;
  /** Null: the setting of the deployment. */
  emptyTimeoutSeconds: number | null;
  createdAt: Date;
  startedAt: Date | null;
  endedAt: Date | null;
}

const ROOM_LISTING = Prisma.sql`id, environment_id AS "environmentId", name, status,
  max_participants AS "maxParticipants", empty_timeout_seconds AS "emptyTimeoutSeconds",
  (SELECT count(*)::int FROM participant_sessions s WHERE s.room_id = rooms.id AND s.ended_at IS NULL) AS participants,
  created_at AS "createdAt", started_at AS "startedAt", ended_at AS "endedAt"`;

/** Newest first. */
export function listAllRooms(
  db: TypedSql,
  filter: ListFilter & { status: RoomStatus | null },
): PromiseLike<RoomListing[]> {
  return db.$queryRaw<RoomListing[]>`
    SELECT ${ROOM_LISTING} FROM rooms
    ${conditions(filter, [filter.status === null ? null : Prisma.sql`status = ${filter.status}`])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
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

export async function findRoomById(db: TypedSql, roomId: string): Promise<RoomFacts | null> {
  const [row] = await db.$queryRaw<RoomFacts[]>`
    SELECT ${ROOM_LISTING}, media_node_id AS "mediaNodeId", last_sequence AS "lastSequence",
      (SELECT o.id FROM runtime_operations o WHERE o.room_id = rooms.id AND o.kind = 'room.end') AS "operationId",
      (SELECT o.status FROM runtime_operations o WHERE o.room_id = rooms.id AND o.kind = 'room.end') AS "operationStatus"
    FROM rooms WHERE id = ${roomId}`;
  return row ?? null;
}

export async function tenantOfRoom(db: TypedSql, roomId: string): Promise<Tenant | null> {
  const [tenant] = await db.$queryRaw<Tenant[]>`
    SELECT t.id AS "environmentId", t.project_id AS "projectId"
    FROM rooms JOIN environments t ON t.id = rooms.environment_id WHERE rooms.id = ${roomId}`;
  return tenant ?? null;
}

export interface ParticipantListing {
  id: string;
  roomId: string;
  environmentId: string;
  name: string;
  externalId: string | null;
  createdAt: Date;
  /** First connection; null until then. */
  connectedAt: Date | null;
  leftAt: Date | null;
  removedAt: Date | null;
  /** The live session; null outside of a call. */
  sessionId: string | null;
}

/** Participants in a call (`active`), those that have left, or all including those that never connected; newest first. */
export function listAllParticipants(
  db: TypedSql,
  filter: ListFilter & { roomId: string | null; status: ParticipantStatus | null },
): PromiseLike<ParticipantListing[]> {
  return db.$queryRaw<ParticipantListing[]>`
    SELECT id, room_id AS "roomId", environment_id AS "environmentId", name, external_id AS "externalId",
      created_at AS "createdAt", connected_at AS "connectedAt", left_at AS "leftAt", removed_at AS "removedAt",
      (SELECT s.id FROM participant_sessions s WHERE s.participant_id = participants.id AND s.ended_at IS NULL LIMIT 1)
        AS "sessionId"
    FROM participants
    ${conditions(filter, [
      filter.roomId === null ? null : Prisma.sql`room_id = ${filter.roomId}`,
      filter.status === null
        ? null
        : filter.status === 'left'
          ? Prisma.sql`connected_at IS NOT NULL AND left_at IS NOT NULL`
          : Prisma.sql`connected_at IS NOT NULL AND left_at IS NULL`,
    ])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
}

export interface EventListing {
  id: string;
  type: EventType;
  environmentId: string;
  roomId: string | null;
  sequence: number | null;
  createdAt: Date;
  erasedAt: Date | null;
}

const EVENT_LISTING = Prisma.sql`id, type, environment_id AS "environmentId", room_id AS "roomId", sequence,
  created_at AS "createdAt", erased_at AS "erasedAt"`;

/** Newest first. */
export function listAllEvents(
  db: TypedSql,
  filter: ListFilter & { roomId: string | null; type: EventType | null },
): PromiseLike<EventListing[]> {
  return db.$queryRaw<EventListing[]>`
    SELECT ${EVENT_LISTING} FROM events
    ${conditions(filter, [
      filter.roomId === null ? null : Prisma.sql`room_id = ${filter.roomId}`,
      filter.type === null ? null : Prisma.sql`type = ${filter.type}`,
    ])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
}

/** @returns the event with its JSON text, as it is sent. */
export async function findEventById(db: TypedSql, eventId: string): Promise<(EventListing & { body: string }) | null> {
  const [row] = await db.$queryRaw<(EventListing & { body: string })[]>`
    SELECT ${EVENT_LISTING}, body FROM events WHERE id = ${eventId}`;
  return row ?? null;
}
