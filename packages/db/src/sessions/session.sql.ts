import type { ParticipantState, RoomState, Tenant } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant.sql.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import type { HeldSession } from './session.js';

/**
 * The condition that a connection still holds a live session; every write to a session requires it. The sessions table
 * must have the alias `s`.
 */
export const isHeld = ({ sessionId, connection }: HeldSession): Prisma.Sql =>
  Prisma.sql`s.id = ${sessionId} AND s.connection = ${connection}::int AND s.ended_at IS NULL`;

/**
 * Why a session cannot continue, as a `SessionEndReason`; null while it can. The tables must have the names or aliases
 * `s`, `participants` and `rooms`.
 */
export const END_REASON = Prisma.sql`CASE WHEN s.end_reason IS NOT NULL THEN s.end_reason
  WHEN participants.removed_at IS NOT NULL THEN 'removed' WHEN NOT ${isRoomOpen} THEN 'room_ended' END`;

/** A session's participant, room and tenant in one row; see {@link toSubject}. */
export const SUBJECT_COLUMNS = Prisma.sql`s.id AS "sessionId", ${PARTICIPANT_COLUMNS},
  environments.id AS "environmentId", environments.project_id AS "projectId",
  rooms.name AS "roomName", rooms.metadata AS "roomMetadata", rooms.status AS "roomStatus",
  rooms.max_participants AS "roomMaxParticipants", rooms.empty_timeout_seconds AS "roomEmptyTimeoutSeconds",
  rooms.created_at AS "roomCreatedAt", rooms.started_at AS "roomStartedAt", rooms.ended_at AS "roomEndedAt"`;

/** The tables of {@link SUBJECT_COLUMNS}. */
export const SUBJECT_TABLES = Prisma.sql`participant_sessions s
  JOIN participants ON participants.id = s.participant_id
  JOIN rooms ON rooms.id = s.room_id
  JOIN environments ON environments.id = s.environment_id`;

export interface SubjectRow extends ParticipantState {
  sessionId: string;
  environmentId: string;
  projectId: string;
  roomName: string;
  roomMetadata: Record<string, unknown>;
  roomStatus: RoomState['status'];
  roomMaxParticipants: number;
  roomEmptyTimeoutSeconds: number | null;
  roomCreatedAt: Date;
  roomStartedAt: Date | null;
  roomEndedAt: Date | null;
}

export interface Subject {
  tenant: Tenant;
  room: RoomState;
  sessionId: string;
  participant: ParticipantState;
}

export function toSubject(row: SubjectRow): Subject {
  return {
    tenant: { projectId: row.projectId, environmentId: row.environmentId },
    room: {
      id: row.roomId,
      name: row.roomName,
      metadata: row.roomMetadata,
      status: row.roomStatus,
      maxParticipants: row.roomMaxParticipants,
      emptyTimeoutSeconds: row.roomEmptyTimeoutSeconds,
      createdAt: row.roomCreatedAt,
      startedAt: row.roomStartedAt,
      endedAt: row.roomEndedAt,
    },
    sessionId: row.sessionId,
    participant: {
      id: row.id,
      roomId: row.roomId,
      externalId: row.externalId,
      name: row.name,
      metadata: row.metadata,
      role: row.role,
      createdAt: row.createdAt,
      tokenExpiresAt: row.tokenExpiresAt,
      connectedAt: row.connectedAt,
      leftAt: row.leftAt,
    },
  };
}
