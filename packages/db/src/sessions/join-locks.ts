import type { PaceTimes, ParticipantState, Permission, RoomState } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant.sql.js';
import { reviveRoom, ROOM_COLUMNS } from '../rooms/room.sql.js';
import { paced } from './session.sql.js';
import type { JoinInput, RoomNodes } from './session.js';

export interface JoiningPerson {
  participant: ParticipantState;
  removed: boolean;
  /** Whether it joins into the lobby. */
  waiting: boolean;
  latestJoin: number;
  /** Permissions that the server has set; empty while the token's permissions apply. */
  permissions: Permission[];
  /** Null: it has no such token. */
  tokenRevoked: boolean | null;
  /** Changes with every update of the row ({@link RowVersion}). */
  rowVersion: RowVersion;
}

/** The system column `xmin` of a row: the transaction that wrote it last. A lock does not change it. */
type RowVersion = string;

export interface RoomToJoin extends RoomNodes {
  room: RoomState;
  lastSequence: number;
  version: number;
  rosterPaged: boolean;
  /** Without the lobby. */
  liveSessions: number;
  waitingSessions: number;
  liveSessionOf: Map<string, string>;
  rowVersion: RowVersion;
}

export interface Joining {
  people: Map<string, JoiningPerson>;
  /** Null: it does not exist, or no join needs it. */
  room: RoomToJoin | null;
}

type PersonRow = ParticipantState & Omit<JoiningPerson, 'participant'>;

/** Of the tables `participants` and `input (id, token_id)`. The column `rowVersion` follows. */
const PERSON_COLUMNS = Prisma.sql`${PARTICIPANT_COLUMNS}, participants.removed_at IS NOT NULL AS removed,
  participants.waiting, participants.join_count AS "latestJoin", participants.permissions, (
    SELECT revoked_at IS NOT NULL FROM participant_tokens t
    WHERE t.id = input.token_id AND t.participant_id = participants.id
  ) AS "tokenRevoked"`;

const ROOM_TO_JOIN = Prisma.sql`${ROOM_COLUMNS}, rooms.last_sequence AS "lastSequence", rooms.version,
  rooms.roster_paged AS "rosterPaged", rooms.media_node_id AS "mediaNodeId",
  rooms.media_generation AS "mediaGeneration", rooms.further_node_ids AS "furtherNodeIds", rooms.xmin::text AS "rowVersion"`;

/** Two columns. */
const countLive = (roomId: string): Prisma.Sql => Prisma.sql`
  SELECT count(*) FILTER (WHERE NOT waiting)::int AS "liveSessions",
    count(*) FILTER (WHERE waiting)::int AS "waitingSessions"
  FROM participant_sessions WHERE room_id = ${roomId} AND ended_at IS NULL`;

type RoomRow = RoomState & Omit<RoomToJoin, 'room' | 'liveSessionOf'>;
type AdmissionRow = { [Key in keyof PersonRow]: PersonRow[Key] | null } & {
  requestId: string;
  waitMs: number;
  liveSession: string | null;
  room: RoomRow | null;
};

export interface Admitted extends Joining {
  /** Milliseconds until the participants that join too often may join, by participant id. */
  waitMsOf: Map<string, number>;
}

/**
 * Numbers joins, takes a token from the bucket of each participant, and reads all that decides the joins. One statement
 * outside of a transaction, so a join that is refused for its pace locks and writes nothing.
 *
 * The statement may wait for a participant that another transaction writes, and read the room as it was before. The
 * participants are read as they are then, and {@link lockUnchanged} compares the room.
 * @returns without the participants that the room and the environment of their joins do not have.
 */
export async function admitJoins(
  db: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
  pace: PaceTimes,
): Promise<Admitted> {
  const bucket = paced(Prisma.sql`p.joins_full_at`, pace);
  const rows = await db.$queryRaw<AdmissionRow[]>`
    WITH input AS MATERIALIZED (
      SELECT p.id, request.token_id, ${bucket.waitMs} AS wait_ms
      FROM unnest(${inputs.map(({ participantId }) => participantId)}::text[],
        ${inputs.map(({ tokenId }) => tokenId)}::text[],
        ${inputs.map(({ tenant }) => tenant.environmentId)}::text[]) AS request (id, token_id, environment_id)
      -- The last two conditions are such that no index serves them: only the id leads to one row for sure.
      JOIN participants p ON p.id = request.id
        AND p.room_id || '' = ${roomId} AND p.environment_id || '' = request.environment_id
    ), free AS MATERIALIZED (
      SELECT p.id FROM participants p WHERE p.id = ANY(ARRAY(SELECT id FROM input)) AND ${bucket.isFree}
      ORDER BY p.id FOR NO KEY UPDATE
    ), admitted AS (
      UPDATE participants p SET join_count = p.join_count + 1, joins_full_at = ${bucket.taken}
      WHERE p.id = ANY(ARRAY(SELECT id FROM free))
      RETURNING p.*, p.xmin::text AS row_version
    )
    SELECT input.id AS "requestId", input.wait_ms AS "waitMs", own.id AS "liveSession", ${PERSON_COLUMNS},
      participants.row_version AS "rowVersion",
      -- Once, because the metadata of a room may be large.
      CASE WHEN row_number() OVER () = 1 THEN (
        SELECT to_json(x) FROM (
          SELECT ${ROOM_TO_JOIN}, live.* FROM rooms CROSS JOIN (${countLive(roomId)}) live WHERE rooms.id = ${roomId}
        ) x
      ) END AS room
    FROM input LEFT JOIN admitted AS participants ON participants.id = input.id
    LEFT JOIN participant_sessions own ON own.participant_id = input.id AND own.ended_at IS NULL`;
  const people: PersonRow[] = [];
  const waitMsOf = new Map<string, number>();
  const liveSessions: [participantId: string, sessionId: string][] = [];
  for (const { requestId, waitMs, liveSession, room: _, ...person } of rows) {
    if (person.rowVersion === null) waitMsOf.set(requestId, waitMs);
    else people.push(person as PersonRow);
    if (liveSession !== null) liveSessions.push([requestId, liveSession]);
  }
  const room = rows.find((row) => row.room !== null)?.room ?? null;
  return {
    people: toPeople(people),
    room: room === null ? null : toRoom(reviveRoom(room), liveSessions),
    waitMsOf,
  };
}

