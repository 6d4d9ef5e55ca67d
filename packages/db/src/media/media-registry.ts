import type { Db, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isObservationValid } from '../client/sql.js';

/** Registered media servers. Every gateway and cleanup worker keeps a connection to each. */
export const REGISTERED_NODES_MAX = 64;
export const NODE_CAPACITY_MAX = 1_000_000;
/** A media server whose agent has sent no heartbeat for this time counts as silent. */
export const AGENT_SILENT_MS = 30_000;
/** A silent media server that no worker reaches and that carries no rooms is removed after this time. */
const SILENT_NODE_KEPT_MS = 3_600_000;

export interface NodeRegistration {
  id: string;
  url: string;
  /** Number of participants that the server is meant for; null: unknown. */
  capacity: number | null;
  /** As `REGION_PATTERN` says; null: none. */
  region: string | null;
  hasAgent: boolean;
  /** The registered servers whose agents did not answer this server's agent on the ports of forwards; null: it did not ask. */
  unreached?: readonly string[] | null;
}

/**
 * - `registered`: the registry has a new server or a new address.
 * - `known`: only the heartbeat, the capacity, the region or the reach has changed.
 * - `taken`: an agent that runs has registered another address under this name.
 * - `full`: {@link REGISTERED_NODES_MAX} servers are registered.
 */
export type RegistrationOutcome = 'registered' | 'known' | 'taken' | 'full';

const isAgentAlive = Prisma.sql`coalesce(media_nodes.heartbeat_at > now() - ${AGENT_SILENT_MS}::int * interval '1 millisecond', false)`;

export function listRegisteredNodes(db: TypedSql) {
  return db.$queryRaw<{ id: string; url: string }[]>`
    SELECT id, url FROM media_nodes WHERE url IS NOT NULL ORDER BY id LIMIT ${REGISTERED_NODES_MAX}`;
}

/** Registers a media server or changes its registration; also the heartbeat of its agent. */
export async function registerMediaNode(db: TypedSql, node: NodeRegistration): Promise<RegistrationOutcome> {
  const { id, url, capacity, region, hasAgent, unreached = null } = node;
  const [row] = await db.$queryRaw<{ outcome: RegistrationOutcome }[]>`
    WITH before AS (
      SELECT url, url <> ${url}::text AND ${isAgentAlive} AS taken FROM media_nodes
      WHERE id = ${id} AND url IS NOT NULL
    ), capped AS (
      SELECT NOT EXISTS (SELECT FROM before)
        AND (SELECT count(*) FROM media_nodes WHERE url IS NOT NULL) >= ${REGISTERED_NODES_MAX}::int AS is_full
    ), written AS (
      INSERT INTO media_nodes (id, url, capacity, region, registered_at, heartbeat_at, unreached)
      SELECT ${id}, ${url}, ${capacity}::int, ${region}::text, now(), CASE WHEN ${hasAgent}::boolean THEN now() END,
        ${unreached === null ? null : [...unreached]}::text[]
      FROM capped WHERE NOT is_full AND NOT EXISTS (SELECT FROM before WHERE taken)
      ON CONFLICT (id) DO UPDATE SET url = excluded.url, capacity = excluded.capacity,
        region = excluded.region, heartbeat_at = excluded.heartbeat_at, unreached = excluded.unreached,
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
      AND NOT EXISTS (
        SELECT FROM rooms WHERE rooms.status <> 'ended' AND rooms.media_node_id IS NOT NULL
          AND (rooms.media_node_id = media_nodes.id OR media_nodes.id = ANY(rooms.further_node_ids))
      )
    RETURNING id`;
  return rows.map(({ id }) => id).sort();
}
