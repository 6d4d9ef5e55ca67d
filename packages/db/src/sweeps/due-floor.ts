import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { DUE_SOURCES, LATE_MS, type DueQueue } from './due.sql.js';

/** Interval of full checks, in milliseconds: a row that came below the floor against the rules is found by then. */
export const FULL_CHECK_MS = 600_000;
/** Due time by which one step moves the floor at most, in milliseconds, so that a step after a long outage ends. */
const STEP_MS_MAX = 3_600_000;

export interface MovedFloor {
  floor: Date;
  /** Whether all backlogs were read from the beginning of the index. */
  isChecked: boolean;
}

/**
 * Moves the floor of a queue towards the present, and checks all rows if the last check is `checkEveryMs` old. One
 * process calls it periodically; concurrent calls wait for each other.
 * @param lateMs how far the floor lies back. Tests shorten it.
 */
export async function moveDueFloor(
  database: Pick<Database, 'sqlTransaction'>,
  queue: DueQueue,
  checkEveryMs = FULL_CHECK_MS,
  lateMs = LATE_MS,
): Promise<MovedFloor> {
  for (;;) {
    const step = await database.sqlTransaction((tx) => moveByStep(tx, queue, lateMs));
    if (step === null) break;
    if (step.isBehind) continue;
    if (step.checkedMsAgo < checkEveryMs) return { floor: step.floor, isChecked: false };
    break;
  }
  return { floor: await database.sqlTransaction((tx) => checkFully(tx, queue, lateMs)), isChecked: true };
}

/** Other sessions whose transactions have written. */
const WRITERS = Prisma.sql`pg_stat_activity
  WHERE backend_xid IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()`;

/**
 * The next floor. Transactions that have written may commit rows that are due from their beginning on. Without the
 * rights of `pg_read_all_stats`, PostgreSQL shows the transaction id of another role, such as the gateway's, but not
 * the beginning. If such a transaction had written before the last step, the floor stays. The first floor has no last
 * step.
 */
const nextFloor = (lateMs: number): Prisma.Sql => Prisma.sql`least(now() - ${lateMs}::int * interval '1 millisecond',
  (SELECT min(xact_start) FROM ${WRITERS}),
  CASE WHEN due_floors.floor > 'epoch' AND EXISTS (
    SELECT 1 FROM ${WRITERS} AND xact_start IS NULL AND age(backend_xid) > age(due_floors.xmin)
  ) THEN due_floors.floor END)`;

interface Step {
  floor: Date;
  isBehind: boolean;
  checkedMsAgo: number;
}

/** @returns null if the queue has no floor yet. */
async function moveByStep(tx: TypedSql, queue: DueQueue, lateMs: number): Promise<Step | null> {
  const [state] = await tx.$queryRaw<{ floor: Date; next: Date; checkedMsAgo: number }[]>`
    SELECT floor, ${nextFloor(lateMs)} AS next, (extract(epoch FROM now() - checked_at) * 1000)::float8 AS "checkedMsAgo"
    FROM due_floors WHERE queue = ${queue} FOR UPDATE`;
  if (state === undefined) return null;
  // An earlier floor than before is right, too: a transaction from before the floor has written, or the clock was set back.
  const next = new Date(Math.min(state.next.getTime(), state.floor.getTime() + STEP_MS_MAX));
  if (next > state.floor) await addBacklogs(tx, queue, state.floor, next);
  await moveBacklogs(tx, queue, next);
  await tx.$executeRaw`
    UPDATE due_floors SET floor = ${next.toISOString()}::timestamptz WHERE queue = ${queue}`;
  return { floor: next, isBehind: next < state.next, checkedMsAgo: Math.abs(state.checkedMsAgo) };
}

async function addBacklogs(tx: TypedSql, queue: DueQueue, from: Date, until: Date): Promise<void> {
  const range = Prisma.sql`due_at >= ${from.toISOString()}::timestamptz AND due_at < ${until.toISOString()}::timestamptz`;
  await tx.$executeRaw`
    INSERT INTO due_backlogs AS b (queue, key, is_retry, since)
    SELECT ${queue}, key, is_retry, min(due_at) FROM (${DUE_SOURCES[queue].within(range)}) AS passed
    GROUP BY key, is_retry ORDER BY key, is_retry
    ON CONFLICT (queue, key, is_retry) DO UPDATE SET since = excluded.since WHERE excluded.since < b.since`;
}

/** Moves each backlog to its first pending row, and removes those without one. */
async function moveBacklogs(tx: TypedSql, queue: DueQueue, until: Date): Promise<void> {
  const range = Prisma.sql`due_at >= k.since AND due_at < ${until.toISOString()}::timestamptz`;
  await tx.$executeRaw`
    WITH first AS MATERIALIZED (
      SELECT key, is_retry, since, (${DUE_SOURCES[queue].firstOf(range)}) AS due_at
      FROM due_backlogs k WHERE queue = ${queue}
    ), gone AS (
      DELETE FROM due_backlogs b USING first
      WHERE b.queue = ${queue} AND b.key = first.key AND b.is_retry = first.is_retry AND first.due_at IS NULL
    )
    UPDATE due_backlogs b SET since = first.due_at FROM first
    WHERE b.queue = ${queue} AND b.key = first.key AND b.is_retry = first.is_retry AND first.due_at > first.since`;
}

/** Finds all backlogs from the beginning of the index, and sets the floor. */
async function checkFully(tx: TypedSql, queue: DueQueue, lateMs: number): Promise<Date> {
  await tx.$executeRaw`
    INSERT INTO due_floors (queue, floor, checked_at) VALUES (${queue}, 'epoch', 'epoch') ON CONFLICT DO NOTHING`;
  const [{ next }] = await tx.$queryRaw<[{ next: Date }]>`
    SELECT ${nextFloor(lateMs)} AS next FROM due_floors WHERE queue = ${queue} FOR UPDATE`;
  await tx.$executeRaw`
    INSERT INTO due_backlogs AS b (queue, key, is_retry, since)
    SELECT ${queue}, k.key, k.is_retry, first.due_at FROM (${DUE_SOURCES[queue].keys}) AS k CROSS JOIN LATERAL (
      ${DUE_SOURCES[queue].firstOf(Prisma.sql`due_at < ${next.toISOString()}::timestamptz`)}
    ) AS first
    ON CONFLICT (queue, key, is_retry) DO UPDATE SET since = excluded.since WHERE excluded.since < b.since`;
  await tx.$executeRaw`
    UPDATE due_floors SET floor = ${next.toISOString()}::timestamptz, checked_at = now() WHERE queue = ${queue}`;
  return next;
}
