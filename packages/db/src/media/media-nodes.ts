import type { Db, TypedSql } from '../client/database.js';
import { isObservationValid } from '../client/sql.js';
import { AGENT_SILENT_MS } from './media-registry.js';

type MediaNodeState = 'up' | 'down';

interface MediaNodeLoad {
  rooms: number;
  sessions: number;
  /** A draining server gets no new rooms. */
  draining: boolean;
  /** Number of participants that the server is meant for; null: unknown. */
  capacity: number | null;
  /** Of a registered server, if it names one. */
  region: string | null;
}

export interface MediaNodeRow extends MediaNodeLoad {
  id: string;
  /** The state that a worker last observed; null when the observation is too old. */
  state: MediaNodeState | null;
  /** The version of the Janus that answered a worker last. */
  version: string | null;
  checkedAt: Date | null;
  /** The registered address; null for a server that only MEDIA_NODES names. */
  url: string | null;
  /** Whether the agent beside the server sends heartbeats; null for a server without an agent. */
  agent: 'running' | 'silent' | null;
  heartbeatAt: Date | null;
  /** The servers that it does not reach on the ports of forwards, as its agent said last; null if that does not look. */
  unreached: string[] | null;
}

/** Lists every media server that has a row or carries rooms. */
export function listMediaNodes(db: TypedSql): PromiseLike<MediaNodeRow[]> {
  return db.$queryRaw<MediaNodeRow[]>`
    WITH placed AS (
      SELECT id, sum(rooms)::int AS rooms, sum(sessions)::int AS sessions FROM (
        SELECT media_node_id AS id, count(*) AS rooms, 0 AS sessions FROM rooms
        WHERE media_node_id IS NOT NULL AND status <> 'ended' GROUP BY 1
        UNION ALL SELECT further.id, count(*), 0 FROM rooms, unnest(further_node_ids) AS further (id)
        WHERE media_node_id IS NOT NULL AND status <> 'ended' GROUP BY 1
        UNION ALL SELECT CASE WHEN s.media_node_id = ANY(r.further_node_ids) THEN s.media_node_id ELSE r.media_node_id END,
          0, count(*)
        FROM participant_sessions s JOIN rooms r ON r.id = s.room_id
        WHERE s.ended_at IS NULL AND NOT s.waiting AND r.media_node_id IS NOT NULL AND r.status <> 'ended' GROUP BY 1
      ) counts GROUP BY id
    )
    SELECT coalesce(n.id, placed.id) AS id, coalesce(rooms, 0) AS rooms, coalesce(sessions, 0) AS sessions,
      coalesce(draining, false) AS draining, capacity, region,
      CASE WHEN ${isObservationValid} THEN state END AS state, version,
      checked_at AS "checkedAt", url, heartbeat_at AS "heartbeatAt", unreached,
      CASE WHEN heartbeat_at > now() - ${AGENT_SILENT_MS}::int * interval '1 millisecond' THEN 'running'
        WHEN heartbeat_at IS NOT NULL THEN 'silent' END AS agent
    FROM media_nodes n FULL JOIN placed ON placed.id = n.id
    ORDER BY 1`;
}

/** Load of the media servers, for placement. Servers without a row and without rooms are missing. */
export async function nodeLoads(db: TypedSql): Promise<Map<string, MediaNodeLoad>> {
  return new Map((await listMediaNodes(db)).map((node) => [node.id, node]));
}

export async function setNodeDraining(db: Db, nodeId: string, draining: boolean): Promise<void> {
  await db.mediaNode.upsert({
    where: { id: nodeId },
    create: { id: nodeId, draining },
    update: { draining },
    select: { id: true },
  });
}

/**
 * Records the state of a media server that a worker has just observed.
 * @param noted `version`: null if no Janus has answered this worker; the recorded one stays. `isConfigured`: whether MEDIA_NODES names the server. Otherwise one that was just removed gets no new row.
 * @returns whether the state or the version has changed.
 */
export async function recordNodeState(
  db: TypedSql,
  nodeId: string,
  state: MediaNodeState,
  { version = null, isConfigured = true }: { version?: string | null; isConfigured?: boolean } = {},
): Promise<boolean> {
  const [row] = await db.$queryRaw<{ changed: boolean }[]>`
    WITH before AS (SELECT state, version FROM media_nodes WHERE id = ${nodeId} AND checked_at IS NOT NULL)
    INSERT INTO media_nodes (id, state, version, checked_at) SELECT ${nodeId}, ${state}, ${version}::text, now()
    WHERE ${isConfigured}::boolean OR EXISTS (SELECT FROM media_nodes WHERE id = ${nodeId})
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, checked_at = excluded.checked_at,
      version = coalesce(excluded.version, media_nodes.version)
    RETURNING ROW(state, version) IS DISTINCT FROM (SELECT ROW(before.state, before.version) FROM before) AS changed`;
  return row?.changed ?? false;
}
