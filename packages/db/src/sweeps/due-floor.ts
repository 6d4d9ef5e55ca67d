import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { DUE_SOURCES, LATE_MS, type DueQueue } from './due.sql.js';
import { BEGINNING, inSlices, type TimeRange } from './slices.js';

/** Interval of full checks, in milliseconds: a row that came below the floor against the rules is found by then. */
export const FULL_CHECK_MS = 600_000;
/** Due times that the last transaction of a move reads, in milliseconds. The usual move reads no others. */
const LAST_SLICE_MS = 60_000;

export interface FloorMove {
  /** Age of the last full check, in milliseconds, from which on the move is one itself. */
  readonly checkEveryMs?: number;
  /** How far the floor lies back, in milliseconds. Tests shorten it. */
  readonly lateMs?: number;
  /** Ends the move between two slices. The floor then stays where it was. */
  readonly signal?: AbortSignal;
}

export interface MovedFloor {
  floor: Date;
  /** Whether all backlogs were read from the beginning of the index. */
  isChecked: boolean;
}

/**
 * Moves the floor of a queue to the present, and checks all rows if the last check is too old. One process calls it
 * periodically. Concurrent calls wait for each other's transactions.
 */
export async function moveDueFloor(
  database: Pick<Database, 'sqlTransaction'>,
  queue: DueQueue,
  { checkEveryMs = FULL_CHECK_MS, lateMs = LATE_MS, signal }: FloorMove = {},
): Promise<MovedFloor> {
  const { floor, next, checkedMsAgo } = await database.sqlTransaction((tx) => readState(tx, queue, lateMs));
  const isChecked = checkedMsAgo >= checkEveryMs;
  const from = isChecked ? BEGINNING : floor;
  const last = { from: new Date(Math.max(from.getTime(), next.getTime() - LAST_SLICE_MS)), until: next };
  const add = (slice: TimeRange): Promise<unknown> => database.sqlTransaction((tx) => addBacklogs(tx, queue, slice));
  if (!(await inSlices({ from, until: last.from }, add, signal))) return { floor, isChecked: false };
  await database.sqlTransaction(async (tx) => {
    await addBacklogs(tx, queue, last);
    await moveBacklogs(tx, queue, next);
    await tx.$executeRaw`
      UPDATE due_floors SET floor = ${next.toISOString()}::timestamptz,
        checked_at = CASE WHEN ${isChecked} THEN now() ELSE checked_at END
      WHERE queue = ${queue}`;
  });
  return { floor: next, isChecked };
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

interface FloorState {
  floor: Date;
  /** It may lie before the floor: a transaction from before the floor has written, or the clock was set back. */
  next: Date;
  checkedMsAgo: number;
}

async function readState(tx: TypedSql, queue: DueQueue, lateMs: number): Promise<FloorState> {
  await tx.$executeRaw`
    INSERT INTO due_floors (queue, floor, checked_at) VALUES (${queue}, 'epoch', 'epoch') ON CONFLICT DO NOTHING`;
  const [state] = await tx.$queryRaw<[FloorState]>`
    SELECT floor, ${nextFloor(lateMs)} AS next, abs(extract(epoch FROM now() - checked_at) * 1000)::float8 AS "checkedMsAgo"
    FROM due_floors WHERE queue = ${queue}`;
  return state;
}

/** Adds the keys of the rows that are pending and due within a slice. */
async function addBacklogs(tx: TypedSql, queue: DueQueue, { from, until }: TimeRange): Promise<void> {
  const range = Prisma.sql`due_at >= ${from.toISOString()}::timestamptz AND due_at < ${until.toISOString()}::timestamptz`;
  // A concurrent move must not remove a backlog that this one adds.
  await tx.$queryRaw`SELECT FROM due_floors WHERE queue = ${queue} FOR UPDATE`;
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
