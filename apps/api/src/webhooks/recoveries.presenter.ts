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
    status: recovery.status,
    matched: recovery.matched,
    replayed: recovery.replayed,
    skipped: recovery.skipped,
    createdAt: formatTimestamp(recovery.createdAt),
    completedAt: recovery.completedAt === null ? null : formatTimestamp(recovery.completedAt),
  };
}
