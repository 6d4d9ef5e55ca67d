import { RECOVERIES_PENDING_MAX, type RecoveryStatus, type Tenant } from '@callplane/core';
import type { Database, Db } from '../client/database.js';
import type { Prisma } from '../generated/client.js';
import { lockWebhookEndpoint } from './endpoints.repository.js';

export const RECOVERY_FIELDS = {
  id: true,
  endpointId: true,
  since: true,
  until: true,
  dryRun: true,
  includePending: true,
  status: true,
  matched: true,
  replayed: true,
  woken: true,
  skipped: true,
  createdAt: true,
  completedAt: true,
} as const;

export type RecoveryRow = Omit<Prisma.WebhookRecoveryGetPayload<{ select: typeof RECOVERY_FIELDS }>, 'status'> & {
  status: RecoveryStatus;
};

type Outcome = 'status' | 'matched' | 'replayed' | 'woken' | 'skipped' | 'completedAt';

/**
 * Requests a recovery, which a worker carries out. A recovery of a disabled endpoint waits until the endpoint is
 * enabled.
 * @returns `limit` when too many recoveries of the endpoint are pending.
 */
export function insertRecovery(
  database: Database,
  tenant: Tenant,
  recovery: Omit<RecoveryRow, Outcome>,
): Promise<RecoveryRow | 'not_found' | 'limit'> {
  const { id, endpointId, dryRun, includePending } = recovery;
  const [since, until, createdAt] = [recovery.since, recovery.until, recovery.createdAt].map((at) => at.toISOString());
  return database.transaction(async (tx) => {
    // One after the other, so that their number cannot exceed the limit.
    if ((await lockWebhookEndpoint(tx, tenant, endpointId)) === null) return 'not_found';
    const [created] = await tx.$queryRaw<RecoveryRow[]>`
      INSERT INTO webhook_recoveries (id, environment_id, endpoint_id, since, until, dry_run, include_pending, status,
        created_at)
      SELECT ${id}, ${tenant.environmentId}, ${endpointId}, ${since}::timestamptz, ${until}::timestamptz,
        ${dryRun}::boolean, ${includePending}::boolean, 'pending', ${createdAt}::timestamptz
      WHERE (SELECT count(*) FROM webhook_recoveries WHERE endpoint_id = ${endpointId} AND status = 'pending')
        < ${RECOVERIES_PENDING_MAX}::int
      RETURNING id, endpoint_id AS "endpointId", since, until, dry_run AS "dryRun",
        include_pending AS "includePending", status, matched, replayed, woken, skipped, created_at AS "createdAt",
        completed_at AS "completedAt"`;
    return created ?? 'limit';
  });
}

export async function findRecovery(
  db: Db,
  tenant: Tenant,
  endpointId: string,
  recoveryId: string,
): Promise<RecoveryRow | null> {
  const recovery = await db.webhookRecovery.findFirst({
    where: { id: recoveryId, endpointId, environmentId: tenant.environmentId },
    select: RECOVERY_FIELDS,
  });
  return recovery as RecoveryRow | null;
}

/** Newest first. */
export async function listRecoveries(
  db: Db,
  tenant: Tenant,
  endpointId: string,
  page: { beforeId: string | null; limit: number },
): Promise<RecoveryRow[]> {
  const recoveries = await db.webhookRecovery.findMany({
    where: {
      endpointId,
      environmentId: tenant.environmentId,
      ...(page.beforeId === null ? {} : { id: { lt: page.beforeId } }),
    },
    orderBy: { id: 'desc' },
    take: page.limit,
    select: RECOVERY_FIELDS,
  });
  return recoveries as RecoveryRow[];
}

/**
 * Deliveries that the recovery has replayed or brought forward continue. The worker that holds it has lost its lease.
 * @returns false when the endpoint has no such recovery.
 */
export async function cancelRecovery(
  db: Db,
  tenant: Tenant,
  endpointId: string,
  recoveryId: string,
  now: Date,
): Promise<boolean> {
  const { count } = await db.webhookRecovery.updateMany({
    where: { id: recoveryId, endpointId, environmentId: tenant.environmentId, status: 'pending' },
    data: { status: 'cancelled', completedAt: now, leaseToken: null, leaseExpiresAt: null },
  });
  return count > 0 || (await findRecovery(db, tenant, endpointId, recoveryId)) !== null;
}
