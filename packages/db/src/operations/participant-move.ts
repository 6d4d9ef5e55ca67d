import {
  isOpen,
  newId,
  type MoveRefusal,
  type Permission,
  type RoomState,
  type SessionEndReason,
  type Tenant,
} from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { lockParticipant, type ModerationRefusal } from '../participants/moderation.js';
import { ROOM_COLUMNS } from '../rooms/room.sql.js';
import { joinMade } from '../sessions/join-sessions.js';
import { endParticipantPresence, writeSessionsEnded } from '../sessions/session-ends.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { assertLease, OperationRefused, type ClaimedOperation } from './operation-leases.js';
import { OPERATION_COLUMNS } from './operation.sql.js';
import { accepted, insertOperations, makeDue, type AcceptedOperation } from './operations.repository.js';

export interface MoveInput {
  /** The target. */
  roomId: string;
  /** Null: the participant keeps its permissions. */
  permissions: Permission[] | null;
}

export type MoveRefused =
  | { refused: ModerationRefusal }
  | { refused: MoveRefusal }
  /** The target: the environment has no such room, or it ends. */
  | { refused: 'target_not_found' | 'target_ended' };

/** An encoder (WHIP) has nobody who resumes its session. */
const IS_ENCODER = Prisma.sql`(jsonb_typeof(s.media->'whip') IS NOT DISTINCT FROM 'object')`;

/**
 * Accepts the move of a participant with a live session. The worker checks everything again. A repeated request for the
 * same target gets the operation as it is; one that has failed begins a new run, also with another target.
 */
export function acceptParticipantMove(
  database: Database,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  input: MoveInput,
  now: Date,
): Promise<AcceptedOperation | MoveRefused> {
  return database.transaction(async (tx) => {
    const locked = await lockParticipant(tx, tenant, roomId, participantId);
    const [known] = await tx.$queryRaw<(AcceptedOperation['operation'] & { input: MoveInput })[]>`
      SELECT ${OPERATION_COLUMNS}, input FROM runtime_operations
      WHERE subject_id = ${participantId} AND kind = 'participant.move'
        AND environment_id = ${tenant.environmentId} AND room_id = ${roomId}`;
    if (known !== undefined && known.status !== 'failed') {
      const { input: before, ...operation } = known;
      return before.roomId === input.roomId ? { operation, wake: null, roomVersion: null } : { refused: 'moved' };
    }
    if ('outcome' in locked) return { refused: locked.outcome };
    if (locked.sessionId === null) return { refused: 'PARTICIPANT_NOT_CONNECTED' };
    const [session] = await tx.$queryRaw<{ isEncoder: boolean }[]>`
      SELECT ${IS_ENCODER} AS "isEncoder" FROM participant_sessions s WHERE s.id = ${locked.sessionId}`;
    if (session?.isEncoder !== false) return { refused: 'PARTICIPANT_NOT_CONNECTED' };
    const [target] = await tx.$queryRaw<(RoomState & { live: number })[]>`
      SELECT ${ROOM_COLUMNS},
        (SELECT count(*)::int FROM participant_sessions s WHERE s.room_id = rooms.id AND s.ended_at IS NULL
          AND NOT s.waiting) AS live
      FROM rooms WHERE id = ${input.roomId} AND environment_id = ${tenant.environmentId}`;
    if (target === undefined) return { refused: 'target_not_found' };
    if (!isOpen(target.status)) return { refused: 'target_ended' };
    if (target.live >= target.maxParticipants) return { refused: 'ROOM_FULL' };
    if (target.encryption !== locked.room.encryption) return { refused: 'ENCRYPTION_DIFFERS' };
    if (known !== undefined) {
      await tx.$executeRaw`UPDATE runtime_operations SET input = ${JSON.stringify(input)}::jsonb WHERE id = ${known.id}`;
    }
    const participant = Prisma.sql`subject AS (
      SELECT id, environment_id, room_id, id AS participant_id, NULL::int AS version FROM participants
      WHERE id = ${participantId}
    )`;
    const row =
      known === undefined
        ? (await insertOperations(tx, 'participant.move', participant, now, tenant.traceparent, input))[0]
        : await makeDue(tx, known.id, 'failed');
    if (row === undefined || row === null) throw new Error(`the move of ${participantId} was not written`);
    return accepted(row, null);
  });
}

/**
 * Ends the participant's session and begins one in the target, for a new participant with the same data, in one
 * transaction: at every commit the participant is in one of the rooms. The new session has the resume secret of the old
 * one, and begins in its grace period, which a lost connection has begun before.
 * @returns null if an earlier attempt has done it.
 * @throws OperationRefused, LeaseLost
 */
