import type { OldestSnapshot, TableHealth } from '@callplane/db';
import { ok, warning, type Finding } from './findings.js';

/** A transaction that is open for longer is abandoned, or a backup of a large database. */
const TRANSACTION_SECONDS_MAX = 3600;
/** Transactions since the oldest snapshot of a slot or standby, which have no time: hours of a busy service. */
const SNAPSHOT_TRANSACTIONS_MAX = 5_000_000;
/** Autovacuum starts at a twentieth of a table; a fifth means that it cannot keep up, or may not remove rows. */
const DEAD_SHARE_MAX = 0.2;
const DEAD_ROWS_MIN = 50_000;

const ADVICE: Record<OldestSnapshot['holder'], string> = {
  session: 'End the transaction if it is abandoned: SELECT pg_terminate_backend(<pid>). A backup ends by itself.',
  prepared: 'Commit it or roll it back: ROLLBACK PREPARED.',
  slot: 'Drop the slot if nothing reads it: SELECT pg_drop_replication_slot(…).',
  standby: 'End the long query on the standby, or turn hot_standby_feedback off there.',
};

/** Checks for snapshots that keep PostgreSQL from removing dead rows. */
export function checkSnapshots(snapshots: readonly OldestSnapshot[]): Finding {
  const old = snapshots.find(({ seconds, transactions }) =>
    seconds === null ? transactions > SNAPSHOT_TRANSACTIONS_MAX : seconds > TRANSACTION_SECONDS_MAX,
  );
  if (old !== undefined) return warning('snapshots', describeSnapshot(old), ADVICE[old.holder]);
  const seconds = Math.max(0, ...snapshots.map((snapshot) => snapshot.seconds ?? 0));
  return ok('snapshots', `the oldest transaction is ${Math.round(seconds)} s old`);
}

export function describeSnapshot({ holder, name, seconds, transactions }: OldestSnapshot): string {
  const age = seconds === null ? '' : `${Math.round(seconds)} s and `;
  return `the oldest snapshot of a ${holder} (${name ?? 'none'}) is ${age}${transactions} transactions old`;
}

export function checkTables(tables: readonly TableHealth[]): Finding {
  const shareOf = ({ liveRows, deadRows }: TableHealth): number => deadRows / Math.max(1, liveRows);
  const bloated = tables.filter((table) => table.deadRows > DEAD_ROWS_MIN && shareOf(table) > DEAD_SHARE_MAX);
  if (bloated.length === 0) return ok('tables', 'vacuum keeps up');
  const detail = bloated.map(({ table, deadRows }) => `${table} has ${deadRows} dead rows`).join(', ');
  return warning(
    'tables',
    detail,
    'Look for an old snapshot ("rtc db tables"); without one, give autovacuum more workers.',
  );
}
