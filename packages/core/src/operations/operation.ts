import { formatTimestamp } from '../time.js';
import { backoffMs, type Random } from './schedule.js';

export const OPERATION_KINDS = ['room.end', 'participant.remove'] as const;
export type OperationKind = (typeof OPERATION_KINDS)[number];

/** `pending` until it is `completed` or `failed`. Whether a worker currently holds it is internal. */
export const OPERATION_STATUSES = ['pending', 'completed', 'failed'] as const;
export type OperationStatus = (typeof OPERATION_STATUSES)[number];

/** Why the last attempt failed; names the step and never an internal host. */
export interface OperationError {
  code: 'STEP_FAILED' | 'LEASE_EXPIRED';
  message: string;
}

/** An operation as the API shows it. */
export interface OperationState {
  id: string;
  kind: OperationKind;
  status: OperationStatus;
  attempts: number;
  lastError: OperationError | null;
  completedAt: Date | null;
}

/** The next state after a failed attempt. */
export type FailureOutcome = { status: 'pending'; delayMs: number } | { status: 'failed' };

/** Decides after a failed attempt: retry after a delay, or fail after the run's last attempt. */
export function afterFailure(runAttempt: number, random: Random): FailureOutcome {
  const delayMs = backoffMs(runAttempt, random);
  return delayMs === null ? { status: 'failed' } : { status: 'pending', delayMs };
}

/**
 * Whether a repeated request for a clean-up starts a new run of its operation. Otherwise the caller gets the operation
 * as it is: a pending one goes on, and a completed one has nothing left to do.
 */
export function startsNewRun(existing: OperationStatus): boolean {
  return existing === 'failed';
}

/** Presents an operation for the API and for events, with exactly six fields. */
export function presentOperation(operation: OperationState) {
  return {
    id: operation.id,
    kind: operation.kind,
    status: operation.status,
    attempts: operation.attempts,
    lastError:
      operation.lastError === null ? null : { code: operation.lastError.code, message: operation.lastError.message },
    completedAt: operation.completedAt === null ? null : formatTimestamp(operation.completedAt),
  };
}
