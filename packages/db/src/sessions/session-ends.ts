import {
  participantLeft,
  type EndedSession,
  type ParticipantState,
  type RoomState,
  type SessionEndReason,
  type Tenant,
} from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant.sql.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { bumpRooms, endTracks, SUBJECT_COLUMNS, SUBJECT_TABLES, toSubject, type SubjectRow } from './session.sql.js';
import type { HeldSession } from './session.js';

interface EndedNow extends EndedSession {
  version: number;
}

/** Maximum number of participants of a room per transaction, so that a large room does not hold locks for long. */
const BATCH = 2000;

/**
 * Ends sessions of one room on behalf of the connections that hold them: unpublishes their tracks and marks the
 * participants as left. Skips sessions that have ended or that another connection holds.
 * @param locked whether to wait for a participant that another transaction has locked, or to skip it.
 */
export async function endSessions(
  database: Database,
  roomId: string,
  held: readonly HeldSession[],
  reason: 'left' | 'connection_lost',
  now: Date,
  locked: 'wait' | 'skip' = 'wait',
): Promise<{ ended: EndedNow[]; deliveries: DueEndpoint[] }> {
  const pairs = Prisma.sql`SELECT * FROM unnest(${held.map(({ sessionId }) => sessionId)}::text[],
    ${held.map(({ connection }) => connection)}::int[])`;
  return database.transaction(async (sql) => {
    const rows = await sql.$queryRaw<SubjectRow[]>`
      SELECT ${SUBJECT_COLUMNS} FROM ${SUBJECT_TABLES}
      WHERE s.room_id = ${roomId} AND s.ended_at IS NULL AND (s.id, s.connection) IN (${pairs})
      ORDER BY participants.id FOR NO KEY UPDATE OF participants ${locked === 'skip' ? Prisma.sql`SKIP LOCKED` : Prisma.empty}`;
    const [first] = rows;
    if (first === undefined) return { ended: [], deliveries: [] };
    const { tenant, room } = toSubject(first);
    const participantIds = rows.map(({ id }) => id);
    const ended = await end(sql, participantIds, reason, now, {
      // Checked again now that the participants are locked: a concurrent transaction may have ended or resumed a session.
      sessions: Prisma.sql`(id, connection) IN (${pairs})`,
      leavers: Prisma.sql`participants.id IN (SELECT participant_id FROM ended)`,
    });
    return { ended, deliveries: await writeSessionsEnded(sql, tenant, room, ended, reason, now) };
  });
}

/**
 * Locks participants, as every writer does before it locks their sessions.
 * @param which a condition on participants; with several, in the order of their ids.
 */
export function lockParticipants(
  tx: TypedSql,
  which: Prisma.Sql,
): PromiseLike<{ id: string; environmentId: string }[]> {
  return tx.$queryRaw<{ id: string; environmentId: string }[]>`
    SELECT id, environment_id AS "environmentId" FROM participants WHERE ${which} FOR NO KEY UPDATE`;
}

/**
 * Ends the session and the presence of a removed participant. Safe to repeat: a session that has ended keeps its time and
 * reason.
 */
export async function endParticipantPresence(
  tx: TypedSql,
  participantId: string,
  reason: SessionEndReason,
  now: Date,
): Promise<EndedNow[]> {
  await lockParticipants(tx, Prisma.sql`id = ${participantId}`);
  // A token that was issued while the removal waited for its lock: the removal did not see it.
  await tx.$executeRaw`
    UPDATE participant_tokens SET revoked_at = ${now.toISOString()}::timestamptz
    WHERE participant_id = ${participantId} AND revoked_at IS NULL`;
  return endPresence(tx, [participantId], reason, now);
}

/**
 * Ends the sessions and the presence of up to {@link BATCH} participants of a room who have not left. Safe to repeat.
 * @returns the number of participants of this batch (0 when none was left), and the ended sessions.
 */
