import type { TypedSql } from '../client/database.js';

export type MediaNodeState = 'up' | 'down';

export interface MediaNodeLoad {
  /** Rooms placed there that have not ended. */
  rooms: number;
  /** Live sessions in them. */
  sessions: number;
  /** No new rooms are placed there. */
  draining: boolean;
}

export interface MediaNodeRow extends MediaNodeLoad {
  id: string;
  /** As a worker saw it last; null when none has looked lately. */
  state: MediaNodeState | null;
  checkedAt: Date | null;
}

/** What was seen longer ago says nothing: the workers are away, or the server is not configured any more. */
const SEEN_WITHIN_MS = 30_000;

/** Every media server that is known or carries rooms. */
export function listMediaNodes(db: TypedSql): PromiseLike<MediaNodeRow[]> {
  return db.$queryRaw<MediaNodeRow[]>`
    WITH placed AS (
      SELECT r.media_node_id AS id, count(DISTINCT r.id)::int AS rooms, count(s.id)::int AS sessions
      FROM rooms r LEFT JOIN participant_sessions s ON s.room_id = r.id AND s.ended_at IS NULL
      WHERE r.media_node_id IS NOT NULL AND r.status <> 'ended'
      GROUP BY r.media_node_id
    )
    SELECT coalesce(n.id, placed.id) AS id, coalesce(rooms, 0) AS rooms, coalesce(sessions, 0) AS sessions,
      coalesce(draining, false) AS draining,
      CASE WHEN checked_at > now() - ${SEEN_WITHIN_MS}::int * interval '1 millisecond' THEN state END AS state,
      checked_at AS "checkedAt"
    FROM media_nodes n FULL JOIN placed ON placed.id = n.id
    ORDER BY 1`;
}

/** What placement weighs. Servers that carry nothing and are not known yet are missing. */
export async function nodeLoads(db: TypedSql): Promise<Map<string, MediaNodeLoad>> {
  const rows = await listMediaNodes(db);
  return new Map(rows.map(({ id, rooms, sessions, draining }) => [id, { rooms, sessions, draining }]));
}

export async function setNodeDraining(db: TypedSql, nodeId: string, draining: boolean): Promise<void> {
  await db.$queryRaw`
    INSERT INTO media_nodes (id, draining) VALUES (${nodeId}, ${draining})
    ON CONFLICT (id) DO UPDATE SET draining = excluded.draining`;
}

/**
 * Notes what a worker has just seen of a media server.
 * @returns whether that is news.
 */
export async function recordNodeState(db: TypedSql, nodeId: string, state: MediaNodeState): Promise<boolean> {
  const [row] = await db.$queryRaw<{ changed: boolean }[]>`
    WITH before AS (SELECT state FROM media_nodes WHERE id = ${nodeId} AND checked_at IS NOT NULL)
    INSERT INTO media_nodes (id, state, checked_at) VALUES (${nodeId}, ${state}, now())
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, checked_at = excluded.checked_at
    RETURNING state IS DISTINCT FROM (SELECT state FROM before) AS changed`;
  return row?.changed ?? false;
}
