import { newId, serialiseEvent, type NewEvent } from '@callplane/core';
import { newIdInSql, newRows } from '../client/sql.js';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { WORKS } from '../webhooks/webhooks.sql.js';
import { matchesFilter } from './event-filter.js';

/** A new delivery of an endpoint, which `wakeDeliveries` of packages/queue takes. */
export interface WrittenDelivery extends DueEndpoint {
  id: string;
  eventId: string;
}

/**
 * The endpoints that get an event: all subscribers, or only one endpoint, even if it does not subscribe to the event's
 * type. A report about an endpoint goes to the subscribers that work: if several fail together, reports of each to all
 * others would be thousands of deliveries that fail as well.
 */
export type Recipients = { only: string } | { about: string } | 'all';

/**
 * Writes events and their deliveries in the transaction of the change that they report: once it commits, they are
 * delivered at least once. Call it once the transaction holds all its locks on other tables: it locks the room's row
 * until the commit, to reserve a block of sequence numbers.
 * @param events finished events of one room, or events that belong to no room and get no sequence.
 * @returns `deliveries` to wake once the transaction has committed.
 */
export async function writeEvents(
  tx: TypedSql,
  events: readonly NewEvent[],
  recipients: Recipients = 'all',
): Promise<{ eventIds: string[]; deliveries: WrittenDelivery[] }> {
  const [one] = events;
  if (one === undefined) return { eventIds: [], deliveries: [] };
  const { roomId } = one;
  if (events.some((event) => event.roomId !== roomId)) throw new Error('the events belong to several rooms');
  const first = roomId === null ? null : await takeSequence(tx, roomId, events.length);
  const numbered = numberEvents(events, first);
  const deliveries = await tx.$queryRaw<WrittenDelivery[]>`
    WITH ${insertEvents(numbered)} ${fanOut(recipients)}`;
  return { eventIds: numbered.map(({ id }) => id), deliveries };
}

/** @param first the sequence number of the first event; null for events that belong to no room. */
export function numberEvents(events: readonly NewEvent[], first: number | null) {
  return events.map((event, index) => ({
    id: newId('event'),
    sequence: first === null ? null : first + index,
    event,
  }));
}

/**
 * The CTE `event (id, environment_id, type, room_id, sequence, created_at)`, which inserts events of the CTE `new_event`.
 * {@link fanOut} follows it.
 * @param rows events of any tenants and rooms.
 * @param where restricts the inserted rows.
 */
export function insertEvents(rows: ReturnType<typeof numberEvents>, where: Prisma.Sql = Prisma.empty): Prisma.Sql {
  const events = rows.map(({ event }) => event);
  return Prisma.sql`new_event AS MATERIALIZED (
      SELECT * FROM ${newRows({
        id: ['text', rows.map(({ id }) => id)],
        environment_id: ['text', events.map(({ tenant }) => tenant.environmentId)],
        type: ['text', events.map(({ type }) => type)],
        room_id: ['text', events.map(({ roomId }) => roomId)],
        sequence: ['int', rows.map(({ sequence }) => sequence)],
        body: ['text', rows.map(({ id, sequence, event }) => serialiseEvent(event, { id, sequence }))],
        created_at: ['text', events.map(({ createdAt }) => createdAt.toISOString())],
        traceparent: ['text', events.map(({ tenant }) => tenant.traceparent ?? null)],
        participant_id: ['text', events.map(({ participantId }) => participantId)],
      })}
    ), event AS (
      INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at, traceparent, participant_id)
      SELECT id, environment_id, type, room_id, sequence, body, created_at::timestamptz, traceparent, participant_id
      FROM new_event
      ${where}
      RETURNING id, environment_id, type, room_id, sequence, created_at
    )`;
}

/**
 * The last part of a statement that begins with {@link insertEvents}: inserts a delivery of each event for every
 * recipient whose filter matches. Disabled endpoints get deliveries too, which are held back until the endpoint is
 * enabled. An event is parsed only if an endpoint has a filter, and once for all of them.
 */
export function fanOut(recipients: Recipients = 'all'): Prisma.Sql {
  const isOnly = typeof recipients === 'object' && 'only' in recipients;
  const wanted = Prisma.sql`('*' = ANY(e.events) OR event.type = ANY(e.events))
        AND (e.filter IS NULL OR ${matchesFilter(Prisma.sql`e.filter`, Prisma.sql`parsed.data`)})`;
  const chosen =
    recipients === 'all'
      ? wanted
      : isOnly
        ? Prisma.sql`e.id = ${recipients.only}`
        : Prisma.sql`${wanted} AND e.id <> ${recipients.about} AND ${WORKS}`;
  const parsed = Prisma.sql`CROSS JOIN LATERAL (
      SELECT CASE WHEN EXISTS (
        SELECT FROM webhook_endpoints e
        WHERE e.environment_id = event.environment_id AND e.deleted_at IS NULL AND e.filter IS NOT NULL
      ) THEN (SELECT body::jsonb -> 'data' FROM new_event WHERE new_event.id = event.id) END AS data OFFSET 0
    ) parsed`;
  // With OFFSET, PostgreSQL looks up the endpoints of each event. Without, it might read all tenants' endpoints for a
  // hash join, if it planned the statement while the table was small.
  return Prisma.sql`
    INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, room_id, sequence, status,
      created_at)
    SELECT ${newIdInSql('delivery')}, event.environment_id, endpoint.id, event.id, event.type, event.room_id,
      event.sequence, 'pending', event.created_at
    FROM event ${isOnly ? Prisma.empty : parsed} CROSS JOIN LATERAL (
      SELECT e.id FROM webhook_endpoints e
      WHERE e.environment_id = event.environment_id AND e.deleted_at IS NULL AND ${chosen} OFFSET 0
    ) endpoint
    ORDER BY event.id
    RETURNING id, endpoint_id AS "endpointId", environment_id AS "environmentId", event_id AS "eventId",
      (SELECT slot_ms FROM webhook_endpoints e WHERE e.id = endpoint_id) AS "slotMs"`;
}

/**
 * Reserves `count` numbers of the room's sequence and returns the first. Other writers wait until this transaction
 * commits.
 */
async function takeSequence(tx: TypedSql, roomId: string, count: number): Promise<number> {
  const [room] = await tx.$queryRaw<{ last: number }[]>`
    UPDATE rooms SET last_sequence = last_sequence + ${count}::int WHERE id = ${roomId} RETURNING last_sequence AS last`;
  if (room === undefined) throw new Error(`no room ${roomId} to number events of`);
  return room.last - count + 1;
}
