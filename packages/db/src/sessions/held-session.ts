import type { ParticipantState, RoomState, Tenant } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant-row.js';
import type { HeldSession } from './session.js';

/** A session is written to only by the connection that has it, while it goes on. Of a table that is called `s`. */
export const isHeld = ({ sessionId, connection }: HeldSession): Prisma.Sql =>
  Prisma.sql`s.id = ${sessionId} AND s.connection = ${connection}::int AND s.ended_at IS NULL`;

/** A session's participant, room and tenant, as one row; see {@link toSubject}. */
export const SUBJECT_COLUMNS = Prisma.sql`s.id AS "sessionId", ${PARTICIPANT_COLUMNS}, environments.id AS "environmentId", environments.project_id AS "projectId",
  rooms.name AS "roomName", rooms.metadata AS "roomMetadata", rooms.status AS "roomStatus",
  rooms.max_participants AS "roomMaxParticipants", rooms.created_at AS "roomCreatedAt",
  rooms.started_at AS "roomStartedAt", rooms.ended_at AS "roomEndedAt"`;

/** What {@link SUBJECT_COLUMNS} are of. */
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
