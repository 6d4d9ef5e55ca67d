import type { Db, TypedSql } from '../client/database.js';
import { OBSERVATION_VALID_MS } from '../client/sql.js';
import { Prisma } from '../generated/client.js';

/**
 * `down`: no process listens there, so the server relays nothing. `unreachable`: it may relay, but a worker cannot make
 * it stop.
 */
export type TurnServerState = 'up' | 'down' | 'unreachable';

export interface TurnServerRow {
  address: string;
  state: TurnServerState;
}

/**
 * The TURN servers that a cleanup worker has checked recently.
 * @param now by PostgreSQL's clock.
 */
export async function listTurnServers(db: Db, now: Date): Promise<TurnServerRow[]> {
  const servers = await db.turnServer.findMany({
    where: { checkedAt: { gt: new Date(now.getTime() - OBSERVATION_VALID_MS) } },
    orderBy: { address: 'asc' },
    select: { address: true, state: true },
  });
  return servers as TurnServerRow[];
}

/**
 * Deletes servers that no worker has checked for a day.
 * @returns whether the state has changed.
 */
export async function recordTurnServerState(db: TypedSql, address: string, state: TurnServerState): Promise<boolean> {
  const [row] = await db.$queryRaw<{ changed: boolean }[]>`
    WITH before AS (SELECT state FROM turn_servers WHERE address = ${address}),
    forgotten AS (DELETE FROM turn_servers WHERE checked_at < now() - interval '1 day' AND address <> ${address})
    INSERT INTO turn_servers (address, state, checked_at) VALUES (${address}, ${state}, now())
    ON CONFLICT (address) DO UPDATE SET state = excluded.state, checked_at = excluded.checked_at
    RETURNING state IS DISTINCT FROM (SELECT state FROM before) AS changed`;
  return row?.changed ?? false;
}

/** Returns the sessions that have ended, or that belong to a room or to one participant of it. */
export async function sessionsAmong(
  db: TypedSql,
  sessionIds: readonly string[],
  which: 'ended' | { roomId: string; participantId: string | null },
): Promise<string[]> {
  const condition =
    which === 'ended'
      ? Prisma.sql`ended_at IS NOT NULL`
      : Prisma.sql`room_id = ${which.roomId}
        AND (${which.participantId}::text IS NULL OR participant_id = ${which.participantId})`;
  const rows = await db.$queryRaw<{ id: string }[]>`
    SELECT id FROM participant_sessions WHERE id = ANY(${[...sessionIds]}::text[]) AND ${condition}`;
  return rows.map(({ id }) => id);
}