export async function endRoomPresence(
  tx: TypedSql,
  roomId: string,
  now: Date,
): Promise<{ left: number; ended: EndedNow[] }> {
  const which = Prisma.sql`room_id = ${roomId} AND left_at IS NULL ORDER BY id LIMIT ${BATCH}`;
  const present = await lockParticipants(tx, which);
  const ended = await endPresence(
    tx,
    present.map(({ id }) => id),
    'room_ended',
    now,
  );
  return { left: present.length, ended };
}

/**
 * Ends the live sessions of participants, and marks the participants as left, also those without a session. The caller
 * has locked the participants' rows.
 */
function endPresence(
  tx: TypedSql,
  participantIds: readonly string[],
  reason: SessionEndReason,
  now: Date,
): Promise<EndedNow[]> {
  return end(tx, participantIds, reason, now, {
    sessions: Prisma.sql`true`,
    leavers: Prisma.sql`participants.id = ANY(${[...participantIds]}::text[])
      AND (participants.left_at IS NULL OR participants.id IN (SELECT participant_id FROM ended))`,
  });
}

async function end(
  tx: TypedSql,
  participantIds: readonly string[],
  reason: SessionEndReason,
  now: Date,
  where: { sessions: Prisma.Sql; leavers: Prisma.Sql },
): Promise<EndedNow[]> {
  if (participantIds.length === 0) return [];
  const at = now.toISOString();
  const rows = await tx.$queryRaw<(ParticipantState & { sessionId: string; version: number; waiting: boolean })[]>`
    WITH live AS MATERIALIZED (
      SELECT id, room_id FROM participant_sessions
      WHERE ended_at IS NULL AND participant_id = ANY(${[...participantIds]}::text[]) AND ${where.sessions}
      ORDER BY id FOR NO KEY UPDATE
    ), ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM live`)}, ended AS (
      UPDATE participant_sessions s SET ended_at = ${at}::timestamptz, end_reason = ${reason}, version = room.version
      FROM room WHERE s.id = ANY(ARRAY(SELECT id FROM live)) AND s.room_id = room.id
      RETURNING s.id, s.participant_id, s.version, s.waiting
    ), leavers AS (
      -- A participant that never connected left when its token expired, if that was earlier.
      UPDATE participants
      SET left_at = CASE WHEN connected_at IS NULL THEN least(token_expires_at, ${at}::timestamptz) ELSE ${at}::timestamptz END
      WHERE ${where.leavers}
      RETURNING participants.*
    )
    SELECT ended.id AS "sessionId", ended.version, ended.waiting, ${PARTICIPANT_COLUMNS}
    FROM ended JOIN leavers AS participants ON participants.id = ended.participant_id
    ORDER BY ended.id`;
  const ids = rows.map(({ sessionId }) => sessionId);
  const tracks = await endTracks(tx, ids, now);
  return rows.map(({ sessionId, version, waiting, ...participant }) => {
    return { sessionId, version, participant, waiting, tracks: tracks.get(sessionId) ?? [] };
  });
}

/**
 * Writes the events of sessions that this transaction has just ended. Sets `empty_since` when the room is empty now. Like
 * `writeEvents`, it needs all other locks of the transaction before it.
 */
export async function writeSessionsEnded(
  tx: TypedSql,
  tenant: Tenant,
  room: RoomState,
  ended: readonly EndedSession[],
  reason: SessionEndReason,
  now: Date,
): Promise<DueEndpoint[]> {
  if (ended.length === 0) return [];
  const left = ended.flatMap((session) => participantLeft({ tenant, room, now }, session, reason));
  const { deliveries } = await writeEvents(tx, left);
  // Runs under the room's lock, which the sequence numbers took: of several participants that leave at once, the last
  // one finds the room empty.
  await tx.$executeRaw`
    UPDATE rooms SET empty_since = now()
    WHERE id = ${room.id} AND status = 'active' AND empty_since IS NULL
      AND NOT EXISTS (SELECT 1 FROM participant_sessions WHERE room_id = ${room.id} AND ended_at IS NULL AND NOT waiting)`;
  return deliveries;
}
