import type { ParticipantState, Permission, RoomState } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant.sql.js';
import { ROOM_COLUMNS } from '../rooms/room.sql.js';
import type { JoinInput, RoomPlacement } from './session.js';

/** A locked participant that joins. */
export interface JoiningPerson {
  participant: ParticipantState;
  environmentId: string;
  removed: boolean;
  latestJoin: number;
  /** Permissions that the server has set; empty while those of the token apply. */
  permissions: Permission[];
  /** Null: it has no such token. */
  tokenRevoked: boolean | null;
}

/** A locked room with the locked live sessions of the participants that join. */
export interface LockedRoom extends RoomPlacement {
  room: RoomState;
  lastSequence: number;
  version: number;
  rosterPaged: boolean;
  /** Number of the room's live sessions. */
  liveSessions: number;
  /** Live sessions by participant id. */
  liveSessionOf: Map<string, string>;
}

type PersonRow = ParticipantState & Omit<JoiningPerson, 'participant'>;

/** Locks the participants, so that all joins of one run one after another, and reads them with their tokens. */
export async function lockParticipants(
  sql: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
): Promise<Map<string, JoiningPerson>> {
  const rows = await sql.$queryRaw<PersonRow[]>`
    SELECT ${PARTICIPANT_COLUMNS}, participants.environment_id AS "environmentId",
      participants.removed_at IS NOT NULL AS removed, participants.join_count AS "latestJoin",
      participants.permissions, (
        SELECT revoked_at IS NOT NULL FROM participant_tokens t
        WHERE t.id = input.token_id AND t.participant_id = participants.id
      ) AS "tokenRevoked"
    FROM participants
    JOIN unnest(${inputs.map(({ participantId }) => participantId)}::text[],
      ${inputs.map(({ tokenId }) => tokenId)}::text[]) AS input (id, token_id) ON input.id = participants.id
    WHERE participants.room_id = ${roomId}
    ORDER BY participants.id FOR NO KEY UPDATE OF participants`;
  return new Map(
    rows.map(({ environmentId, removed, latestJoin, permissions, tokenRevoked, ...participant }) => {
      return [participant.id, { participant, environmentId, removed, latestJoin, permissions, tokenRevoked }];
    }),
  );
}

type RoomRow = RoomState &
  Omit<LockedRoom, 'room' | 'liveSessionOf' | 'liveSessions'> & { own: [participantId: string, sessionId: string][] };

/** Locks the live sessions of the participants, then the room, and counts the room's live sessions. */
export async function lockRoom(
  sql: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
): Promise<LockedRoom | null> {
  const [row] = await sql.$queryRaw<RoomRow[]>`
    WITH own AS MATERIALIZED (
      SELECT id, participant_id FROM participant_sessions
      WHERE participant_id = ANY(${inputs.map(({ participantId }) => participantId)}::text[]) AND ended_at IS NULL
      ORDER BY id FOR NO KEY UPDATE
    )
    SELECT ${ROOM_COLUMNS}, last_sequence AS "lastSequence", version, roster_paged AS "rosterPaged",
      media_node_id AS "mediaNodeId", media_generation AS "mediaGeneration",
      (SELECT coalesce(json_agg(json_build_array(participant_id, id)), '[]') FROM own) AS own
    FROM rooms
    -- Counting makes the statement lock all sessions first.
    WHERE rooms.id = ${roomId} AND (SELECT count(*) FROM own) >= 0
    FOR NO KEY UPDATE OF rooms`;
  if (row === undefined) return null;
  // A statement of its own: the snapshot of the one before is older than the lock.
  const [live] = await sql.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM participant_sessions WHERE room_id = ${roomId} AND ended_at IS NULL`;
  const { lastSequence, version, rosterPaged, mediaNodeId, mediaGeneration, own, ...room } = row;
  return {
    room,
    lastSequence,
    version,
    rosterPaged,
    mediaNodeId,
    mediaGeneration,
    liveSessions: live?.count ?? 0,
    liveSessionOf: new Map(own),
  };
}
