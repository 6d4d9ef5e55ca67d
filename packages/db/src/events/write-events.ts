import { newId, serialiseEvent, type NewEvent, type Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** A new delivery, in the shape that `wakeDeliveries` of packages/queue takes. It wakes each endpoint once. */
export interface WakeableDelivery {
  id: string;
  endpointId: string;
}

export interface WrittenEvents {
  eventIds: string[];
  /** Wake these once the transaction has committed. */
  deliveries: WakeableDelivery[];
}

/**
 * The endpoints that get an event: all subscribers, all subscribers except one, or only one endpoint, even if it does
 * not subscribe to the event's type.
 */
export type Recipients = { only: string } | { except: string } | 'all';

/**
 * Writes events and their deliveries in the transaction of the change that they report: once it commits, they are
 * delivered at least once. Call it once the transaction holds all its locks on other tables: it locks the room's row
 * until the commit, to reserve a block of sequence numbers.
 * @param events finished events of one room, or events that belong to no room and get no sequence.
 */
export async function writeEvents(
  tx: TypedSql,
  events: readonly NewEvent[],
  recipients: Recipients = 'all',
): Promise<WrittenEvents> {
  const [one] = events;
  if (one === undefined) return { eventIds: [], deliveries: [] };
  const { tenant, roomId } = one;
  if (events.some((event) => event.roomId !== roomId)) throw new Error('the events belong to several rooms');
  const first = roomId === null ? null : await takeSequence(tx, roomId, events.length);
  const numbered = numberEvents(events, first);
  const deliveries = await tx.$queryRaw<WakeableDelivery[]>`
    WITH ${insertEvents(one, numbered)} ${fanOut(tenant, one.createdAt.toISOString(), recipients)}`;
  return { eventIds: numbered.map(({ id }) => id), deliveries };
}

interface NumberedEvent {
  id: string;
  type: string;
  sequence: number | null;
  participantId: string | null;
  body: string;
}

/**
 * Gives events their ids and sequence numbers, and serialises them.
 * @param first the sequence number of the first event; null for events that belong to no room.
 */
export function numberEvents(events: readonly NewEvent[], first: number | null): NumberedEvent[] {
  return events.map((event, index) => {
    const id = newId('event');
    const sequence = first === null ? null : first + index;
    const { type, participantId } = event;
    return { id, type, sequence, participantId, body: serialiseEvent(event, { id, sequence }) };
  });
}

/**
 * The CTE `event (id, type, room_id, sequence)`, which inserts events. {@link fanOut} follows it.
 * @param one any of the events: they have one tenant, room and time.
 * @param where restricts what is inserted.
 */
export function insertEvents(
  { tenant, roomId, createdAt }: Pick<NewEvent, 'tenant' | 'roomId' | 'createdAt'>,
  rows: readonly NumberedEvent[],
  where: Prisma.Sql = Prisma.empty,
): Prisma.Sql {
  return Prisma.sql`event AS (
      INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at, traceparent, participant_id)
      SELECT id, ${tenant.environmentId}, type, ${roomId}::text, sequence, body, ${createdAt.toISOString()}::timestamptz,
        ${tenant.traceparent ?? null}::text, participant_id
      FROM unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ type }) => type)}::text[],
        ${rows.map(({ sequence }) => sequence)}::int[], ${rows.map(({ body }) => body)}::text[],
        ${rows.map(({ participantId }) => participantId)}::text[])
        AS new (id, type, sequence, body, participant_id)
      ${where}
      RETURNING id, type, room_id, sequence
    )`;
}

/**
 * The last part of a statement whose CTE `event (id, type, room_id, sequence)` inserts events: inserts a delivery of
 * each event for every recipient. Disabled endpoints get deliveries too, which are held back until the endpoint is enabled.
 */
export function fanOut(tenant: Tenant, createdAt: string, recipients: Recipients = 'all'): Prisma.Sql {
  const chosen =
    recipients === 'all'
      ? Prisma.sql`('*' = ANY(e.events) OR event.type = ANY(e.events))`
      : 'only' in recipients
        ? Prisma.sql`e.id = ${recipients.only}`
        : Prisma.sql`('*' = ANY(e.events) OR event.type = ANY(e.events)) AND e.id <> ${recipients.except}`;
  return Prisma.sql`
    INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, room_id, sequence, status,
      created_at)
    SELECT callplane_typeid('dlv'), e.environment_id, e.id, event.id, event.type, event.room_id, event.sequence,
      'pending', ${createdAt}::timestamptz
    FROM event JOIN webhook_endpoints e ON e.environment_id = ${tenant.environmentId} AND e.deleted_at IS NULL AND ${chosen}
    ORDER BY event.id
    RETURNING id, endpoint_id AS "endpointId"`;
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
