import { slotMsOfRow, type SlotMs } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { DUE_SOURCES, floorOf } from '../sweeps/due.sql.js';
import { PENDING } from './delivery.sql.js';

/** The data that a worker needs to schedule an endpoint. */
export interface SchedulableEndpoint {
  endpointId: string;
  environmentId: string;
  slotMs: SlotMs;
}

/** Finds endpoints that accept deliveries, by their ids and by the ids of deliveries. */
export async function findSchedulableEndpoints(
  db: TypedSql,
  { endpointIds, deliveryIds }: { endpointIds: readonly string[]; deliveryIds: readonly string[] },
): Promise<SchedulableEndpoint[]> {
  const rows = await db.$queryRaw<StandingRow[]>`
    SELECT id AS "endpointId", environment_id AS "environmentId", slot_ms AS "slotMs", proven,
      failing_since AS "failingSince"
    FROM webhook_endpoints
    WHERE id = ANY(ARRAY(
        SELECT unnest(${endpointIds}::text[]) UNION
        SELECT endpoint_id FROM webhook_deliveries WHERE id = ANY(ARRAY(SELECT unnest(${deliveryIds}::text[])))
      )) AND enabled AND deleted_at IS NULL`;
  return rows.map(schedulable);
}

/** An endpoint with due deliveries: first attempts, retries or both. */
export interface DueEndpoint extends SchedulableEndpoint {
  first: boolean;
  retry: boolean;
}

/** How much of the time before its last scan a worker scans again, in milliseconds: most commits take less. */
const RESCAN_MS = 2000;

export interface NewlyDue {
  due: DueEndpoint[];
  /** Deliveries that were due earlier belong to a backlog. Null while there is no floor: all belong to this scan. */
  floor: Date | null;
  /** Where the next scan may begin, to find only deliveries that have become due meanwhile. */
  next: Date;
  /** Whether `limit` was reached. */
  isMore: boolean;
}

/**
 * Finds the endpoints of deliveries that became due since the floor, or since `since`. The cost depends on the number
 * of deliveries that became due in that time.
 * @param since `next` of the scan before; null begins at the floor.
 * @param limit maximum number of pending deliveries to read.
 */
export async function scanNewlyDue(db: TypedSql, since: Date | null, limit: number): Promise<NewlyDue> {
  const rescan = Prisma.sql`now() - ${RESCAN_MS}::int * interval '1 millisecond'`;
  const from = since === null ? Prisma.sql`'-infinity'` : Prisma.sql`${since.toISOString()}`;
  const range = Prisma.sql`due_at <= now() AND due_at >= (SELECT begins FROM floor)`;
  const rows = await db.$queryRaw<(NewlyDueState & { first: boolean; retry: boolean } & NullableStanding)[]>`
    WITH floor AS MATERIALIZED (
      SELECT at, greatest(at, least(${from}::timestamptz, ${rescan})) AS begins FROM (SELECT ${floorOf('deliveries')} AS at) f
    ), newly AS MATERIALIZED (
      SELECT * FROM (${DUE_SOURCES.deliveries.within(range)}) AS d ORDER BY due_at LIMIT ${limit}::int
    ), found AS (
      SELECT key, bool_or(NOT is_retry) AS first, bool_or(is_retry) AS retry FROM newly GROUP BY key
    )
    SELECT CASE WHEN isfinite(floor.at) THEN floor.at END AS floor, read.count, read.last, ${rescan} AS "rescanAt",
      e.id AS "endpointId", e.environment_id AS "environmentId", e.slot_ms AS "slotMs", e.proven,
      e.failing_since AS "failingSince", found.first, found.retry
    FROM floor CROSS JOIN (SELECT count(*)::int AS count, max(due_at) AS last FROM newly) AS read
    LEFT JOIN (found JOIN webhook_endpoints e ON e.id = found.key AND e.enabled AND e.deleted_at IS NULL) ON true`;
  const [state] = rows;
  if (state === undefined) throw new Error('the scan for due deliveries returned no state');
  const { last, count } = state;
  // Always ahead of the scan before, even if as many deliveries as the limit are due in the same millisecond.
  const isMore = last !== null && count === limit;
  const next = isMore ? new Date(Math.max(last.getTime(), (since?.getTime() ?? 0) + 1)) : state.rescanAt;
  return { due: rows.flatMap(toDue), floor: state.floor, next, isMore };
}

