import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterFailure, ATTEMPTS_PER_RUN, traceIdOf, type OperationError } from '@callplane/core';
import {
  claimOperation,
  dueInMs,
  isDatabaseUnavailable,
  LeaseLost,
  settleFailed,
  settleRetry,
  type ClaimedOperation,
} from '@callplane/db';
import { publishNotice, QUEUE_OF_OPERATION, type JobResult } from '@callplane/queue';
import type { Deps } from '../deps.js';
import { wake, writeOperationFailed } from './events.js';
import { stepsOf, type Step } from './steps.js';

const DONE: JobResult = { again: false };

/**
 * When PostgreSQL is away it is most likely what made the step fail, and a restart of it takes seconds: for how long a
 * failure is tried to be settled, and the pause between, in milliseconds. Shorter than a drain may take.
 */
const SETTLE_PATIENCE_MS = 8000;
const SETTLE_PAUSE_MS = 500;

/**
 * One wake-up of one operation: claim, steps, settle. Never throws for what the steps do; throws when PostgreSQL cannot
 * be asked, and then the row stays as it is and the sweep wakes it again.
 * @param steps of this kind of operation; tests put failing ones here.
 */
export async function workOnOperation(
  deps: Deps,
  operationId: string,
  steps: (kind: ClaimedOperation['kind']) => readonly Step[] = stepsOf,
): Promise<JobResult> {
  const claim = await claimOperation(deps.database.prisma, operationId, randomUUID(), deps.leaseMs);
  if (claim === null) {
    // Held by another or settled: nothing to do. Not due yet: the job came early and waits.
    const delayMs = await dueInMs(deps.database.prisma, operationId);
    return delayMs === null ? DONE : { again: true, delayMs };
  }
  const startedAt = performance.now();
  const noted: Record<string, unknown> = {};
  const outcome = await attempt(deps, claim, steps(claim.kind), (fields) => Object.assign(noted, fields));
  const fields = {
    operationId: claim.id,
    kind: claim.kind,
    environmentId: claim.environmentId,
    roomId: claim.roomId,
    ...(claim.participantId === null ? {} : { participantId: claim.participantId }),
    ...(claim.traceparent === null ? {} : { traceId: traceIdOf(claim.traceparent) }),
    run: claim.run,
    attempt: claim.runAttempts,
    lagMs: claim.lagMs,
    durationMs: performance.now() - startedAt,
    ...noted,
    ...outcome,
  };
  deps.metrics.attempt(claim.kind, outcome.outcome, claim.lagMs, fields.durationMs);
  if (outcome.outcome === 'completed') deps.logger.info('operation attempt', fields);
  else if (outcome.outcome === 'failed') deps.logger.error('operation attempt', fields);
  else deps.logger.warn('operation attempt', fields);
  if (outcome.outcome === 'completed' || outcome.outcome === 'failed') {
    await publishNotice(deps.producer.redis, 'operationSettled', claim.id);
  }
  return DONE;
}

type Outcome =
  | { outcome: 'completed' }
  | { outcome: 'retry'; step: string; retryInMs: number; error: unknown }
  | { outcome: 'failed'; step: string; error: unknown }
  /** Another worker has it, or will: nothing was written. */
  | { outcome: 'lease_lost'; step: string };

async function attempt(
  deps: Deps,
  claim: ClaimedOperation,
  steps: readonly Step[],
  note: (fields: Record<string, unknown>) => void,
): Promise<Outcome> {
  let step = '';
  try {
    for (const next of steps) {
      step = next.name;
      await next.run(deps, claim, note);
    }
    return { outcome: 'completed' };
  } catch (error) {
    if (error instanceof LeaseLost) return { outcome: 'lease_lost', step };
    return settleFailure(deps, claim, step, error);
  }
}

async function settleFailure(deps: Deps, claim: ClaimedOperation, step: string, error: unknown): Promise<Outcome> {
  // What the caller may read: the step, never an internal host. The cause goes to the log.
  const lastError: OperationError = { code: 'STEP_FAILED', message: `The step "${step}" failed.` };
  const next = afterFailure(claim.runAttempts, deps.random);
  try {
    if (next.status === 'failed') {
      const deliveries = await patiently(() =>
        deps.database.transaction(async (tx) => {
          const operation = await settleFailed(tx, claim, lastError);
          return writeOperationFailed(tx, claim, operation, deps.clock.now());
        }),
      );
      await wake(deps, deliveries);
      return { outcome: 'failed', step, error };
    }
    const row = await patiently(() => settleRetry(deps.database.prisma, claim, next.delayMs, lastError));
    await deps.producer.wake({ queue: QUEUE_OF_OPERATION[row.kind], row, delayMs: next.delayMs });
    return { outcome: 'retry', step, retryInMs: next.delayMs, error };
  } catch (settleError) {
    if (settleError instanceof LeaseLost) return { outcome: 'lease_lost', step };
    // PostgreSQL stays away: the lease runs out and the sweep takes it from there.
    deps.logger.error('operation not settled', {
      operationId: claim.id,
      attempt: claim.runAttempts,
      of: ATTEMPTS_PER_RUN,
      error: settleError,
    });
    return { outcome: 'lease_lost', step };
  }
}

async function patiently<T>(settle: () => Promise<T>): Promise<T> {
  const until = performance.now() + SETTLE_PATIENCE_MS;
  for (;;) {
    try {
      return await settle();
    } catch (error) {
      if (!isDatabaseUnavailable(error) || performance.now() + SETTLE_PAUSE_MS > until) throw error;
      await delay(SETTLE_PAUSE_MS);
    }
  }
}
