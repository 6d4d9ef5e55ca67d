import type { Db, TypedSql } from '../client/database.js';
import { isObservationValid } from '../client/sql.js';
import { Prisma } from '../generated/client.js';

type MediaNodeState = 'up' | 'down';

interface MediaNodeLoad {
  rooms: number;
  sessions: number;
  /** A draining server gets no new rooms. */
  draining: boolean;
  /** Number of participants that the server is meant for; null: unknown. */
  capacity: number | null;
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
}

/** Lists every media server that has a row or carries rooms. */
export function listMediaNodes(db: TypedSql): PromiseLike<MediaNodeRow[]> {
  return db.$queryRaw<MediaNodeRow[]>`
    WITH placed AS (
      SELECT r.media_node_id AS id, count(DISTINCT r.id)::int AS rooms, count(s.id)::int AS sessions
      FROM rooms r LEFT JOIN participant_sessions s ON s.room_id = r.id AND s.ended_at IS NULL
      WHERE r.media_node_id IS NOT NULL AND r.status <> 'ended'
      GROUP BY r.media_node_id
    )
    SELECT coalesce(n.id, placed.id) AS id, coalesce(rooms, 0) AS rooms, coalesce(sessions, 0) AS sessions,
      coalesce(draining, false) AS draining, capacity,
      CASE WHEN ${isObservationValid} THEN state END AS state, version,
      checked_at AS "checkedAt", url, heartbeat_at AS "heartbeatAt",
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

/** Registered media servers. Every gateway and cleanup worker keeps a connection to each. */
export const REGISTERED_NODES_MAX = 64;
export const NODE_CAPACITY_MAX = 1_000_000;
/** A media server whose agent has sent no heartbeat for this time counts as silent. */
const AGENT_SILENT_MS = 30_000;
/** A silent media server that no worker reaches and that carries no rooms is removed after this time. */
const SILENT_NODE_KEPT_MS = 3_600_000;

export interface NodeRegistration {
  id: string;
  url: string;
  /** Number of participants that the server is meant for; null: unknown. */
  capacity: number | null;
  hasAgent: boolean;
}

/**
 * - `registered`: the registry has a new server or a new address.
 * - `known`: only the heartbeat or the capacity has changed.
 * - `taken`: an agent that runs has registered another address under this name.
 * - `full`: {@link REGISTERED_NODES_MAX} servers are registered.
 */
export type RegistrationOutcome = 'registered' | 'known' | 'taken' | 'full';

const isAgentAlive = Prisma.sql`coalesce(media_nodes.heartbeat_at > now() - ${AGENT_SILENT_MS}::int * interval '1 millisecond', false)`;

export async function listRegisteredNodes(db: Db) {
  const nodes = await db.mediaNode.findMany({
    where: { url: { not: null } },
    orderBy: { id: 'asc' },
    take: REGISTERED_NODES_MAX,
    select: { id: true, url: true },
  });
  return nodes.flatMap(({ id, url }) => (url === null ? [] : [{ id, url }]));
}

/** Registers a media server or changes its registration; also the heartbeat of its agent. */
export async function registerMediaNode(db: TypedSql, node: NodeRegistration): Promise<RegistrationOutcome> {
  const { id, url, capacity, hasAgent } = node;
  const [row] = await db.$queryRaw<{ outcome: RegistrationOutcome }[]>`
    WITH before AS (
      SELECT url, url <> ${url}::text AND ${isAgentAlive} AS taken FROM media_nodes
      WHERE id = ${id} AND url IS NOT NULL
    ), capped AS (
      SELECT NOT EXISTS (SELECT FROM before)
        AND (SELECT count(*) FROM media_nodes WHERE url IS NOT NULL) >= ${REGISTERED_NODES_MAX}::int AS is_full
    ), written AS (
      INSERT INTO media_nodes (id, url, capacity, registered_at, heartbeat_at)
      SELECT ${id}, ${url}, ${capacity}::int, now(), CASE WHEN ${hasAgent}::boolean THEN now() END
      FROM capped WHERE NOT is_full AND NOT EXISTS (SELECT FROM before WHERE taken)
      ON CONFLICT (id) DO UPDATE SET url = excluded.url, capacity = excluded.capacity,
        heartbeat_at = excluded.heartbeat_at,
        registered_at = coalesce(media_nodes.registered_at, excluded.registered_at)
      RETURNING url
    )
    SELECT CASE
      WHEN EXISTS (SELECT FROM written) THEN
        CASE WHEN EXISTS (SELECT FROM before WHERE url = ${url}::text) THEN 'known' ELSE 'registered' END
      WHEN is_full THEN 'full'
      ELSE 'taken'
    END AS outcome FROM capped`;
  if (row === undefined) throw new Error('the registration has no outcome');
  return row.outcome;
}

/** The agent has stopped: it counts as silent from now on, and another one may register another address. */
export async function silenceAgent(db: TypedSql, nodeId: string): Promise<void> {
  await db.$executeRaw`
    UPDATE media_nodes SET heartbeat_at = now() - ${AGENT_SILENT_MS}::int * interval '1 millisecond'
    WHERE id = ${nodeId} AND heartbeat_at IS NOT NULL`;
}

/** @returns whether it had a row, which also has its drain setting and its last observation. */
export async function removeMediaNode(db: Db, nodeId: string): Promise<boolean> {
  return (await db.mediaNode.deleteMany({ where: { id: nodeId } })).count > 0;
}

/**
 * Removes media servers whose agent has been silent for {@link SILENT_NODE_KEPT_MS}, that workers have just failed to
 * reach, and that carry no rooms. After an outage of PostgreSQL all agents are silent, and no worker has looked yet.
 * @returns their names.
 */
export async function removeSilentNodes(db: TypedSql): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    DELETE FROM media_nodes WHERE url IS NOT NULL
      AND heartbeat_at < now() - ${SILENT_NODE_KEPT_MS}::int * interval '1 millisecond'
      AND state = 'down' AND ${isObservationValid}
      AND NOT EXISTS (SELECT FROM rooms WHERE rooms.media_node_id = media_nodes.id AND rooms.status <> 'ended')
    RETURNING id`;
  return rows.map(({ id }) => id).sort();
}
