import { newId, PublicError, type ErrorDetail, type Tenant } from '@callplane/core';
import { cancelRecovery, findRecovery, insertRecovery, webhookEndpointExisted, type RecoveryRow } from '@callplane/db';
import type { Deps } from '../deps.js';

export interface RecoveryInput {
  since: string;
  until?: string;
  dryRun?: boolean;
  includePending?: boolean;
}

/** The range of times that both ISO 8601 with four-digit years and PostgreSQL can represent. */
const EARLIEST = new Date('1970-01-01T00:00:00.000Z');
const LATEST = new Date('9999-12-31T23:59:59.999Z');

/**
 * Checks that the times of a window exist and that the window is not empty. A schema cannot express this.
 * @param body not validated yet. The schema reports values that are not strings.
 */
export function checkWindow(deps: Pick<Deps, 'clock'>, body: { since?: unknown; until?: unknown }): ErrorDetail[] {
  const details = (['since', 'until'] as const)
    .filter((name) => typeof body[name] === 'string' && isOutOfRange(new Date(body[name])))
    .map((name) => ({ path: `body.${name}`, message: 'must be a time from 1970 to 9999' }));
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
  const recovery = await deps.database.transaction((tx) => insertRecovery(tx, tenant, newRecovery));
  if (recovery === null) throw new PublicError('WEBHOOK_NOT_FOUND');
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

/** Cancels a recovery. Deliveries that it has replayed or brought forward continue. Cancelling a complete recovery changes nothing. */
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

function isOutOfRange(time: Date): boolean {
  // An invalid date compares as false. The schema's format accepts a leap second (23:59:60), which `Date` cannot parse.
  return !(time >= EARLIEST && time <= LATEST);
}
