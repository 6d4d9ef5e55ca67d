import type { ParticipantState, Permission, RoomState } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant.sql.js';
import { ROOM_COLUMNS } from '../rooms/room.sql.js';
import type { JoinInput, RoomPlacement } from './session.js';

/** A participant that joins. */
export interface JoiningPerson {
  participant: ParticipantState;
  environmentId: string;
  removed: boolean;
  latestJoin: number;
  /** Permissions that the server has set; empty while those of the token apply. */
  permissions: Permission[];
  /** Null: it has no such token. */
  tokenRevoked: boolean | null;
  /** Changes with every update of the row ({@link RowVersion}). */
  rowVersion: RowVersion;
}

/** The system column `xmin` of a row: the transaction that wrote it last. A lock does not change it. */
type RowVersion = string;

/** A room that participants join, with their live sessions. */
export interface RoomToJoin extends RoomPlacement {
  room: RoomState;
  lastSequence: number;
  version: number;
  rosterPaged: boolean;
  /** Number of the room's live sessions. */
  liveSessions: number;
  /** Live sessions by participant id. */
  liveSessionOf: Map<string, string>;
  rowVersion: RowVersion;
}

/** All that decides the joins of a batch. */
export interface Joining {
  /** By participant id. */
  people: Map<string, JoiningPerson>;
  /** Null: it does not exist, or no join needs it. */
  room: RoomToJoin | null;
}

type PersonRow = ParticipantState & Omit<JoiningPerson, 'participant'>;

/** The participants that join, with their tokens. The clauses `WHERE` and `FOR` follow. */
function selectPeople(inputs: readonly JoinInput[], more: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`
    SELECT ${PARTICIPANT_COLUMNS}, participants.environment_id AS "environmentId",
      participants.removed_at IS NOT NULL AS removed, participants.join_count AS "latestJoin",
      participants.permissions, participants.xmin::text AS "rowVersion", (
        SELECT revoked_at IS NOT NULL FROM participant_tokens t
        WHERE t.id = input.token_id AND t.participant_id = participants.id
      ) AS "tokenRevoked"${more}
    FROM participants
    JOIN unnest(${inputs.map(({ participantId }) => participantId)}::text[],
      ${inputs.map(({ tokenId }) => tokenId)}::text[]) AS input (id, token_id) ON input.id = participants.id`;
}

/**
 * No index has this expression, so PostgreSQL looks participants up by their ids. With statistics from before a room
 * filled, it would take the index of rooms for as good, and read all participants of the room for each join.
 */
const isInRoom = (roomId: string): Prisma.Sql => Prisma.sql`participants.room_id || '' = ${roomId}`;

const ROOM_TO_JOIN = Prisma.sql`${ROOM_COLUMNS}, rooms.last_sequence AS "lastSequence", rooms.version,
  rooms.roster_paged AS "rosterPaged", rooms.media_node_id AS "mediaNodeId",
  rooms.media_generation AS "mediaGeneration", rooms.xmin::text AS "rowVersion"`;

const countLive = (roomId: string): Prisma.Sql => Prisma.sql`
  SELECT count(*)::int AS count FROM participant_sessions WHERE room_id = ${roomId} AND ended_at IS NULL`;

type RoomRow = RoomState & Omit<RoomToJoin, 'room' | 'liveSessionOf' | 'liveSessions'>;
/** A room as JSON, in which times are texts, with the number of its live sessions. */
type RoomJson = Omit<RoomRow, 'createdAt' | 'startedAt' | 'endedAt'> & {
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
  count: number;
};

/** Reads without locks all that decides the joins, in one statement, so that it belongs to one moment. */
export async function readJoining(sql: TypedSql, roomId: string, inputs: readonly JoinInput[]): Promise<Joining> {
  const rows = await sql.$queryRaw<(PersonRow & { liveSession: string | null; room: RoomJson | null })[]>`
    ${selectPeople(
      inputs,
      // Once, because the metadata of a room may be large.
      Prisma.sql`, own.id AS "liveSession", CASE WHEN row_number() OVER () = 1 THEN (
        SELECT to_json(x) FROM (
          SELECT ${ROOM_TO_JOIN}, (${countLive(roomId)}) AS count FROM rooms WHERE rooms.id = ${roomId}
        ) x
      ) END AS room`,
    )}
    LEFT JOIN participant_sessions own ON own.participant_id = participants.id AND own.ended_at IS NULL
    WHERE ${isInRoom(roomId)}`;
  const json = rows.find(({ room }) => room !== null)?.room ?? null;
  const liveSessions = rows.flatMap(({ id, liveSession }): [string, string][] =>
    liveSession === null ? [] : [[id, liveSession]],
  );
  return {
    people: toPeople(rows.map(({ liveSession: _, room: __, ...row }) => row)),
    room: json === null ? null : toRoom(reviveTimes(json), json.count, liveSessions),
  };
}

/** Locks the participants, so that all joins of one run one after another, and reads them with their tokens. */
export async function lockParticipants(
  sql: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
): Promise<Map<string, JoiningPerson>> {
  const rows = await sql.$queryRaw<PersonRow[]>`
    ${selectPeople(inputs, Prisma.empty)}
    WHERE ${isInRoom(roomId)}
    ORDER BY participants.id FOR NO KEY UPDATE OF participants`;
  return toPeople(rows);
}

/** Locks the live sessions of the participants, then the room, and counts the room's live sessions. */
export async function lockRoom(
  sql: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
): Promise<RoomToJoin | null> {
  const [row] = await sql.$queryRaw<(RoomRow & { own: [participantId: string, sessionId: string][] })[]>`
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
  const [live] = await sql.$queryRaw<{ count: number }[]>`${countLive(roomId)}`;
  const { own, ...room } = row;
  return toRoom(room, live?.count ?? 0, own);
}

/**
 * The CTE `unchanged (held)`: locks the participants and the room without waiting, and holds if nothing has changed or
 * locked them since they were read. Every session that begins updates its room, so `liveSessions` is no larger then.
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
    rows.map(({ environmentId, removed, latestJoin, permissions, tokenRevoked, rowVersion, ...participant }) => {
      const person = { participant, environmentId, removed, latestJoin, permissions, tokenRevoked, rowVersion };
      return [participant.id, person];
    }),
  );
}

function toRoom(row: RoomRow, liveSessions: number, own: readonly [string, string][]): RoomToJoin {
  const { lastSequence, version, rosterPaged, mediaNodeId, mediaGeneration, rowVersion, ...room } = row;
  const placement = { mediaNodeId, mediaGeneration };
  return {
    ...placement,
    room,
    lastSequence,
    version,
    rosterPaged,
    rowVersion,
    liveSessions,
    liveSessionOf: new Map(own),
  };
}

function reviveTimes({ count: _, ...room }: RoomJson): RoomRow {
  const { createdAt, startedAt, endedAt } = room;
  return {
    ...room,
    createdAt: new Date(createdAt),
    startedAt: startedAt === null ? null : new Date(startedAt),
    endedAt: endedAt === null ? null : new Date(endedAt),
  };
}
