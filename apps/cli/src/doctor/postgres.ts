import { CLOCK_DIFFERENCE_MS_MAX } from '@callplane/core';
import {
  isSynchronous,
  type DatabaseFacts,
  type InvariantResult,
  type OldestSnapshot,
  type Replication,
  type TableHealth,
} from '@callplane/db';
import { failure, ok, warning, type Finding } from './finding.js';

const POSTGRES_VERSION_MIN = 140_000;
const CONNECTIONS_SHARE_MAX = 0.8;
const CLOCK_ADVICE =
  'Run NTP on every machine: tokens and TURN credentials expire by the clocks of API and gateways, and events have their times.';

/** @param clockDifferenceMs this machine's clock minus PostgreSQL's clock. */
export function checkDatabase(facts: DatabaseFacts, clockDifferenceMs: number): Finding[] {
  const share = facts.connections / facts.connectionsMax;
  const used = `${facts.connections} of ${facts.connectionsMax} in use`;
  return [
    facts.versionNumber >= POSTGRES_VERSION_MIN
      ? ok('postgres', `version ${facts.version}`)
      : failure('postgres', `version ${facts.version}`, 'Upgrade PostgreSQL to 14 or later.'),
    facts.encoding === 'UTF8'
      ? ok('text', 'the encoding is UTF8')
      : failure(
          'text',
          `the encoding is ${facts.encoding}`,
          'Dump the database with --encoding=UTF8, and restore it into one with that encoding: names would be refused.',
        ),
    facts.durable
      ? ok('durability', 'commits wait for the disk')
      : failure(
          'durability',
          'fsync or synchronous_commit is off',
          'Turn both on: a crash of PostgreSQL would lose accepted work.',
        ),
    share <= CONNECTIONS_SHARE_MAX
      ? ok('connections', used)
      : warning('connections', used, 'Raise max_connections or lower DATABASE_POOL_MAX of the apps.'),
    Math.abs(clockDifferenceMs) <= CLOCK_DIFFERENCE_MS_MAX
      ? ok('clock', `differs from PostgreSQL's by ${Math.round(clockDifferenceMs)} ms`)
      : warning('clock', `differs from PostgreSQL's by ${(clockDifferenceMs / 1000).toFixed(1)} s`, CLOCK_ADVICE),
    ...facts.running.flatMap(({ app, instance, aheadSeconds }) =>
      aheadSeconds === null
        ? []
        : [warning(`clock ${app} ${instance}`, `differs from PostgreSQL's by ${aheadSeconds} s`, CLOCK_ADVICE)],
    ),
    facts.activeSigningKeys === 1
      ? ok('signing key', 'one is active')
      : warning(
          'signing key',
          'none is active',
          'Start the API, which makes the first one, or run "rtc signing-keys rotate".',
        ),
  ];
}

export function checkSchema(pending: readonly string[]): Finding {
  return pending.length === 0
    ? ok('schema', 'up to date')
    : failure('schema', `pending migrations: ${pending.join(', ')}`, 'Run "rtc db migrate".');
}

/** @param configured key ids in ENCRYPTION_KEYS; null if the setting is absent here. */
export function checkMasterKeys(inUse: readonly string[], configured: readonly string[] | null): Finding {
  if (configured === null) {
    return warning('encryption', 'not checked', 'Set ENCRYPTION_KEYS as in the API to check this.');
  }
  const missing = inUse.filter((id) => !configured.includes(id));
  return missing.length === 0
    ? ok(
        'encryption',
        inUse.length === 0 ? 'no secret is stored yet' : `every secret can be opened (${inUse.join(', ')})`,
      )
    : failure(
        'encryption',
        `secrets are sealed with ${missing.join(', ')}, but ENCRYPTION_KEYS does not contain these keys`,
        'Put these keys back, behind the first one, on the API and the webhook workers.',
      );
}

/** A standby that is further behind takes long to promote, and holds the primary's log back. */
const LAG_BYTES_MAX = 256 * 1024 * 1024;

