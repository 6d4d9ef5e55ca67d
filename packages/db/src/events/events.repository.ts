import type { EventType, Tenant } from '@callplane/core';
import type { Db } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** Where an event stands in the list of its environment, and in that of its room. */
export interface EventPosition {
  id: string;
  roomId: string | null;
  /** Null for events of no room. */
  sequence: number | null;
  /** 64 bits, in decimal. */
  transactionId: string;
}

export interface EventRow extends EventPosition {
  /** The JSON text that is sent. */
  body: string;
}

const POSITION = Prisma.sql`id, room_id AS "roomId", sequence, transaction_id::text AS "transactionId"`;

/** The events of a room, by sequence: its numbers are handed out under the room's lock, so none commits out of turn. */
export async function listRoomEvents(
  db: Db,
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
 * The events of an environment, in the order of the transactions that wrote them. It ends before the oldest transaction
 * that is still open: what that one commits later would otherwise come to stand behind a cursor that has passed it.
 */
export async function listEvents(
  db: Db,
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

/** Where an event of the environment stands; null when there is none. */
export async function findEventPosition(db: Db, tenant: Tenant, eventId: string): Promise<EventPosition | null> {
  const [row] = await db.$queryRaw<EventPosition[]>`
    SELECT ${POSITION} FROM events WHERE id = ${eventId} AND environment_id = ${tenant.environmentId}`;
  return row ?? null;
}

/** The JSON text of an event that a delivery refers to. */
export async function findEventBody(db: Db, tenant: Tenant, eventId: string): Promise<string | null> {
  const event = await db.event.findFirst({
    where: { id: eventId, environmentId: tenant.environmentId },
    select: { body: true },
  });
  return event?.body ?? null;
}

function ofType(type: EventType | null): Prisma.Sql {
  return type === null ? Prisma.empty : Prisma.sql`AND type = ${type}`;
}
