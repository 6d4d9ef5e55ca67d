import type { EventType, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** Position of an event in the list of its environment and in the list of its room. */
export interface EventPosition {
  id: string;
  roomId: string | null;
  /** Null for events that belong to no room. */
  sequence: number | null;
  /** 64 bits, in decimal. */
  transactionId: string;
}

export interface EventRow extends EventPosition {
  /** The JSON text that is sent. */
  body: string;
}

const POSITION = Prisma.sql`id, room_id AS "roomId", sequence, transaction_id::text AS "transactionId"`;

/**
 * Lists the events of a room by sequence. Sequence numbers are assigned under the room's lock, so events commit in the
 * order of their numbers.
 */
export async function listRoomEvents(
  db: TypedSql,
  tenant: Tenant,
  roomId: string,
  page: { type: EventType | null; afterSequence: number; limit: number },
): Promise<EventRow[]> {
  return db.$queryRaw<EventRow[]>`
    SELECT ${POSITION}, body FROM events
    WHERE room_id = ${roomId} AND environment_id = ${tenant.environmentId} AND sequence > ${page.afterSequence}::int
      ${ofType(page.type)}
    ORDER BY sequence LIMIT ${page.limit}`;
}

/**
 * Lists the events of an environment in the order of the transactions that wrote them. The list ends before the oldest
 * open transaction. Its events could otherwise commit behind a cursor that has already passed them.
 */
export async function listEvents(
  db: TypedSql,
  tenant: Tenant,
  page: { type: EventType | null; after: { transactionId: string; id: string } | null; limit: number },
): Promise<EventRow[]> {
  const after =
    page.after === null
      ? Prisma.empty
      : Prisma.sql`AND (transaction_id, id) > (${page.after.transactionId}::bigint, ${page.after.id})`;
  return db.$queryRaw<EventRow[]>`
    SELECT ${POSITION}, body FROM events
    WHERE environment_id = ${tenant.environmentId} ${after}
      AND transaction_id < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint
        + callplane_transaction_offset() ${ofType(page.type)}
    ORDER BY transaction_id, id LIMIT ${page.limit}`;
}

/** The position of an event of the environment; null when the event does not exist. */
export async function findEventPosition(db: TypedSql, tenant: Tenant, eventId: string): Promise<EventPosition | null> {
  const [row] = await db.$queryRaw<EventPosition[]>`
    SELECT ${POSITION} FROM events WHERE id = ${eventId} AND environment_id = ${tenant.environmentId}`;
  return row ?? null;
}

function ofType(type: EventType | null): Prisma.Sql {
  return type === null ? Prisma.empty : Prisma.sql`AND type = ${type}`;
}