/** Checks whether a failover would lose nothing, and whether commits wait for a standby. */
export function checkReplication({ synchronousNames, waitingCommits, standbys }: Replication): Finding {
  const check = 'replication';
  const waiting = waitingCommits === 0 ? '' : `; ${waitingCommits} commits wait`;
  if (synchronousNames === '') {
    if (standbys.length === 0) return ok(check, 'no standby is connected, and none is configured');
    const advice = 'Set synchronous_standby_names, or accept that a failover loses the last commits.';
    return warning(check, `${standbys.length} standbys, none of them synchronous`, advice);
  }
  if (standbys.length === 0) {
    const advice = 'Start a standby of synchronous_standby_names: writes get 503 until one is back.';
    return failure(check, `no standby is connected, and commits need ${synchronousNames}${waiting}`, advice);
  }
  if (standbys.every(({ state }) => state === null)) {
    const advice = 'Grant the role pg_monitor, so that this check sees their states.';
    return warning(check, `${standbys.length} standbys, whose states are not visible${waiting}`, advice);
  }
  if (!standbys.some((standby) => standby.state === 'streaming' && isSynchronous(standby))) {
    const advice = 'Check the standbys of synchronous_standby_names: writes get 503 until one streams.';
    return failure(check, `no synchronous standby streams, and commits need ${synchronousNames}${waiting}`, advice);
  }
  const lines = standbys.map(
    ({ name, state, sync, lagBytes }) =>
      `${name ?? '?'} ${state ?? '?'} (${sync ?? '?'}, ${lagBytes ?? '?'} bytes behind)`,
  );
  const detail = `${lines.join(', ')}${waiting}`;
  const isBehind = standbys.some(({ lagBytes }) => (lagBytes ?? 0) > LAG_BYTES_MAX);
  if (isBehind) return warning(check, detail, 'Check disk and network of the standby that is behind.');
  if (waitingCommits > 0)
    return warning(check, detail, 'Run the check again. If commits still wait, a standby is slow.');
  return ok(check, detail);
}

/** A transaction that is open for longer is abandoned, or a backup of a large database. */
const TRANSACTION_SECONDS_MAX = 3600;
/** Transactions since the oldest snapshot of a slot or standby, which have no time: hours of a busy service. */
const SNAPSHOT_TRANSACTIONS_MAX = 5_000_000;
/** Autovacuum starts at a twentieth of a table; a fifth means that it cannot keep up, or may not remove rows. */
const DEAD_SHARE_MAX = 0.2;
const DEAD_ROWS_MIN = 50_000;

const SNAPSHOT_ADVICE: Record<OldestSnapshot['holder'], string> = {
  session: 'End the transaction if it is abandoned: SELECT pg_terminate_backend(<pid>). A backup ends by itself.',
  prepared: 'Commit it or roll it back: ROLLBACK PREPARED.',
  slot: 'Drop the slot if nothing reads it: SELECT pg_drop_replication_slot(…).',
  standby: 'End the long query on the standby, or turn hot_standby_feedback off there.',
};

export function checkSnapshots(snapshots: readonly OldestSnapshot[]): Finding {
  const old = snapshots.find(({ seconds, transactions }) =>
    seconds === null ? transactions > SNAPSHOT_TRANSACTIONS_MAX : seconds > TRANSACTION_SECONDS_MAX,
  );
  if (old !== undefined) return warning('snapshots', describeSnapshot(old), SNAPSHOT_ADVICE[old.holder]);
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

const BROKEN_ADVICE =
  'This is a defect of Callplane, or of a restored or edited database: keep these rows and the logs of their time, and report them (docs/guarantees.md).';

export function checkInvariant({ invariant, checked, broken, ids }: InvariantResult): Finding {
  const { name, sentence, subject } = invariant;
  const check = `invariant ${name}`;
  if (checked === null) {
    return warning(check, 'not checked: the query took too long', 'Repeat it with fewer rows (--rows).');
  }
  if (broken === 0) return ok(check, `holds for the newest ${checked} ${subject}`);
  const more = broken > ids.length ? ` and ${broken - ids.length} more` : '';
  return failure(check, `broken by ${ids.join(', ')}${more}: ${sentence}`, BROKEN_ADVICE);
}
