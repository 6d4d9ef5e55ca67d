import type { EventType, Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { roomsStatus } from '../media/room-placement.js';

/** Position of an event in the list of its environment and in the list of its room. */
export interface EventPosition {
  id: string;
  roomId: string | null;
  sequence: number | null;
  /** 64 bits, in decimal. */
  transactionId: string;
}

export interface EventRow extends EventPosition {
  body: string;
}

const POSITION_FIELDS = { id: true, roomId: true, sequence: true, transactionId: true } as const;
const POSITION = Prisma.sql`id, room_id AS "roomId", sequence, transaction_id::text AS "transactionId"`;
/** Whether all transactions that may still write events before this one have ended. */
const IS_VISIBLE = Prisma.sql`
  transaction_id < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint + callplane_transaction_offset()`;

interface ListedEvents {
  type: EventType | null;
  /** Events that were created from this time on; null for all. */
  since: Date | null;
  limit: number;
}

/**
 * Lists the events of a room by sequence. Sequence numbers are assigned under the room's lock, so events commit in the
 * order of their numbers.
 */
export async function listRoomEvents(
  db: Db,
  { environmentId }: Tenant,
  roomId: string,
  page: ListedEvents & { afterSequence: number },
): Promise<EventRow[]> {
  const { type, since, limit } = page;
  const events = await db.event.findMany({
    where: {
      roomId,
      environmentId,
      sequence: { gt: page.afterSequence },
      ...(type === null ? {} : { type }),
      ...(since === null ? {} : { createdAt: { gte: since } }),
    },
    orderBy: { sequence: 'asc' },
    take: limit,
    select: { ...POSITION_FIELDS, body: true },
  });
  return events.map((event) => ({ ...event, transactionId: String(event.transactionId) }));
}

/**
 * Lists the events of an environment in the order of the transactions that wrote them. The list ends before the oldest
 * open transaction. Its events could otherwise commit behind a cursor that has already passed them.
 */
export async function listEvents(
  db: TypedSql,
  tenant: Tenant,
  { after, type, since, limit }: ListedEvents & { after: EventPosition | null },
): Promise<EventRow[]> {
  const conditions = [
    ...(after === null ? [] : [isAfter(after)]),
    ...(after !== null || since === null
      ? []
      : [Prisma.sql`transaction_id >= ${firstTransactionSince(tenant, since)}`]),
    ...(type === null ? [] : [Prisma.sql`type = ${type}`]),
    ...(since === null ? [] : [Prisma.sql`created_at >= ${since.toISOString()}::timestamptz`]),
  ];
  return db.$queryRaw<EventRow[]>`SELECT ${POSITION}, body FROM ${visible(tenant, conditions, limit)}`;
}

function visible({ environmentId }: Tenant, conditions: readonly Prisma.Sql[], limit: number): Prisma.Sql {
  return Prisma.sql`events
    WHERE environment_id = ${environmentId} AND ${Prisma.join([IS_VISIBLE, ...conditions], ' AND ')}
    ORDER BY transaction_id, id LIMIT ${limit}`;
}

function isAfter({ transactionId, id }: EventPosition): Prisma.Sql {
  return Prisma.sql`(transaction_id, id) > (${transactionId}::bigint, ${id})`;
}

function isUpTo({ transactionId, id }: EventPosition): Prisma.Sql {
  return Prisma.sql`(transaction_id, id) <= (${transactionId}::bigint, ${id})`;
}

export interface EventChange extends EventPosition {
  type: EventType;
  participantId: string | null;
}

/**
 * Lists the events after a position, in the order of `listEvents`, without the bodies.
 * @param until the last event, itself included; null for all that are visible.
 */
export function listEventChanges(
  db: TypedSql,
  tenant: Tenant,
  { after, until, limit }: { after: EventPosition; until: EventPosition | null; limit: number },
): PromiseLike<EventChange[]> {
  const conditions = [isAfter(after), ...(until === null ? [] : [isUpTo(until)])];
  return db.$queryRaw<EventChange[]>`
    SELECT ${POSITION}, type, participant_id AS "participantId" FROM ${visible(tenant, conditions, limit)}`;
}

/** The position of an event of the environment; null when the event does not exist. */
export async function findEventPosition(
  db: Db,
  { environmentId }: Tenant,
  eventId: string,
): Promise<EventPosition | null> {
  const event = await db.event.findUnique({ where: { id: eventId, environmentId }, select: POSITION_FIELDS });
  return event && { ...event, transactionId: String(event.transactionId) };
}

/** The event as deliveries send it, JSON text; null when the environment has no such event. */
export async function findEventBody(db: Db, { environmentId }: Tenant, eventId: string): Promise<string | null> {
  const event = await db.event.findUnique({ where: { id: eventId, environmentId }, select: { body: true } });
  return event?.body ?? null;
}

/**
 * The newest event that {@link listEvents} would show, for each of these environments that has one. Every event before
 * it is visible, too.
 */
export async function newestEvents(
  db: TypedSql,
  environmentIds: readonly string[],
): Promise<Map<string, EventPosition>> {
  const rows = await db.$queryRaw<(EventPosition & { environmentId: string })[]>`
    SELECT input.id AS "environmentId", newest.*
    FROM unnest(${[...environmentIds]}::text[]) AS input (id) CROSS JOIN LATERAL (
      SELECT ${POSITION} FROM events
      WHERE environment_id = input.id AND ${IS_VISIBLE}
      ORDER BY events.transaction_id DESC, events.id DESC LIMIT 1
    ) newest`;
  return new Map(rows.map(({ environmentId, ...position }) => [environmentId, position]));
}

/** The sequence number of the latest event of each of these rooms; rooms that do not exist are missing. */
export async function latestSequences(db: TypedSql, roomIds: readonly string[]): Promise<Map<string, number>> {
  const rooms = await roomsStatus(db, roomIds);
  return new Map([...rooms].map(([id, { sequence }]) => [id, sequence]));
}

/**
 * A transaction before which no event of the environment was created at `since` or later. Transactions are numbered when
 * they begin to write, and apps end them within 15 s. So the environment's events of the minute after its first one since
 * then include the one with the lowest number: a later event with a lower number would belong to a transaction of more
 * than 15 s. Null, which no number exceeds, if there is no such event.
 *
 * The expression of the time makes PostgreSQL use the index of the environment: by the index of creation times, it
 * might read all events of others since then. The sum prevents that it looks for the minimum in the order of
 * transactions, past all older events.
 */
export function firstTransactionSince({ environmentId }: Tenant, since: Date): Prisma.Sql {
  const at = Prisma.sql`(${since.toISOString()}::timestamptz AT TIME ZONE 'UTC')`;
  return Prisma.sql`(
    SELECT min(e.transaction_id + 0) FROM events e
    WHERE e.environment_id = ${environmentId} AND (e.created_at AT TIME ZONE 'UTC') >= ${at}
      AND (e.created_at AT TIME ZONE 'UTC') < (
        SELECT (f.created_at AT TIME ZONE 'UTC') + interval '60 seconds' FROM events f
        WHERE f.environment_id = ${environmentId} AND (f.created_at AT TIME ZONE 'UTC') >= ${at}
        ORDER BY (f.created_at AT TIME ZONE 'UTC') LIMIT 1
      )
  )`;
}