export async function moveParticipant(
  tx: TypedSql,
  claim: ClaimedOperation & { participantId: string },
  rosterFullMax: number,
  now: Date,
): Promise<{ version: number | null; deliveries: DueEndpoint[] } | null> {
  const { roomId, participantId } = claim;
  const target = claim.input as MoveInput;
  const at = now.toISOString();
  await assertLease(tx, claim);
  const locked = await lockMove(tx, participantId, [roomId, target.roomId]);
  if (locked === null) return null;
  const { session, rooms } = locked;
  const from = rooms.find(({ id }) => id === roomId);
  const to = rooms.find(({ id }) => id === target.roomId);
  if (from === undefined || to === undefined || !isOpen(from.status) || !isOpen(to.status)) {
    throw new OperationRefused('ROOM_ENDED');
  }
  if (from.encryption !== to.encryption) throw new OperationRefused('ENCRYPTION_DIFFERS');

  const reason: SessionEndReason = 'moved';
  const ended = await endParticipantPresence(tx, participantId, reason, now);
  const made = { participantId: newId('participant'), tokenId: newId('token') };
  const permissions = target.permissions ?? session.permissions;
  // Every participant has a token. Nobody has this one.
  await tx.$executeRaw`
    WITH participant AS (
      INSERT INTO participants (id, environment_id, room_id, external_id, name, metadata, role, created_at,
        token_expires_at, waiting, moved_from_id)
      SELECT ${made.participantId}, environment_id, ${to.id}, external_id, name, metadata, role, ${at}::timestamptz,
        ${at}::timestamptz, waiting, id
      FROM participants WHERE id = ${participantId}
      RETURNING id
    )
    INSERT INTO participant_tokens (id, participant_id, permissions, created_at, expires_at)
    SELECT ${made.tokenId}, id, ${permissions}::text[], ${at}::timestamptz - interval '1 millisecond', ${at}::timestamptz
    FROM participant`;
  const input = { tenant: claim, roomId: to.id, permissions, instanceId: null, mediaNodeId: session.mediaNodeId };
  const { resumeSecretHash } = session;
  const movedFrom = { roomId, participantId, sessionId: session.id };
  const joined = await joinMade(tx, { ...input, ...made, resumeSecretHash, movedFrom }, rosterFullMax, now);
  if (joined.outcome === 'capacity') throw new OperationRefused('ROOM_FULL');
  if (joined.outcome !== 'joined') throw new Error(`the move of ${participantId} was refused: ${joined.outcome}`);
  await tx.$executeRaw`
    UPDATE participant_sessions SET disconnected_at = (
      SELECT coalesce(disconnected_at, now()) FROM participant_sessions WHERE id = ${session.id}
    ) WHERE id = ${joined.sessionId}`;
  const movedTo = { roomId: to.id, participantId: made.participantId, sessionId: joined.sessionId };
  const left = await writeSessionsEnded(
    tx,
    claim,
    from,
    ended.map((one) => ({ ...one, movedTo })),
    reason,
    now,
  );
  return { version: ended[0]?.version ?? null, deliveries: [...left, ...joined.deliveries] };
}

interface MovingSession {
  id: string;
  isEncoder: boolean;
  resumeSecretHash: Uint8Array;
  permissions: Permission[];
  /** The media server of its room, if that takes rooms: the target gets it if it has none yet. */
  mediaNodeId: string | null;
}

/**
 * Locks the participant, its session, and both rooms by id, so that moves in both directions do not deadlock.
 * @returns null if the participant has moved.
 */
async function lockMove(
  tx: TypedSql,
  participantId: string,
  roomIds: string[],
): Promise<{ session: MovingSession; rooms: RoomState[] } | null> {
  const [person] = await tx.$queryRaw<{ removed: boolean; moved: boolean }[]>`
    SELECT removed_at IS NOT NULL AS removed,
      EXISTS (SELECT FROM participants other WHERE other.moved_from_id = participants.id) AS moved
    FROM participants WHERE id = ${participantId} FOR NO KEY UPDATE`;
  if (person?.moved === true) return null;
  if (person?.removed !== false) throw new OperationRefused('PARTICIPANT_REMOVED');
  const [session] = await tx.$queryRaw<MovingSession[]>`
    SELECT s.id, s.resume_secret_hash AS "resumeSecretHash", s.permissions, ${IS_ENCODER} AS "isEncoder", (
      SELECT n.id FROM rooms JOIN media_nodes n ON n.id = rooms.media_node_id
      WHERE rooms.id = s.room_id AND n.state = 'up' AND NOT n.draining
    ) AS "mediaNodeId"
    FROM participant_sessions s WHERE s.participant_id = ${participantId} AND s.ended_at IS NULL FOR NO KEY UPDATE`;
  if (session === undefined || session.isEncoder) throw new OperationRefused('PARTICIPANT_NOT_CONNECTED');
  const rooms = await tx.$queryRaw<RoomState[]>`
    SELECT ${ROOM_COLUMNS} FROM rooms WHERE id = ANY(${roomIds}::text[]) ORDER BY id FOR NO KEY UPDATE`;
  return { session, rooms };
}
