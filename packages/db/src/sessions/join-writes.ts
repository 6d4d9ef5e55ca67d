import {
  afterJoin,
  participantJoined,
  participantLeft,
  participantWaiting,
  roomStarted,
  type NewEvent,
  type RoomState,
  type Tenant,
  type TrackIdentity,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { fanOut, insertEvents, numberEvents, type WrittenDelivery } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { lockUnchanged, type JoiningPerson, type RoomToJoin } from './join-locks.js';
import { toTuple, type RoomChanges } from './room-changes.js';
import type { JoinInput, SessionState } from './session.js';

export interface AcceptedJoin {
  input: JoinInput;
  person: JoiningPerson;
  state: SessionState;
  /** The participant's live session, which this join ends, with the tracks that were just deleted. */
  superseded: { sessionId: string; tracks: TrackIdentity[] } | null;
}

type RoomAfter = Omit<RoomChanges, 'after' | 'sessions' | 'tenant'>;

/**
 * @param joins at least one.
 * @param after.mediaNodeId the media server for the room if it has none yet.
 * @param lock `held`: the caller has locked all rows that the statement changes. `unchanged`: the statement locks them
 *   itself, and writes only if they are as they were read and no other transaction has locked them; no join may
 *   supersede a session.
 * @returns null if nothing was written; `changes`: all of them, or null if the joins have superseded sessions.
 */
export async function writeJoins(
  sql: TypedSql,
  before: RoomToJoin,
  joins: readonly AcceptedJoin[],
  { mediaNodeId, rosterPaged }: { mediaNodeId: string | null; rosterPaged: boolean },
  lock: 'held' | 'unchanged',
  now: Date,
): Promise<{ changes: RoomChanges | null; deliveries: WrittenDelivery[] } | null> {
  const version = before.version + 1;
  const isEntered = joins.some(({ state }) => !state.waiting);
  const room = isEntered ? afterJoin(before.room, now) : before.room;
  const events = eventsOf(before, room, joins, now);
  const numbered = numberEvents(events, before.lastSequence + 1);
  const isPlaced = before.mediaNodeId === null && mediaNodeId !== null;
  const after: RoomAfter = {
    room,
    sequence: before.lastSequence + events.length,
    version,
    rosterPaged,
    mediaNodeId: before.mediaNodeId ?? mediaNodeId,
    mediaGeneration: before.mediaGeneration + Number(isPlaced),
    furtherNodeIds: before.furtherNodeIds,
  };
  const unchanged =
    lock === 'held'
      ? Prisma.sql`unchanged AS (SELECT true AS held)`
      : lockUnchanged(
          joins.map(({ person }) => person),
          before,
        );
  const rows = await sql.$queryRaw<(WrittenDelivery | { id: null })[]>`
    WITH ${unchanged}, ${writeSessions(before.room.id, joins, version, now)}, ${writeRoom(after, isEntered)},
    ${insertEvents(numbered, Prisma.sql`WHERE (SELECT held FROM unchanged)`)},
    delivery AS (${fanOut()})
    SELECT delivery.* FROM unchanged LEFT JOIN delivery ON true WHERE unchanged.held`;
  if (rows.length === 0) return null;
  const changes = joins.every(({ superseded }) => superseded === null) ? changesOf(before, joins, after) : null;
  return { changes, deliveries: rows.filter((row) => row.id !== null) };
}

/** The changes, as `readRoomChanges` would read them. They are the whole room if it was empty. */
function changesOf(
  { liveSessions, waitingSessions, version }: RoomToJoin,
  joins: readonly AcceptedJoin[],
  after: RoomAfter,
): RoomChanges {
  const { environmentId, projectId } = tenantOf(joins);
  return {
    ...after,
    tenant: { projectId, environmentId },
    after: liveSessions + waitingSessions === 0 ? null : version,
    sessions: joins.map(({ state, person }) => toTuple(state, after.rosterPaged && person.permissions.length === 0)),
  };
}

function tenantOf([first]: readonly AcceptedJoin[]): Tenant {
  if (first === undefined) throw new Error('no joins');
  return first.input.tenant;
}

function eventsOf({ room }: RoomToJoin, after: RoomState, joins: readonly AcceptedJoin[], now: Date): NewEvent[] {
  const events = joins.flatMap(({ input, state, superseded }): NewEvent[] => {
    const subject = { tenant: input.tenant, room: after, now };
    const left =
      superseded === null
        ? []
        : participantLeft(
            subject,
            { ...superseded, waiting: state.waiting, participant: { ...state.participant, leftAt: now } },
            'superseded',
          );
    const { movedFrom } = input;
    return [...left, state.waiting ? participantWaiting(subject, state) : participantJoined(subject, state, movedFrom)];
  });
  const started = roomStarted(
    { tenant: tenantOf(joins), room: after, now },
    joins.filter(({ state }) => !state.waiting).length,
  );
  return after.status === room.status ? events : [started, ...events];
}

function writeSessions(roomId: string, joins: readonly AcceptedJoin[], version: number, now: Date): Prisma.Sql {
  const at = now.toISOString();
  const superseded = joins.flatMap((join) => join.superseded?.sessionId ?? []);
  const inputs = joins.map(({ input }) => input);
  const states = joins.map(({ state }) => state);
  return Prisma.sql`superseded AS (
      UPDATE participant_sessions SET ended_at = ${at}::timestamptz, end_reason = 'superseded', version = ${version}::int
      WHERE id = ANY(${superseded}::text[])
      RETURNING id
    ), joined AS (
      UPDATE participants SET connected_at = coalesce(connected_at, ${at}::timestamptz), left_at = NULL
      WHERE id = ANY(${inputs.map(({ participantId }) => participantId)}::text[]) AND (SELECT held FROM unchanged)
    ), session AS (
      INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at, token_id, permissions,
        resume_secret_hash, instance_id, version, waiting)
      SELECT id, ${tenantOf(joins).environmentId}, ${roomId}, participant_id, ${at}::timestamptz, token_id,
        string_to_array(permissions, ' '), decode(secret, 'hex'), instance_id, ${version}::int, waiting
      FROM unnest(${states.map(({ sessionId }) => sessionId)}::text[],
        ${inputs.map(({ participantId }) => participantId)}::text[], ${inputs.map(({ tokenId }) => tokenId)}::text[],
        ${states.map(({ permissions }) => permissions.join(' '))}::text[],
        ${inputs.map(({ resumeSecretHash }) => Buffer.from(resumeSecretHash).toString('hex'))}::text[],
        ${inputs.map(({ instanceId }) => instanceId)}::text[], ${states.map(({ waiting }) => waiting)}::boolean[])
        AS new (id, participant_id, token_id, permissions, secret, instance_id, waiting)
      -- Counting makes the old sessions end first: a participant has one live session at most.
      WHERE (SELECT count(*) FROM superseded) >= 0 AND (SELECT held FROM unchanged)
    )`;
}

function writeRoom(after: RoomAfter, isEntered: boolean): Prisma.Sql {
  const { room, sequence, version, rosterPaged, mediaNodeId, mediaGeneration } = after;
  return Prisma.sql`room AS (
      UPDATE rooms
      SET status = ${room.status}, started_at = ${room.startedAt?.toISOString() ?? null}::timestamptz,
        empty_since = CASE WHEN NOT ${isEntered} THEN empty_since END, media_node_id = ${mediaNodeId}::text, media_generation = ${mediaGeneration}::int,
        version = ${version}::int, roster_paged = ${rosterPaged}, last_sequence = ${sequence}::int
      WHERE id = ${room.id} AND (SELECT held FROM unchanged)
    )`;
}
