import type { Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';

/** How long a forward stays without a gateway that says that it has receivers, in seconds. */
const WANTED_SECONDS = 10;
/** An attempt to open one may take so long, in seconds. */
const OPENING_SECONDS = 20;

/** A feed that is wanted on a media server. */
export interface WantedForward {
  roomId: string;
  feedId: string;
  fromNodeId: string;
  toNodeId: string;
}

export interface OpenForward {
  name: string;
  feedId: string;
  toNodeId: string;
  /** Of the feed's streams. The position of a stream is its mid on the receiving server. */
  mids: string[];
}

export interface ForwardLimits {
  /** Of the receiving server, for RTP. Each has the next one for RTCP. */
  ports: readonly number[];
  /** Forwards of one environment to one server. */
  environmentMax: number;
}

/**
 * Begins to open a forward: reserves its name and a port.
 * @param name of the feed on the receiving server, never used before
 * @returns the port; null if another gateway is opening it, the feed has no tracks, or no port is free for the environment
 */
export async function beginForward(
  db: TypedSql,
  { environmentId }: Tenant,
  { roomId, feedId, fromNodeId, toNodeId }: WantedForward,
  name: string,
  { ports, environmentMax }: ForwardLimits,
): Promise<number | null> {
  const [row] = await db.$queryRaw<{ port: number }[]>`
    INSERT INTO media_forwards (id, environment_id, room_id, session_id, feed_id, from_node_id, to_node_id, port,
      created_at, wanted_until)
    SELECT ${name}, s.environment_id, s.room_id, s.id, ${feedId}, ${fromNodeId}, ${toNodeId}, free.port,
      now(), now() + ${OPENING_SECONDS}::int * interval '1 second'
    FROM participant_sessions s JOIN LATERAL (
      SELECT p.port FROM unnest(${[...ports]}::int[]) AS p (port)
      WHERE NOT EXISTS (SELECT FROM media_forwards f WHERE f.to_node_id = ${toNodeId} AND f.port = p.port)
      ORDER BY random() LIMIT 1
    ) free ON true
    WHERE s.id = split_part(${feedId}::text, '-', 1) AND s.room_id = ${roomId} AND s.environment_id = ${environmentId}
      AND EXISTS (SELECT FROM session_tracks t WHERE t.session_id = s.id AND t.feed_id = ${feedId})
      AND (
        SELECT count(*) FROM media_forwards f WHERE f.to_node_id = ${toNodeId} AND f.environment_id = s.environment_id
      ) < ${environmentMax}::int
    ON CONFLICT DO NOTHING
    RETURNING port`;
  return row?.port ?? null;
}

/** @returns false if the attempt took too long: then a cleanup worker removes its parts on both servers */
export async function openedForward(db: TypedSql, name: string, mids: readonly string[]): Promise<boolean> {
  const opened = await db.$executeRaw`
    UPDATE media_forwards SET state = 'up', mids = ${[...mids]}::text[],
      wanted_until = now() + ${WANTED_SECONDS}::int * interval '1 second'
    WHERE id = ${name} AND state = 'opening'`;
  return opened > 0;
}

/** An attempt has failed, or the receiving server lacks the feed. */
export async function giveUpForward(db: TypedSql, name: string): Promise<void> {
  await db.$executeRaw`UPDATE media_forwards SET state = 'closing' WHERE id = ${name} AND state <> 'closing'`;
}

/** The open forwards of feeds to a media server, the newest last. */
export function openForwards(db: TypedSql, toNodeId: string, feedIds: readonly string[]): PromiseLike<OpenForward[]> {
  return db.$queryRaw<OpenForward[]>`
    SELECT id AS name, feed_id AS "feedId", to_node_id AS "toNodeId", mids FROM media_forwards
    WHERE feed_id = ANY(${[...feedIds]}::text[]) AND to_node_id = ${toNodeId} AND state = 'up'
    ORDER BY created_at, id`;
}

/** Says that forwards have receivers. @returns the names of the ones that are open still */
export async function keepForwards(db: TypedSql, names: readonly string[]): Promise<Set<string>> {
  if (names.length === 0) return new Set();
  const rows = await db.$queryRaw<{ name: string }[]>`
    UPDATE media_forwards SET wanted_until = now() + ${WANTED_SECONDS}::int * interval '1 second'
    WHERE id = ANY(${[...names]}::text[]) AND state = 'up'
    RETURNING id AS name`;
  return new Set(rows.map(({ name }) => name));
}

export interface ClosingForward extends WantedForward {
  name: string;
}

/**
 * Closes forwards that have no receivers any more, and open ones whose feed has ended.
 * @param unwanted whether the silence of gateways counts: not shortly after an outage of PostgreSQL
 * @returns the forwards that are closing, the oldest first
 */
export async function closeDueForwards(db: TypedSql, unwanted: boolean, limit: number): Promise<ClosingForward[]> {
  await db.$executeRaw`
    UPDATE media_forwards f SET state = 'closing'
    WHERE f.state <> 'closing' AND (
      (${unwanted}::boolean AND f.wanted_until < now())
      OR f.state = 'up'
        AND NOT EXISTS (SELECT FROM session_tracks t WHERE t.session_id = f.session_id AND t.feed_id = f.feed_id)
    )`;
  return db.$queryRaw<ClosingForward[]>`
    SELECT id AS name, room_id AS "roomId", feed_id AS "feedId", from_node_id AS "fromNodeId", to_node_id AS "toNodeId"
    FROM media_forwards WHERE state = 'closing' ORDER BY created_at, id LIMIT ${limit}::int`;
}

/** Whether a gateway is opening a forward of the room. */
export async function isOpeningForward(db: TypedSql, roomId: string): Promise<boolean> {
  const [row] = await db.$queryRaw<[{ isOpening: boolean }]>`
    SELECT EXISTS (SELECT FROM media_forwards WHERE room_id = ${roomId} AND state = 'opening') AS "isOpening"`;
  return row.isOpening;
}

/** Both media servers have nothing left of the forward. */
export async function deleteForward(db: TypedSql, name: string): Promise<void> {
  await db.$executeRaw`DELETE FROM media_forwards WHERE id = ${name} AND state = 'closing'`;
}

export async function anyForwards(db: TypedSql): Promise<boolean> {
  const [row] = await db.$queryRaw<[{ areThere: boolean }]>`SELECT EXISTS (SELECT FROM media_forwards) AS "areThere"`;
  return row.areThere;
}

/** Which of these forwards have a row. */
export async function knownForwards(db: TypedSql, names: readonly string[]): Promise<Set<string>> {
  if (names.length === 0) return new Set();
  const rows = await db.$queryRaw<{ name: string }[]>`
    SELECT id AS name FROM media_forwards WHERE id = ANY(${[...names]}::text[])`;
  return new Set(rows.map(({ name }) => name));
}
