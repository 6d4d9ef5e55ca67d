import {
  afterJoin,
  newId,
  participantJoined,
  participantLeft,
  roomStarted,
  type NewEvent,
  type Permission,
  type TrackIdentity,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { fanOut, insertEvents, numberEvents, type WrittenDelivery } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { lockUnchanged, type JoiningPerson, type RoomToJoin } from './join-locks.js';
import type { JoinInput, SessionState } from './session.js';

/** A join that is decided and will be written. */
export interface AcceptedJoin {
  input: JoinInput;
  person: JoiningPerson;
  /** Those that the server has set for the participant, or those of its token. */
  permissions: readonly Permission[];
  /** The participant's live session, which this join ends, with the tracks that were just deleted. */
  superseded: { sessionId: string; tracks: TrackIdentity[] } | null;
}

/**
 * Writes the joins of a batch in one statement: sessions, participants, the room, events and deliveries.
 * @param joins at least one.
 * @param lock `held`: the caller has locked all rows that the statement changes. `unchanged`: the statement locks them
 *   itself, and writes only if they are as they were read and no other transaction has locked them; no join may
 *   supersede a session.
 * @returns the states of the new sessions, in the order of the joins; null if nothing was written.
 */
export async function writeJoins(
  sql: TypedSql,
  room: RoomToJoin,
  joins: readonly AcceptedJoin[],
  rosterPaged: boolean,
  lock: 'held' | 'unchanged',
  now: Date,
): Promise<{ states: SessionState[]; deliveries: WrittenDelivery[] } | null> {
  const version = room.version + 1;
  const states = joins.map((join) => stateOf(join, version, now));
  const events = eventsOf(room, joins, states, now);
  const numbered = numberEvents(events, room.lastSequence + 1);
  const unchanged =
    lock === 'held'
      ? Prisma.sql`unchanged AS (SELECT true AS held)`
      : lockUnchanged(
          joins.map(({ person }) => person),
          room,
        );
  const rows = await sql.$queryRaw<(WrittenDelivery | { id: null })[]>`
    WITH ${unchanged}, ${writeSessions(room.room.id, joins, states, now)},
    ${writeRoom(room, joins, { version, rosterPaged, sequence: room.lastSequence + events.length }, now)},
    ${insertEvents(numbered, Prisma.sql`WHERE (SELECT held FROM unchanged)`)},
    delivery AS (${fanOut()})
    SELECT delivery.* FROM unchanged LEFT JOIN delivery ON true WHERE unchanged.held`;
  if (rows.length === 0) return null;
  return { states, deliveries: rows.filter((row) => row.id !== null) };
}

function stateOf(
  { input, person: { participant }, permissions }: AcceptedJoin,
  version: number,
  now: Date,
): SessionState {
  return {
    sessionId: newId('session'),
    version,
    participant: { ...participant, connectedAt: participant.connectedAt ?? now, leftAt: null },
    startedAt: now,
    permissions,
    instanceId: input.instanceId,
    connection: 1,
    disconnectedAt: null,
    tracks: [],
  };
}

function eventsOf(
  { room }: RoomToJoin,
  joins: readonly AcceptedJoin[],
  states: readonly SessionState[],
  now: Date,
): NewEvent[] {
  const after = afterJoin(room, now);
  const events = joins.flatMap(({ input, superseded }, at): NewEvent[] => {
    const state = elementAt(states, at);
    const subject = { tenant: input.tenant, room: after, now };
    const left =
      superseded === null
        ? []
        : participantLeft(subject, { ...superseded, participant: { ...state.participant, leftAt: now } }, 'superseded');
    return [...left, participantJoined(subject, state)];
  });
  const { tenant } = elementAt(joins, 0).input;
  return after.status === room.status ? events : [roomStarted({ tenant, room: after, now }, joins.length), ...events];
}

/** The CTEs `superseded`, `joined` and `session`. */
function writeSessions(
  roomId: string,
  joins: readonly AcceptedJoin[],
  states: readonly SessionState[],
  now: Date,
): Prisma.Sql {
  const at = now.toISOString();
  const superseded = joins.flatMap((join) => (join.superseded === null ? [] : [join.superseded.sessionId]));
  const inputs = joins.map(({ input }) => input);
  const { version } = elementAt(states, 0);
  return Prisma.sql`superseded AS (
      UPDATE participant_sessions SET ended_at = ${at}::timestamptz, end_reason = 'superseded', version = ${version}::int
      WHERE id = ANY(${superseded}::text[])
      RETURNING id
    ), joined AS (
      UPDATE participants SET connected_at = coalesce(connected_at, ${at}::timestamptz), left_at = NULL
      WHERE id = ANY(${inputs.map(({ participantId }) => participantId)}::text[]) AND (SELECT held FROM unchanged)
    ), session AS (
      INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at, token_id, permissions,
        resume_secret_hash, instance_id, version)
      SELECT id, ${elementAt(inputs, 0).tenant.environmentId}, ${roomId}, participant_id, ${at}::timestamptz, token_id,
        string_to_array(permissions, ' '), decode(secret, 'hex'), instance_id, ${version}::int
      FROM unnest(${states.map(({ sessionId }) => sessionId)}::text[],
        ${inputs.map(({ participantId }) => participantId)}::text[], ${inputs.map(({ tokenId }) => tokenId)}::text[],
        ${states.map(({ permissions }) => permissions.join(' '))}::text[],
        ${inputs.map(({ resumeSecretHash }) => Buffer.from(resumeSecretHash).toString('hex'))}::text[],
        ${inputs.map(({ instanceId }) => instanceId)}::text[])
        AS new (id, participant_id, token_id, permissions, secret, instance_id)
      -- Counting makes the old sessions end first: a participant has one live session at most.
      WHERE (SELECT count(*) FROM superseded) >= 0 AND (SELECT held FROM unchanged)
    )`;
}

/** The CTE `room`. */
function writeRoom(
  { room }: RoomToJoin,
  joins: readonly AcceptedJoin[],
  after: { version: number; rosterPaged: boolean; sequence: number },
  now: Date,
): Prisma.Sql {
  const { status, startedAt } = afterJoin(room, now);
  // Only takes effect if the room has no media server yet.
  const mediaNodeId = joins.find(({ input }) => input.mediaNodeId !== null)?.input.mediaNodeId ?? null;
  return Prisma.sql`room AS (
      UPDATE rooms
      SET status = ${status}, started_at = ${startedAt?.toISOString() ?? null}::timestamptz, empty_since = NULL,
        media_node_id = coalesce(media_node_id, ${mediaNodeId}::text),
        media_generation = media_generation + (media_node_id IS NULL AND ${mediaNodeId}::text IS NOT NULL)::int,
        version = ${after.version}::int, roster_paged = ${after.rosterPaged}, last_sequence = ${after.sequence}::int
      WHERE id = ${room.id} AND (SELECT held FROM unchanged)
    )`;
}

/** An element that must exist, such as the result of a batch at the index of its item. */
export function elementAt<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new Error(`no element ${index} of ${items.length}`);
  return item;
}
