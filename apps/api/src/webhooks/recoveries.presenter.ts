import { formatTimestamp } from '@callplane/core';
import type { RecoveryRow } from '@callplane/db';

/** A recovery in the form that the API returns. */
export function presentRecovery(recovery: RecoveryRow) {
  return {
    id: recovery.id,
    endpointId: recovery.endpointId,
    since: formatTimestamp(recovery.since),
    until: formatTimestamp(recovery.until),
    dryRun: recovery.dryRun,
    includePending: recovery.includePending,
    status: recovery.status,
    matched: recovery.matched,
    replayed: recovery.replayed,
    woken: recovery.woken,
    skipped: recovery.skipped,
    createdAt: formatTimestamp(recovery.createdAt),
    completedAt: recovery.completedAt === null ? null : formatTimestamp(recovery.completedAt),
  };
}
