import type { Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { isObservationValid } from '../client/sql.js';

/** Forwards that are listed; more are only counted. */
const FORWARDS_LISTED_MAX = 100;

export interface RoomMedia {
  /** The media servers of the room, its own first. */
  nodes: {
    id: string;
    region: string | null;
    /** The state that a worker last observed; null when the observation is too old. */
    state: 'up' | 'down' | null;
    /** Live sessions of the room that are placed here. */
    sessions: number;
  }[];
  /** The feeds that one of the servers sends to another, newest first. */
  forwards: {
    participantId: string;
    fromNodeId: string;
    toNodeId: string;
    state: 'opening' | 'up' | 'closing';
    streams: number;
    createdAt: Date;
  }[];
  forwardCount: number;
}

type Stored = Omit<RoomMedia, 'forwards'> & {
  forwards: (Omit<RoomMedia['forwards'][number], 'createdAt'> & { createdAt: string })[];
};

/** @returns null if the environment has no such room */
export async function findRoomMedia(db: TypedSql, tenant: Tenant, roomId: string): Promise<RoomMedia | null> {
  const [row] = await db.$queryRaw<Stored[]>`
    SELECT coalesce((
        SELECT json_agg(json_build_object('id', place.id, 'region', n.region,
          'state', CASE WHEN ${isObservationValid} THEN n.state END, 'sessions', coalesce(live.sessions, 0))
          ORDER BY place.position)
        FROM unnest(array_prepend(r.media_node_id, r.further_node_ids)) WITH ORDINALITY AS place (id, position)
        LEFT JOIN media_nodes n ON n.id = place.id
        LEFT JOIN (
          SELECT CASE WHEN s.media_node_id = ANY(r.further_node_ids) THEN s.media_node_id ELSE r.media_node_id END AS id,
            count(*)::int AS sessions
          FROM participant_sessions s WHERE s.room_id = r.id AND s.ended_at IS NULL AND NOT s.waiting GROUP BY 1
        ) live ON live.id = place.id
        WHERE place.id IS NOT NULL AND r.status <> 'ended'
      ), '[]') AS nodes,
      coalesce((
        SELECT json_agg(json_build_object('participantId', f.participant_id, 'fromNodeId', f.from_node_id,
          'toNodeId', f.to_node_id, 'state', f.state, 'streams', cardinality(f.mids), 'createdAt', f.created_at)
          ORDER BY f.created_at DESC, f.id)
        FROM (
          SELECT forwards.*, s.participant_id
          FROM media_forwards forwards JOIN participant_sessions s ON s.id = forwards.session_id
          WHERE forwards.room_id = r.id ORDER BY forwards.created_at DESC, forwards.id LIMIT ${FORWARDS_LISTED_MAX}::int
        ) f
      ), '[]') AS forwards,
      (SELECT count(*)::int FROM media_forwards f WHERE f.room_id = r.id) AS "forwardCount"
    FROM rooms r WHERE r.id = ${roomId} AND r.environment_id = ${tenant.environmentId}`;
  if (row === undefined) return null;
  return { ...row, forwards: row.forwards.map((one) => ({ ...one, createdAt: new Date(one.createdAt) })) };
}
