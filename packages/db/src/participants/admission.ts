import {
  afterJoin,
  participantAdmitted,
  participantJoined,
  roomStarted,
  type ParticipantState,
  type RoomState,
  type Tenant,
} from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { recordFromStart } from '../recordings/recordings.repository.js';
import { isRecordedFromStart } from '../sessions/join-sessions.js';
import { touchSessions } from '../sessions/session-connection.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { lockParticipant, type ParticipantUpdate } from './moderation.js';

/**
 * Lets a participant out of the lobby, with its session if it waits, in one transaction with the events. The session
 * begins now: usage, the capacity of the room and a recording from the first participant count it from here on. Writes
 * nothing if the participant need not wait.
 */
export function admitParticipant(
  database: Database,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  now: Date,
): Promise<ParticipantUpdate | { outcome: 'room_full' }> {
  return database.transaction(async (sql) => {
    const locked = await lockParticipant(sql, tenant, roomId, participantId);
    if ('outcome' in locked) return locked;
    const { person, waiting, room, sessionId } = locked;
    const { permissions, ...participant } = person;
    const updated = { outcome: 'updated', participant, permissions } as const;
    if (!waiting) return { ...updated, version: null, deliveries: [] };
    const present = sessionId === null ? 0 : await countPresent(sql, roomId);
    if (sessionId !== null && present >= room.maxParticipants) return { outcome: 'room_full' };
    const after = sessionId === null ? room : afterJoin(room, now);
    await sql.$executeRaw`
      WITH session AS (
        UPDATE participant_sessions SET waiting = false, started_at = ${now.toISOString()}::timestamptz
        WHERE id = ${sessionId}
      ), entered AS (
        UPDATE rooms SET status = ${after.status}, started_at = ${after.startedAt?.toISOString() ?? null}::timestamptz,
          empty_since = NULL
        WHERE id = ${roomId} AND ${sessionId}::text IS NOT NULL
      )
      UPDATE participants SET waiting = false WHERE id = ${participantId}`;
    const version = sessionId === null ? null : await touchSessions(sql, participantId);
    const deliveries = await writeAdmission(
      sql,
      tenant,
      { before: room, after, present },
      { sessionId, participant },
      now,
    );
    return { ...updated, version, deliveries };
  });
}

/** The caller has locked the room, and every session that begins or is let in updates it. */
async function countPresent(sql: TypedSql, roomId: string): Promise<number> {
  const [row] = await sql.$queryRaw<[{ count: number }]>`
    SELECT count(*)::int AS count FROM participant_sessions
    WHERE room_id = ${roomId} AND ended_at IS NULL AND NOT waiting`;
  return row.count;
}

async function writeAdmission(
  sql: TypedSql,
  tenant: Tenant,
  { before, after, present }: { before: RoomState; after: RoomState; present: number },
  { sessionId, participant }: { sessionId: string | null; participant: ParticipantState },
  now: Date,
): Promise<DueEndpoint[]> {
  const subject = { tenant, room: after, now };
  const entered =
    sessionId === null
      ? []
      : [
          ...(after.status === before.status ? [] : [roomStarted(subject, present + 1)]),
          participantJoined(subject, { sessionId, participant }),
        ];
  const { deliveries } = await writeEvents(sql, [participantAdmitted(subject, { sessionId, participant }), ...entered]);
  if (sessionId === null || !isRecordedFromStart(before)) return deliveries;
  return [...deliveries, ...(await recordFromStart(sql, tenant, afterJoin(before, now)))];
}
