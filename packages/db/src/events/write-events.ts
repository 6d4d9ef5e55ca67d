import { newId, serialiseEvent, type EventType, type Tenant } from '@callplane/core';
import type { Db } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** Something that happened, to be told. */
export interface NewEvent {
  type: EventType;
  /** Names its resources, each as the API returns it. */
  data: Record<string, unknown>;
}

/** A delivery to be woken; shaped like what packages/queue takes. */
export interface WakeableDelivery {
  id: string;
  /** The replay count: each replay is a run of its own. */
  run: number;
  runAttempts: number;
  wakeUps: number;
}

export interface WrittenEvents {
  eventIds: string[];
  /** Wake these once the transaction has committed. */
  deliveries: WakeableDelivery[];
}

/** Which of the environment's endpoints get an event, beside their subscription. */
export type Recipients = { only: string } | { except: string } | 'all';

/**
 * Writes events and their deliveries, in the transaction of the change that they report: from its commit on they are
 * delivered at least once. Call it last: it locks the room's row for the sequence numbers, a block for all of them.
 * @param roomId the room that all of them belong to; null for events of no room, which have no sequence.
 */
export async function writeEvents(
  tx: Db,
  tenant: Tenant,
  roomId: string | null,
  events: readonly NewEvent[],
  now: Date,
  recipients: Recipients = 'all',
): Promise<WrittenEvents> {
  if (events.length === 0) return { eventIds: [], deliveries: [] };
  const first = roomId === null ? null : await takeSequence(tx, roomId, events.length);
  const rows = events.map(({ type, data }, index) => {
    const id = newId('event');
    const sequence = first === null ? null : first + index;
    const body = serialiseEvent({ id, type, createdAt: now, ...tenantIds(tenant), sequence, data });
    return { id, type, sequence, body };
  });
  const createdAt = now.toISOString();
  const deliveries = await tx.$queryRaw<WakeableDelivery[]>`
    WITH event AS (
      INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at, traceparent)
      SELECT id, ${tenant.environmentId}, type, ${roomId}::text, sequence, body, ${createdAt}::timestamptz,
        ${tenant.traceparent ?? null}::text
      FROM unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ type }) => type)}::text[],
        ${rows.map(({ sequence }) => sequence)}::int[], ${rows.map(({ body }) => body)}::text[])
        AS new (id, type, sequence, body)
      RETURNING id, type
    )
    ${fanOut(tenant, createdAt, recipients)}`;
  return { eventIds: rows.map(({ id }) => id), deliveries };
}

/**
 * The tail of a statement whose CTE `event (id, type)` has just been written: a delivery of each for every endpoint
 * that wants it. Disabled endpoints get theirs too, held back until they are enabled.
 */
export function fanOut(tenant: Tenant, createdAt: string, recipients: Recipients = 'all'): Prisma.Sql {
  const chosen =
    recipients === 'all'
      ? Prisma.sql`('*' = ANY(e.events) OR event.type = ANY(e.events))`
      : 'only' in recipients
        ? Prisma.sql`e.id = ${recipients.only}`
        : Prisma.sql`('*' = ANY(e.events) OR event.type = ANY(e.events)) AND e.id <> ${recipients.except}`;
  return Prisma.sql`
    INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at)
    SELECT callplane_typeid('dlv'), e.environment_id, e.id, event.id, event.type, 'pending', ${createdAt}::timestamptz
    FROM event JOIN webhook_endpoints e ON e.environment_id = ${tenant.environmentId} AND e.deleted_at IS NULL AND ${chosen}
    ORDER BY event.id
    RETURNING id, replay_count AS run, run_attempts AS "runAttempts", wake_ups AS "wakeUps"`;
}

/** Reserves so many numbers of the room's sequence and returns the first. Others wait until this commits. */
async function takeSequence(tx: Db, roomId: string, count: number): Promise<number> {
  const [room] = await tx.$queryRaw<{ last: number }[]>`
    UPDATE rooms SET last_sequence = last_sequence + ${count}::int WHERE id = ${roomId} RETURNING last_sequence AS last`;
  if (room === undefined) throw new Error(`no room ${roomId} to number events of`);
  return room.last - count + 1;
}

function tenantIds({ projectId, environmentId }: Tenant): Tenant {
  return { projectId, environmentId };
}