interface NewlyDueState {
  floor: Date | null;
  count: number;
  last: Date | null;
  rescanAt: Date;
}

type NullableStanding = Omit<StandingRow, 'endpointId'> & { endpointId: string | null };

function toDue({
  endpointId,
  first,
  retry,
  ...row
}: NullableStanding & { first: boolean; retry: boolean }): DueEndpoint[] {
  if (endpointId === null) return [];
  const { environmentId, slotMs, proven, failingSince } = row;
  return [{ ...schedulable({ endpointId, environmentId, slotMs, proven, failingSince }), first, retry }];
}

/** The due times of the first deliveries of an endpoint that were due before the floor, by kind. */
export interface DeliveryBacklog {
  endpointId: string;
  firstSince: Date | null;
  retrySince: Date | null;
}

export interface Backlogs {
  /** Includes those of disabled endpoints. */
  backlogs: DeliveryBacklog[];
  /** The enabled endpoints among them that still have due deliveries. */
  due: DueEndpoint[];
  /** Null when the scan has reached the end. */
  nextId: string | null;
}

/**
 * Lists endpoints with deliveries that were due before the floor. The cost depends on the number of such endpoints.
 * @param afterId the cursor of the previous scan; '' starts from the beginning.
 */
export async function scanBacklogs(db: TypedSql, afterId: string, limit: number): Promise<Backlogs> {
  const rows = await db.$queryRaw<(NullableStanding & BacklogRow)[]>`
    WITH backlog AS MATERIALIZED (
      SELECT key, min(since) FILTER (WHERE NOT is_retry) AS first_since, min(since) FILTER (WHERE is_retry) AS retry_since
      FROM due_backlogs WHERE queue = 'deliveries' AND key > ${afterId} GROUP BY key ORDER BY key LIMIT ${limit}::int
    )
    SELECT backlog.key, e.id AS "endpointId", e.environment_id AS "environmentId", e.slot_ms AS "slotMs", e.proven,
      e.failing_since AS "failingSince", first_since AS "firstSince", retry_since AS "retrySince",
      ${hasDue('first')} AS first, ${hasDue('retry')} AS retry
    FROM backlog LEFT JOIN webhook_endpoints e ON e.id = backlog.key AND e.enabled AND e.deleted_at IS NULL
    CROSS JOIN (SELECT false AS first, true AS retry OFFSET 0) AS kind
    ORDER BY backlog.key`;
  const backlogs = rows.map(({ key, firstSince, retrySince }) => ({ endpointId: key, firstSince, retrySince }));
  const due = rows.flatMap(toDue).filter(({ first, retry }) => first || retry);
  return { backlogs, due, nextId: rows.length < limit ? null : (rows.at(-1)?.key ?? null) };
}

interface BacklogRow {
  key: string;
  first: boolean;
  retry: boolean;
  firstSince: Date | null;
  retrySince: Date | null;
}

/**
 * Whether the endpoint `e` still has a due delivery of its backlog of this kind. The kind comes from a column, because
 * PostgreSQL rewrites a comparison with the constant `false` into an expression that does not match the index.
 */
function hasDue(kind: 'first' | 'retry'): Prisma.Sql {
  return Prisma.sql`(
    SELECT true FROM webhook_deliveries
    WHERE ${PENDING} AND endpoint_id = e.id AND (run_attempts > 0) = ${Prisma.raw(`kind.${kind}`)}
      AND due_at >= ${Prisma.raw(`${kind}_since`)} AND due_at <= now() ORDER BY due_at LIMIT 1
  ) IS NOT NULL`;
}

interface StandingRow {
  endpointId: string;
  environmentId: string;
  slotMs: number | null;
  proven: boolean;
  failingSince: Date | null;
}

function schedulable({ endpointId, environmentId, ...row }: StandingRow): SchedulableEndpoint {
  return { endpointId, environmentId, slotMs: slotMsOfRow(row) };
}
