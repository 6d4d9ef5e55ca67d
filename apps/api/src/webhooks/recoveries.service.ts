import {
  formatTimestamp,
  newId,
  PublicError,
  RECOVERIES_PENDING_MAX,
  type ErrorDetail,
  type Tenant,
} from '@callplane/core';
import {
  cancelRecovery,
  findRecovery,
  insertRecovery,
  listRecoveries,
  webhookEndpointExisted,
  type RecoveryRow,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import { cutPage, type Page, type PageCursor } from '../http/cursor.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';
import { timeFailures } from '../http/checks.js';

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

/** `Retry-After` in seconds while too many recoveries of an endpoint are pending. */
const RETRY_AFTER_SECONDS = 10;

interface RecoveryInput {
  since: string;
  until?: string;
  dryRun?: boolean;
  includePending?: boolean;
}

/**
 * Checks that the times of a window exist and that the window is not empty. A schema cannot express this.
 * @param body not validated yet. The schema reports values that are not strings.
 */
export function checkWindow(deps: Pick<Deps, 'clock'>, body: { since?: unknown; until?: unknown }): ErrorDetail[] {
  const details = timeFailures('body', body);
  if (details.length > 0 || typeof body.since !== 'string') return details;
  if (body.until !== undefined && typeof body.until !== 'string') return details;
  const { since, until } = windowOf(body as RecoveryInput, deps.clock.now());
  return since < until ? [] : [{ path: 'body.since', message: 'must be before `until` and in the past' }];
}

/** Creates a recovery. A worker replays or brings forward the deliveries in its window, and updates its progress. */
export async function createRecovery(
  deps: Pick<Deps, 'database' | 'clock'>,
  tenant: Tenant,
  endpointId: string,
  input: RecoveryInput,
): Promise<RecoveryRow> {
  const now = deps.clock.now();
  const newRecovery = {
    id: newId('recovery'),
    endpointId,
    ...windowOf(input, now),
    dryRun: input.dryRun ?? false,
    includePending: input.includePending ?? true,
    createdAt: now,
  };
  const recovery = await deps.database.prisma.$transaction((tx) => insertRecovery(tx, tenant, newRecovery));
  if (recovery === 'not_found') throw new PublicError('WEBHOOK_NOT_FOUND');
  if (recovery === 'limit') {
    throw new PublicError('RATE_LIMITED', {
      message: `${RECOVERIES_PENDING_MAX} recoveries of this endpoint are pending. Cancel one, or try again later.`,
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    });
  }
  return recovery;
}

export async function readRecovery(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  path: { endpointId: string; recoveryId: string },
): Promise<RecoveryRow> {
  const recovery = await findRecovery(deps.database.prisma, tenant, path.endpointId, path.recoveryId);
  return recovery ?? notFound(deps, tenant, path.endpointId);
}

/** Lists the recoveries of an endpoint, newest first. Also works with the id of a deleted endpoint. */
export async function pageOfRecoveries(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  endpointId: string,
  query: { limit?: number },
  cursor: PageCursor<{ id: string }>,
): Promise<Page<RecoveryRow>> {
  const { prisma } = deps.database;
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const beforeId = cursor.position?.id ?? null;
  const recoveries = await listRecoveries(prisma, tenant, endpointId, { beforeId, limit: limit + 1 });
  if (recoveries.length === 0 && !(await webhookEndpointExisted(prisma, tenant, endpointId))) {
    throw new PublicError('WEBHOOK_NOT_FOUND');
  }
  return cutPage(cursor, recoveries, limit);
}

/**
 * Cancels a recovery. Deliveries that it has replayed or brought forward continue. Cancelling a complete recovery
 * changes nothing.
 */
export async function stopRecovery(
  deps: Pick<Deps, 'database' | 'clock'>,
  tenant: Tenant,
  path: { endpointId: string; recoveryId: string },
): Promise<void> {
  const { prisma } = deps.database;
  const isFound = await cancelRecovery(prisma, tenant, path.endpointId, path.recoveryId, deps.clock.now());
  if (!isFound) await notFound(deps, tenant, path.endpointId);
}

async function notFound(deps: Pick<Deps, 'database'>, tenant: Tenant, endpointId: string): Promise<never> {
  const existed = await webhookEndpointExisted(deps.database.prisma, tenant, endpointId);
  throw new PublicError(existed ? 'RECOVERY_NOT_FOUND' : 'WEBHOOK_NOT_FOUND');
}

/** Ends the window now at the latest: a delivery cannot have failed in the future. */
function windowOf(input: RecoveryInput, now: Date): { since: Date; until: Date } {
  const until = input.until === undefined ? now : new Date(input.until);
  return { since: new Date(input.since), until: until < now ? until : now };
}
