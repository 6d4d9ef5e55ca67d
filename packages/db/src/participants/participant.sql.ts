import { Prisma } from '../generated/client.js';

/** The columns of a `ParticipantState`; the table must have the name or alias `participants`. */
export const PARTICIPANT_COLUMNS = Prisma.sql`participants.id, participants.room_id AS "roomId",
  participants.external_id AS "externalId", participants.name, participants.metadata, participants.role,
  participants.created_at AS "createdAt", participants.token_expires_at AS "tokenExpiresAt",
  participants.connected_at AS "connectedAt", participants.left_at AS "leftAt"`;

/** Permissions that the server has set, or the latest token's permissions. */
export const PARTICIPANT_PERMISSIONS = Prisma.sql`
  CASE WHEN participants.permissions <> '{}' THEN participants.permissions ELSE coalesce((
    SELECT t.permissions FROM participant_tokens t WHERE t.participant_id = participants.id
    ORDER BY t.created_at DESC LIMIT 1
  ), '{}') END AS permissions`;

/** The columns of a `LiveParticipantState`. participant_sessions_live_key has the live session of a participant. */
export const LIVE_PARTICIPANT_COLUMNS = Prisma.sql`${PARTICIPANT_COLUMNS}, ${PARTICIPANT_PERMISSIONS},
  participants.removed_at IS NOT NULL AS "isRemoved", participants.waiting AS "isWaiting", (
    SELECT json_build_object('roomId', other.room_id, 'participantId', other.id)
    FROM participants other WHERE other.moved_from_id = participants.id
  ) AS "movedTo", (
    SELECT json_build_object('roomId', other.room_id, 'participantId', other.id)
    FROM participants other WHERE other.id = participants.moved_from_id
  ) AS "movedFrom", (
    SELECT live.disconnected_at IS NULL FROM participant_sessions live
    WHERE live.participant_id = participants.id AND live.ended_at IS NULL
  ) AS "isConnected", (
    SELECT coalesce(json_agg(json_build_object('trackId', t.track_id, 'kind', t.kind, 'source', t.source,
      'muted', t.muted) ORDER BY t.published_at, t.track_id), '[]')
    FROM participant_sessions live JOIN session_tracks t ON t.session_id = live.id
    WHERE live.participant_id = participants.id AND live.ended_at IS NULL
  ) AS tracks`;
