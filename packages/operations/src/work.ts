import { randomUUID } from 'node:crypto';
import {
  afterFailure,
  ATTEMPTS_PER_RUN,
  ERROR_TABLE,
  QUEUE_OF_OPERATION,
  traceIdOf,
  type OperationError,
  type OperationKind,
} from '@callplane/core';
import {
  claimInTurn,
  claimOperation,
  LeaseLost,
  OperationRefused,
  patiently,
  settleOperation,
  type ClaimedOperation,
} from '@callplane/db';
import { publishNotice } from '@callplane/queue';
import { startSpan, type Span } from '@callplane/runtime';
import type { Attempt, Kind, Kinds, OperationDeps } from './kind.js';
import { keepLease } from './lease.js';
import { writeOperationFailed } from './operation-failed.js';

/**
 * How long to retry settling a failure while PostgreSQL is unavailable, and the pause between tries, in milliseconds.
 * The outage probably made the step fail, and a restart of PostgreSQL takes seconds. Shorter than the drain deadline.
 */
const SETTLE_PATIENCE_MS = 8000;
const SETTLE_PAUSE_MS = 500;

/**
 * Works on one operation: claims it, runs its steps, and settles it as completed with the effect of its kind. If a step
 * throws, this function does not throw. It settles the operation with a retry or as failed, unless the lease was lost.
 * @param kinds the kinds of the app.
 * @param inTurn works on the operation of this kind whose turn it is, instead of `operationId`
 * @returns milliseconds until the next attempt; null if there is none, or if the row was not this worker's to claim:
 * settled, held by another worker, or not due yet.
 * @throws if PostgreSQL is unavailable. The row stays unchanged, and a scan finds it again.
 */
export async function workOnOperation<Deps extends OperationDeps>(
  deps: Deps,
  operationId: string,
  kinds: Kinds<Deps>,
  inTurn: OperationKind | null = null,
): Promise<number | null> {
  const { sql } = deps.database;
  const claimed = await (inTurn === null
    ? claimOperation(sql, operationId, randomUUID(), deps.leaseMs)
    : claimInTurn(sql, inTurn, randomUUID(), deps.leaseMs));
  if (claimed === null) return null;
  const span = spanOf(claimed);
  // Work that the attempt causes is a child of its span.
  const claim = span === null ? claimed : { ...claimed, traceparent: span.traceparent };
  const startedAt = performance.now();
  const noted: Record<string, unknown> = {};
  const kind = kinds[claim.kind];
  if (kind === undefined) throw new Error(`${claim.id} is of the kind ${claim.kind}, which another app works on`);
  const lease = keepLease(deps, claim, kind.isLong);
  const note: Attempt['note'] = (fields) => Object.assign(noted, fields);
  const outcome = await attempt(deps, claim, kind, { note, signal: lease.signal });
  lease.release();
  const fields = {
    operationId: claim.id,
    kind: claim.kind,
    environmentId: claim.environmentId,
    roomId: claim.roomId,
    ...(claim.participantId === null ? {} : { participantId: claim.participantId }),
    ...(claim.traceparent === null ? {} : { traceId: traceIdOf(claim.traceparent) }),
    ...(span === null ? {} : { spanId: span.spanId }),
    run: claim.run,
    attempt: claim.runAttempts,
    lagMs: claim.lagMs,
    durationMs: performance.now() - startedAt,
    ...noted,
    ...outcome,
  };
  deps.metrics.attempt(claim.kind, outcome.outcome, claim.lagMs, fields.durationMs);
  span?.end({
    attributes: { 'callplane.outcome': outcome.outcome },
    error: outcome.outcome === 'completed' ? null : outcome.step,
  });
  if (outcome.outcome === 'completed') deps.logger.info('operation attempt', fields);
  else if (outcome.outcome === 'failed') deps.logger.error('operation attempt', fields);
  else deps.logger.warn('operation attempt', fields);
  if (outcome.outcome === 'completed' || outcome.outcome === 'failed') {
    await publishNotice(deps.producer.redis, 'operationSettled', claim.id);
  }
  return outcome.outcome === 'retry' ? outcome.retryInMs : null;
}

type Outcome =
  | { outcome: 'completed' }
  | { outcome: 'retry'; step: string; retryInMs: number; error: unknown }
  | { outcome: 'failed'; step: string; error: unknown }
  /**
   * This attempt wrote no outcome: its lease was lost, or PostgreSQL stayed unavailable for {@link SETTLE_PATIENCE_MS}.
   */
  | { outcome: 'lease_lost'; step: string };

