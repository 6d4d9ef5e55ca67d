import { TURN_TTL_SECONDS } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { deleteBatch } from '../client/sql.js';
import { Prisma } from '../generated/client.js';
import { ROLLED_UP_UNTIL, rollUpUsage } from '../usage/usage.js';

interface ExpiredRooms {
  /** Minimum age of the rooms' end in seconds, by PostgreSQL's clock. */
  olderThanSeconds: number;
  environmentId: string | null;
}

export interface PurgeStep {
  rooms: number;
  participants: number;
  sessions: number;
  tokens: number;
  operations: number;
}

const ROOMS_PER_STEP = 50;
const ROWS_PER_STEP = 1000;

/**
 * Minimum age of a deleted room's end in seconds. The cleanup worker recognises the relays of an ended session by the
 * session's row, and a client can allocate relays until its credential expires.
 */
export const PURGED_AFTER_SECONDS_MIN = TURN_TTL_SECONDS.max;

/** Keeps a room with a pending operation, because a participant can be removed from an ended room, or with a recording. */
const isExpired = ({ olderThanSeconds, environmentId }: ExpiredRooms): Prisma.Sql => Prisma.sql`
  rooms.status = 'ended'
  AND rooms.ended_at <= now() - greatest(${olderThanSeconds}::int, ${PURGED_AFTER_SECONDS_MIN}::int) * interval '1 second'
  ${environmentId === null ? Prisma.empty : Prisma.sql`AND rooms.environment_id = ${environmentId}`}
  AND NOT EXISTS (SELECT 1 FROM runtime_operations o WHERE o.room_id = rooms.id AND o.status = 'pending')
  AND NOT EXISTS (SELECT 1 FROM recordings r WHERE r.room_id = rooms.id)`;

export async function countExpiredRooms(db: TypedSql, which: ExpiredRooms): Promise<number> {
  const [{ count }] = await db.$queryRaw<[{ count: number }]>`
    SELECT count(*)::int AS count FROM rooms WHERE ${isExpired(which)}`;
  return count;
}

/**
 * Deletes one bounded batch of the rooms that ended longest ago, with everything that belongs to them: tracks,
 * sessions, operations, tokens, participants, and finally the rooms that no row refers to any more. A room with many
 * participants takes several steps. Concurrent workers share the rooms: each skips rooms that another one has locked.
 * Events and deliveries have their own retention and are not deleted here.
 *
 * A step skips locked rows and deletes only rows that no other row refers to. It therefore neither waits for a request
 * nor fails on a concurrent one; a later step deletes the rest.
 *
 * The usage of the days is rolled up first. Rooms that ended on a day without a roll-up are kept.
 */
export async function purgeExpiredRooms(database: Database, which: ExpiredRooms): Promise<PurgeStep> {
  await rollUpUsage(database.sql);
  return database.transaction(async (tx) => {
    const held = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM rooms WHERE ${isExpired(which)} AND rooms.ended_at < ${ROLLED_UP_UNTIL}
      ORDER BY ended_at LIMIT ${ROOMS_PER_STEP} FOR UPDATE SKIP LOCKED`;
    if (held.length === 0) return { rooms: 0, participants: 0, sessions: 0, tokens: 0, operations: 0 };
    const ids = held.map(({ id }) => id);
    const remove = (table: string, rows: Prisma.Sql, key = 'id') =>
      deleteBatch(tx, table, { rows, limit: ROWS_PER_STEP, key });
    // An ended session has no tracks; a leftover one must not keep the room.
    const tracks = Prisma.sql`
      SELECT target.session_id, target.track_id
      FROM participant_sessions s JOIN session_tracks target ON target.session_id = s.id
      WHERE s.room_id = ANY(${ids}::text[]) AND s.ended_at IS NOT NULL`;
    await remove('session_tracks', tracks, '(session_id, track_id)');
    const sessions = Prisma.sql`
      SELECT target.id FROM participant_sessions target
      WHERE target.room_id = ANY(${ids}::text[]) AND target.ended_at IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM session_tracks t WHERE t.session_id = target.id)`;
    const operations = Prisma.sql`
      SELECT target.id FROM runtime_operations target
      WHERE target.room_id = ANY(${ids}::text[]) AND target.status <> 'pending'`;
    const tokens = Prisma.sql`
      SELECT target.id FROM participants p JOIN participant_tokens target ON target.participant_id = p.id
      WHERE p.room_id = ANY(${ids}::text[])
        AND NOT EXISTS (SELECT 1 FROM participant_sessions s WHERE s.token_id = target.id)`;
    const participants = Prisma.sql`
      SELECT target.id FROM participants target
      WHERE target.room_id = ANY(${ids}::text[])
        AND NOT EXISTS (SELECT 1 FROM participant_tokens t WHERE t.participant_id = target.id)
        AND NOT EXISTS (SELECT 1 FROM participant_sessions s WHERE s.participant_id = target.id)
        AND NOT EXISTS (SELECT 1 FROM runtime_operations o WHERE o.participant_id = target.id)`;
    // The step has locked the rooms from its start, so no new row can refer to them.
    const rooms = Prisma.sql`
      SELECT target.id FROM rooms target WHERE target.id = ANY(${ids}::text[])
        AND NOT EXISTS (SELECT 1 FROM participants p WHERE p.room_id = target.id)
        AND NOT EXISTS (SELECT 1 FROM participant_sessions s WHERE s.room_id = target.id)
        AND NOT EXISTS (SELECT 1 FROM runtime_operations o WHERE o.room_id = target.id)`;
    return {
      sessions: await remove('participant_sessions', sessions),
      operations: await remove('runtime_operations', operations),
      tokens: await remove('participant_tokens', tokens),
      participants: await remove('participants', participants),
      rooms: await remove('rooms', rooms),
    };
  });
}
