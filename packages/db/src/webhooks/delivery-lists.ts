import {
  DELIVERY_STATUSES,
  EVENT_TYPES,
  firstIdAt,
  type DeliveryFailureReason,
  type DeliveryStatus,
  type EventType,
  type Tenant,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { DELIVERY_COLUMNS, DELIVERY_TABLES, type DeliveryRow } from './deliveries.repository.js';

export interface DeliveryListFilter {
  /** Null lists the deliveries of all endpoints of the environment, deleted ones included. */
  endpointId: string | null;
  roomId: string | null;
  status: DeliveryStatus | null;
  eventType: EventType | null;
  failureReason: DeliveryFailureReason | null;
  /** Both times are included. */
  since: Date | null;
  until: Date | null;
}

/**
 * How much the time in a delivery's id may differ from the time of its event, in milliseconds. The id has the time of
 * PostgreSQL's clock, the event the time of an app, which may be 15 s older, the longest duration of a transaction.
 */
const ID_TIME_MARGIN_MS = 60_000;

/**
 * One range of webhook_deliveries_filtered_idx. PostgreSQL can order by the expression only with this index. By the id
 * it could use the primary key and pass over all deliveries of others, which it expects to be few.
 */
const OF_TYPE_AND_STATUS = Prisma.sql`
  d.endpoint_id = endpoint.id AND d.event_type = type.name AND d.status = status.name`;
/** One range of webhook_deliveries_reason_idx. A delivery has a reason exactly while its status is `failed`. */
const OF_TYPE_AND_REASON = (reason: DeliveryFailureReason): Prisma.Sql => Prisma.sql`
  d.endpoint_id = endpoint.id AND d.failure_reason = ${reason} AND d.event_type = type.name`;
const FILTERED_ID = Prisma.sql`(d.id || '')`;
/**
 * One range of the index (endpoint_id, id DESC). For the same reason the condition is no plain equality: the order by
 * endpoint and id then rules out the primary key.
 */
const OF_ENDPOINT = Prisma.sql`d.endpoint_id = ANY(ARRAY[endpoint.id])`;

/**
 * Lists deliveries newest first. Each part of the list, one endpoint or one endpoint with one event type and status, is a
 * range of an index in the order of the list. So the cost grows with the page and the number of endpoints, and not with
 * the number of deliveries that the filters leave out. The ids of a page are an array and no join, because PostgreSQL
 * sorts an array and reads neighbouring ids from one page of the index; a join descends from the root for each.
 */
export async function listDeliveries(
  db: TypedSql,
  tenant: Tenant,
  filter: DeliveryListFilter,
  page: { beforeId: string | null; limit: number },
): Promise<DeliveryRow[]> {
  const { endpointId, status, eventType, failureReason } = filter;
  // No delivery of another status has a reason.
  if (failureReason !== null && status !== null && status !== 'failed') return [];
  if (filter.roomId !== null) return listOfRoom(db, tenant, { ...filter, roomId: filter.roomId }, page);
  const isFiltered = status !== null || eventType !== null || failureReason !== null;
  const id = isFiltered ? FILTERED_ID : Prisma.sql`d.id`;
  const types = eventType === null ? EVENT_TYPES : [eventType];
  const endpoints = Prisma.sql`(
    SELECT id FROM webhook_endpoints
    WHERE environment_id = ${tenant.environmentId} ${endpointId === null ? Prisma.empty : Prisma.sql`AND id = ${endpointId}`}
  ) endpoint ${isFiltered ? Prisma.sql`CROSS JOIN unnest(${[...types]}::text[]) AS type (name)` : Prisma.empty}`;
  /** The newest ids within the ranges of an index that `part` selects for each row of `rows`. */
  const newest = (rows: Prisma.Sql, part: Prisma.Sql): Prisma.Sql => Prisma.sql`
    SELECT found.id FROM ${rows} CROSS JOIN LATERAL (
      SELECT d.id FROM webhook_deliveries d
      WHERE ${part}
        ${page.beforeId === null ? Prisma.empty : Prisma.sql`AND ${id} < ${page.beforeId}`}
        ${createdWithin(filter, id)}
      ORDER BY ${isFiltered ? Prisma.empty : Prisma.sql`d.endpoint_id,`} ${id} DESC LIMIT ${page.limit}
    ) found
    ORDER BY found.id DESC LIMIT ${page.limit}`;
  const statuses = status === null ? DELIVERY_STATUSES : [status];
  const ids = !isFiltered
    ? newest(endpoints, OF_ENDPOINT)
    : failureReason !== null
      ? newest(endpoints, OF_TYPE_AND_REASON(failureReason))
      : newest(
          Prisma.sql`${endpoints} CROSS JOIN unnest(${[...statuses]}::text[]) AS status (name)`,
          OF_TYPE_AND_STATUS,
        );
  return db.$queryRaw<DeliveryRow[]>`
    WITH page AS (${ids})
    SELECT ${DELIVERY_COLUMNS} FROM ${DELIVERY_TABLES} WHERE d.id = ANY(ARRAY(SELECT id FROM page))
    ORDER BY d.id DESC`;
}

/**
 * Deliveries of one room are in the order of its events, which an index has: the cost of a page grows with the events
 * of this room that it passes over.
 */
function listOfRoom(
  db: TypedSql,
  tenant: Tenant,
  filter: DeliveryListFilter & { roomId: string },
  { beforeId, limit }: { beforeId: string | null; limit: number },
): PromiseLike<DeliveryRow[]> {
  const { roomId, endpointId, status, eventType, failureReason } = filter;
  const conditions = [
    Prisma.sql`v.room_id = ${roomId} AND v.environment_id = ${tenant.environmentId}`,
    ...(endpointId === null ? [] : [Prisma.sql`d.endpoint_id = ${endpointId}`]),
    ...(status === null ? [] : [Prisma.sql`d.status = ${status}`]),
    ...(eventType === null ? [] : [Prisma.sql`d.event_type = ${eventType}`]),
    ...(failureReason === null ? [] : [Prisma.sql`d.failure_reason = ${failureReason}`]),
    ...(beforeId === null
      ? []
      : [
          // A cursor may be forged: the id of another tenant has the same effect as an unknown id.
          Prisma.sql`(v.sequence, d.id) < (SELECT sequence, id FROM webhook_deliveries
            WHERE id = ${beforeId} AND environment_id = ${tenant.environmentId})`,
        ]),
  ];
  return db.$queryRaw<DeliveryRow[]>`
    WITH page AS MATERIALIZED (
      SELECT d.id FROM events v JOIN webhook_deliveries d ON d.event_id = v.id
      WHERE ${Prisma.join(conditions, ' AND ')} ${createdWithin(filter, Prisma.sql`d.id`)}
      ORDER BY v.sequence DESC, d.id DESC LIMIT ${limit}
    )
    SELECT ${DELIVERY_COLUMNS} FROM ${DELIVERY_TABLES} WHERE d.id = ANY(ARRAY(SELECT id FROM page))
    ORDER BY d.sequence DESC, d.id DESC`;
}

/** The index knows only ids, so they bound the range, and the times decide within it. */
function createdWithin({ since, until }: Pick<DeliveryListFilter, 'since' | 'until'>, id: Prisma.Sql): Prisma.Sql {
  const conditions = [
    ...(since === null
      ? []
      : [
          Prisma.sql`${id} >= ${idAt(since.getTime() - ID_TIME_MARGIN_MS)}`,
          Prisma.sql`d.created_at >= ${since.toISOString()}::timestamptz`,
        ]),
    ...(until === null
      ? []
      : [
          Prisma.sql`${id} < ${idAt(until.getTime() + ID_TIME_MARGIN_MS)}`,
          Prisma.sql`d.created_at <= ${until.toISOString()}::timestamptz`,
        ]),
  ];
  return conditions.length === 0 ? Prisma.empty : Prisma.sql`AND ${Prisma.join(conditions, ' AND ')}`;
}

function idAt(timeMs: number): string {
  return firstIdAt('delivery', new Date(Math.max(0, timeMs)));
}