/** The step of the transaction that settles an operation as completed. */
const COMPLETE = 'complete the operation';

async function attempt<Deps extends OperationDeps>(
  deps: Deps,
  claim: ClaimedOperation,
  kind: Kind<Deps>,
  how: Attempt,
): Promise<Outcome> {
  let step = '';
  const inSpan = async (name: string, work: () => Promise<void>): Promise<void> => {
    step = name;
    const span = startSpan(step, { kind: 'internal', parent: claim.traceparent });
    try {
      how.signal.throwIfAborted();
      await work();
      span?.end();
    } catch (error) {
      span?.end({ error: error instanceof Error ? error.name : 'error' });
      throw error;
    }
  };
  try {
    for (const { name, run } of kind.steps) await inSpan(name, () => run(deps, claim, how));
    await inSpan(COMPLETE, () => complete(deps, claim, kind));
    return { outcome: 'completed' };
  } catch (error) {
    if (error instanceof LeaseLost || how.signal.aborted) return { outcome: 'lease_lost', step };
    return settleFailure(deps, claim, kind, step, error);
  }
}

async function complete<Deps extends OperationDeps>(
  deps: Deps,
  claim: ClaimedOperation,
  { complete: write }: Kind<Deps>,
): Promise<void> {
  const { database, producer } = deps;
  const now = deps.clock.now();
  const end = { status: 'completed', now } as const;
  if (write === undefined) {
    await settleOperation(database.sql, claim, end);
    return;
  }
  const deliveries = await database.transaction(async (tx) => {
    await settleOperation(tx, claim, end);
    return write(tx, claim, now);
  });
  await producer.wakeDeliveries(deliveries);
}

function spanOf(claim: ClaimedOperation): Span | null {
  return startSpan(`process ${claim.kind}`, {
    kind: 'consumer',
    parent: claim.traceparent,
    attributes: {
      'messaging.system': 'callplane',
      'messaging.operation.type': 'process',
      'messaging.operation.name': 'process',
      'messaging.destination.name': QUEUE_OF_OPERATION[claim.kind],
      'messaging.message.id': claim.id,
      'callplane.environment.id': claim.environmentId,
      'callplane.room.id': claim.roomId,
      'callplane.attempt': claim.runAttempts,
      'callplane.lag_ms': claim.lagMs,
    },
  });
}

async function settleFailure<Deps extends OperationDeps>(
  deps: Deps,
  claim: ClaimedOperation,
  kind: Kind<Deps>,
  step: string,
  error: unknown,
): Promise<Outcome> {
  // API callers read this error. It names only the step, because the cause (in the log) may contain internal hosts.
  const isRefused = error instanceof OperationRefused;
  const lastError: OperationError = isRefused
    ? { code: error.code, message: ERROR_TABLE[error.code].message }
    : { code: 'STEP_FAILED', message: `The step "${step}" failed.` };
  const next = isRefused ? ({ status: 'failed' } as const) : afterFailure(claim.runAttempts, deps.random);
  const until = performance.now() + SETTLE_PATIENCE_MS;
  try {
    if (next.status === 'failed') {
      const deliveries = await patiently(until, SETTLE_PAUSE_MS, () =>
        deps.database.transaction(async (tx) => {
          const operation = await settleOperation(tx, claim, { status: 'failed', error: lastError });
          return writeOperationFailed(tx, kind, claim, operation, deps.clock.now());
        }),
      );
      await deps.producer.wakeDeliveries(deliveries);
      return { outcome: 'failed', step, error };
    }
    const { status, delayMs } = next;
    await patiently(until, SETTLE_PAUSE_MS, () =>
      settleOperation(deps.database.sql, claim, { status, error: lastError, delayMs }),
    );
    return { outcome: 'retry', step, retryInMs: delayMs, error };
  } catch (settleError) {
    if (settleError instanceof LeaseLost) return { outcome: 'lease_lost', step };
    // PostgreSQL is still unavailable. Once the lease has expired, a scan takes the row for the next attempt, or the
    // sweep settles it if no attempt is left.
    deps.logger.error('operation not settled', {
      operationId: claim.id,
      attempt: claim.runAttempts,
      of: ATTEMPTS_PER_RUN,
      error: settleError,
    });
    return { outcome: 'lease_lost', step };
  }
}
