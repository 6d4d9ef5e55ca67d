import { isOpen, newId, type ParticipantState, type RoomState } from '@callplane/core';
import type { Database } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import type { Prisma } from '../generated/client.js';
import { endTracks } from '../participants/participant-cleanup.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant-row.js';
import { ROOM_COLUMNS } from '../rooms/room-row.js';
import { sessionEvents } from './session-events.js';
import type { JoinInput, JoinOutcome } from './session.js';

type Refusal = Exclude<JoinOutcome, { outcome: 'joined' }>;

/**
 * A participant joins a room: in one transaction, which decides whether it may and writes everything or nothing. Joins
 * to the same room take turns on its row, so that its capacity holds whatever happens at once.
 *
 * Everything that touches sessions locks in this order: participant, its session, room.
 */
export function joinRoom(database: Database, input: JoinInput, now: Date): Promise<JoinOutcome> {
  return database.transaction((tx) => join(tx, input, now));
}

async function join(tx: Prisma.TransactionClient, input: JoinInput, now: Date): Promise<JoinOutcome> {
  const refusal = await lockParticipant(tx, input);
  if (refusal !== null) return refusal;
  const locked = await lockRoom(tx, input);
  if (locked === null) return { outcome: 'not_found' };
  if (!isOpen(locked.room.status)) return { outcome: 'room_ended' };
  const { room, liveSessionId } = locked;

  const sessionId = newId('session');
  const participant = await writeSession(tx, input, { sessionId, liveSessionId, capacity: room.maxParticipants }, now);
  if (participant === null) return { outcome: 'capacity' };
  const superseded = liveSessionId === null ? [] : [liveSessionId];
  const tracks = await endTracks(tx, superseded);

  const first = room.status === 'created';
  const joined: RoomState = first ? { ...room, status: 'active', startedAt: now } : room;
  const events = sessionEvents(input.tenant, joined, now);
  const { deliveries } = await writeEvents(
    tx,
    input.tenant,
    input.roomId,
    [
      ...(first ? [events.started()] : []),
      ...superseded.flatMap((id) =>
        events.left(
          { sessionId: id, participant: { ...participant, leftAt: now }, tracks: tracks.get(id) ?? [] },
          'superseded',
        ),
      ),
      events.joined({ sessionId, participant }),
    ],
    now,
  );
  return { outcome: 'joined', sessionId, connection: 1, supersededSessionIds: superseded, deliveries };
}

/** Whether the participant and its token are good for this room; from here on nobody else acts for this participant. */
async function lockParticipant(tx: Prisma.TransactionClient, input: JoinInput): Promise<Refusal | null> {
  const [participant] = await tx.$queryRaw<{ removed: boolean; tokenRevoked: boolean | null }[]>`
    SELECT removed_at IS NOT NULL AS removed, (
      SELECT revoked_at IS NOT NULL FROM participant_tokens
      WHERE participant_tokens.id = ${input.tokenId} AND participant_id = participants.id
    ) AS "tokenRevoked"
    FROM participants
    WHERE id = ${input.participantId} AND room_id = ${input.roomId} AND environment_id = ${input.tenant.environmentId}
    FOR NO KEY UPDATE`;
  if (participant === undefined || participant.tokenRevoked === null) return { outcome: 'not_found' };
  if (participant.removed) return { outcome: 'removed' };
  return participant.tokenRevoked ? { outcome: 'token_revoked' } : null;
}

/** The participant's live session, then the room. */
async function lockRoom(
  tx: Prisma.TransactionClient,
  { participantId, roomId, tenant }: JoinInput,
): Promise<{ room: RoomState; liveSessionId: string | null } | null> {
  const [row] = await tx.$queryRaw<(RoomState & { liveSessionId: string | null })[]>`
    WITH own AS MATERIALIZED (
      SELECT id FROM participant_sessions WHERE participant_id = ${participantId} AND ended_at IS NULL
      FOR NO KEY UPDATE
    )
    SELECT ${ROOM_COLUMNS}, (SELECT id FROM own) AS "liveSessionId"
    FROM rooms
    -- The sub-select makes it lock the session first.
    WHERE rooms.id = ${roomId} AND rooms.environment_id = ${tenant.environmentId} AND (SELECT count(*) FROM own) <= 1
    FOR NO KEY UPDATE OF rooms`;
  if (row === undefined) return null;
  const { liveSessionId, ...room } = row;
  return { room, liveSessionId };
}

/** @returns the participant as it is from then on, or null (and nothing is written) when the room is full. */
async function writeSession(
  tx: Prisma.TransactionClient,
  input: JoinInput,
  session: { sessionId: string; liveSessionId: string | null; capacity: number },
  now: Date,
): Promise<ParticipantState | null> {
  const at = now.toISOString();
  const [participant] = await tx.$queryRaw<ParticipantState[]>`
    WITH allowed AS MATERIALIZED (
      -- Those in their grace period keep their place.
      SELECT 1 FROM (
        SELECT count(*) AS present FROM participant_sessions
        WHERE room_id = ${input.roomId} AND ended_at IS NULL AND participant_id <> ${input.participantId}
      ) others WHERE present < ${session.capacity}::int
    ), superseded AS (
      UPDATE participant_sessions SET ended_at = ${at}::timestamptz, end_reason = 'superseded'
      WHERE id = ${session.liveSessionId}::text AND EXISTS (SELECT 1 FROM allowed)
      RETURNING id
    ), joined AS (
      UPDATE participants SET connected_at = coalesce(connected_at, ${at}::timestamptz), left_at = NULL
      WHERE id = ${input.participantId} AND EXISTS (SELECT 1 FROM allowed)
      RETURNING participants.*
    ), session AS (
      INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at, token_id, permissions,
        resume_secret_hash, instance_id)
      SELECT ${session.sessionId}, environment_id, room_id, id, ${at}::timestamptz, ${input.tokenId},
        ${[...input.permissions]}::text[], ${Uint8Array.from(input.resumeSecretHash)}, ${input.instanceId}
      -- Counting makes the old session end first: a participant has one live session at most.
      FROM joined WHERE (SELECT count(*) FROM superseded) <= 1
    ), room AS (
      UPDATE rooms
      SET status = 'active', started_at = coalesce(started_at, ${at}::timestamptz), empty_since = NULL,
        media_node_id = coalesce(media_node_id, ${input.mediaNodeId}::text),
        media_generation = media_generation
          + (media_node_id IS NULL AND ${input.mediaNodeId}::text IS NOT NULL)::int
      WHERE id = ${input.roomId} AND EXISTS (SELECT 1 FROM joined)
    )
    SELECT ${PARTICIPANT_COLUMNS} FROM joined AS participants`;
  return participant ?? null;
}
