import {
  afterJoin,
  newId,
  participantJoined,
  participantLeft,
  roomStarted,
  type NewEvent,
  type ParticipantState,
  type Permission,
  type TrackIdentity,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { fanOut, insertEvents, numberEvents, type WakeableDelivery } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { elementAt } from './element.js';
import type { LockedRoom } from './join-locks.js';
import type { JoinInput, SessionState } from './session.js';

/** A join that is decided and will be written. */
export interface AcceptedJoin {
  input: JoinInput;
  participant: ParticipantState;
  /** Those that the server has set for the participant, or those of its token. */
  permissions: readonly Permission[];
  /** The participant's live session, which this join ends, with the tracks that were just deleted. */
  superseded: { sessionId: string; tracks: TrackIdentity[] } | null;
}

/**
 * Writes the joins of a batch in one statement: sessions, participants, the room, events and deliveries. The caller has
 * locked all rows that it changes.
 * @param joins at least one.
 * @returns the states of the new sessions, in the order of the joins.
 */
export async function writeJoins(
  sql: TypedSql,
  locked: LockedRoom,
  joins: readonly AcceptedJoin[],
  rosterPaged: boolean,
  now: Date,
): Promise<{ states: SessionState[]; deliveries: WakeableDelivery[] }> {
  const version = locked.version + 1;
  const states = joins.map((join) => stateOf(join, version, now));
  const events = eventsOf(locked, joins, states, now);
  const numbered = numberEvents(events, locked.lastSequence + 1);
  const one = elementAt(events, 0);
  const deliveries = await sql.$queryRaw<WakeableDelivery[]>`
    WITH ${writeSessions(locked.room.id, joins, states, now)},
    ${writeRoom(locked, joins, { version, rosterPaged, sequence: locked.lastSequence + events.length }, now)},
    ${insertEvents(one, numbered)}
    ${fanOut(one.tenant, now.toISOString())}`;
  return { states, deliveries };
}

function stateOf({ input, participant, permissions }: AcceptedJoin, version: number, now: Date): SessionState {
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
  { room }: LockedRoom,
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
  return after.status === room.status ? events : [roomStarted({ tenant, room: after, now }), ...events];
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
      WHERE id = ANY(${inputs.map(({ participantId }) => participantId)}::text[])
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
      WHERE (SELECT count(*) FROM superseded) >= 0
    )`;
}

/** The CTE `room`. */
function writeRoom(
  { room }: LockedRoom,
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
      WHERE id = ${room.id}
    )`;
}