/** Locks the participants, so that all joins of one run one after another, and reads them with their tokens. */
export async function lockParticipants(
  sql: TypedSql,
  inputs: readonly JoinInput[],
): Promise<Map<string, JoiningPerson>> {
  const rows = await sql.$queryRaw<PersonRow[]>`
    SELECT ${PERSON_COLUMNS}, participants.xmin::text AS "rowVersion"
    FROM participants
    JOIN unnest(${inputs.map(({ participantId }) => participantId)}::text[],
      ${inputs.map(({ tokenId }) => tokenId)}::text[]) AS input (id, token_id) ON input.id = participants.id
    ORDER BY participants.id FOR NO KEY UPDATE OF participants`;
  return toPeople(rows);
}

/** Locks the live sessions of the participants, then the room, and counts the room's live sessions. */
export async function lockRoom(
  sql: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
): Promise<RoomToJoin | null> {
  type Counts = Pick<RoomRow, 'liveSessions' | 'waitingSessions'>;
  type Locked = Omit<RoomRow, keyof Counts> & { own: [participantId: string, sessionId: string][] };
  const [row] = await sql.$queryRaw<Locked[]>`
    WITH own AS MATERIALIZED (
      SELECT id, participant_id FROM participant_sessions
      WHERE participant_id = ANY(${inputs.map(({ participantId }) => participantId)}::text[]) AND ended_at IS NULL
      ORDER BY id FOR NO KEY UPDATE
    )
    SELECT ${ROOM_TO_JOIN}, (SELECT coalesce(json_agg(json_build_array(participant_id, id)), '[]') FROM own) AS own
    FROM rooms
    -- Counting makes the statement lock all sessions first.
    WHERE rooms.id = ${roomId} AND (SELECT count(*) FROM own) >= 0
    FOR NO KEY UPDATE OF rooms`;
  if (row === undefined) return null;
  // A statement of its own: the snapshot of the one before is older than the lock.
  const [live] = await sql.$queryRaw<[Counts]>`
    SELECT "liveSessions", "waitingSessions" FROM (${countLive(roomId)}) live`;
  const { own, ...room } = row;
  return toRoom({ ...room, ...live }, own);
}

/**
 * The CTE `unchanged (held)`: locks the participants and the room without waiting, and holds if nothing has changed or
 * locked them since they were read. Every session that begins updates its room, so `liveSessions` and
 * `waitingSessions` are no larger then.
 */
export function lockUnchanged(people: readonly JoiningPerson[], { room, rowVersion }: RoomToJoin): Prisma.Sql {
  return Prisma.sql`unchanged AS MATERIALIZED (
      SELECT (
        SELECT count(*) FROM (
          SELECT p.id FROM participants p
          JOIN unnest(${people.map(({ participant }) => participant.id)}::text[],
            ${people.map((person) => person.rowVersion)}::text[]) AS seen (id, row_version)
            ON seen.id = p.id AND seen.row_version::xid = p.xmin
          ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED
        ) locked
      ) = ${people.length}::int AND EXISTS (
        SELECT FROM rooms WHERE id = ${room.id} AND xmin = ${rowVersion}::text::xid FOR NO KEY UPDATE SKIP LOCKED
      ) AS held
    )`;
}

function toPeople(rows: readonly PersonRow[]): Map<string, JoiningPerson> {
  return new Map(
    rows.map(({ removed, waiting, latestJoin, permissions, tokenRevoked, rowVersion, ...participant }) => {
      const person = { participant, removed, waiting, latestJoin, permissions, tokenRevoked, rowVersion };
      return [participant.id, person];
    }),
  );
}

function toRoom(row: RoomRow, own: readonly [participantId: string, sessionId: string][]): RoomToJoin {
  const { lastSequence, version, rosterPaged, mediaNodeId, mediaGeneration, furtherNodeIds, rowVersion, ...rest } = row;
  const { liveSessions, waitingSessions, ...room } = rest;
  const known = { lastSequence, version, rosterPaged, mediaNodeId, mediaGeneration, furtherNodeIds, rowVersion };
  return { room, ...known, liveSessions, waitingSessions, liveSessionOf: new Map(own) };
}
