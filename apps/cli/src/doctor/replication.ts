import { isSynchronous, type Replication } from '@callplane/db';
import { failure, ok, warning, type Finding } from './findings.js';

const CHECK = 'replication';
/** A standby that is further behind takes long to promote, and holds the primary's log back. */
const LAG_BYTES_MAX = 256 * 1024 * 1024;

/** Checks whether a failover would lose nothing, and whether commits wait for a standby. */
export function checkReplication({ synchronousNames, waitingCommits, standbys }: Replication): Finding {
  const waiting = waitingCommits === 0 ? '' : `; ${waitingCommits} commits wait`;
  if (synchronousNames === '') {
    if (standbys.length === 0) return ok(CHECK, 'no standby is connected, and none is configured');
    const advice = 'Set synchronous_standby_names, or accept that a failover loses the last commits.';
    return warning(CHECK, `${standbys.length} standbys, none of them synchronous`, advice);
  }
  if (standbys.length === 0) {
    const advice = 'Start a standby of synchronous_standby_names: writes get 503 until one is back.';
    return failure(CHECK, `no standby is connected, and commits need ${synchronousNames}${waiting}`, advice);
  }
  if (standbys.every(({ state }) => state === null)) {
    const advice = 'Grant the role pg_monitor, so that this check sees their states.';
    return warning(CHECK, `${standbys.length} standbys, whose states are not visible${waiting}`, advice);
  }
  if (!standbys.some((standby) => standby.state === 'streaming' && isSynchronous(standby))) {
    const advice = 'Check the standbys of synchronous_standby_names: writes get 503 until one streams.';
    return failure(CHECK, `no synchronous standby streams, and commits need ${synchronousNames}${waiting}`, advice);
  }
  const lines = standbys.map(
    ({ name, state, sync, lagBytes }) =>
      `${name ?? '?'} ${state ?? '?'} (${sync ?? '?'}, ${lagBytes ?? '?'} bytes behind)`,
  );
  const detail = `${lines.join(', ')}${waiting}`;
  const isBehind = standbys.some(({ lagBytes }) => (lagBytes ?? 0) > LAG_BYTES_MAX);
  if (isBehind) return warning(CHECK, detail, 'Check disk and network of the standby that is behind.');
  if (waitingCommits > 0)
    return warning(CHECK, detail, 'Run the check again. If commits still wait, a standby is slow.');
  return ok(CHECK, detail);
}
