import { backoffMs, type Random } from './schedule.js';

export const OPERATION_KINDS = ['room.end', 'participant.remove'] as const;
export type OperationKind = (typeof OPERATION_KINDS)[number];

/** `pending` until it is `completed` or `failed`; whether a worker holds it at this moment is internal. */
export const OPERATION_STATUSES = ['pending', 'completed', 'failed'] as const;
export type OperationStatus = (typeof OPERATION_STATUSES)[number];

/** Why the last attempt failed: names the step, never an internal host. */
export interface OperationError {
  code: 'STEP_FAILED' | 'LEASE_EXPIRED';
  message: string;
}

/** What a failed attempt leads to. */
export type FailureOutcome = { status: 'pending'; delayMs: number } | { status: 'failed' };

/** After a failed attempt: wait and try again, or, after the run's last attempt, give up. */
export function afterFailure(runAttempt: number, random: Random): FailureOutcome {
  const delayMs = backoffMs(runAttempt, random);
  return delayMs === null ? { status: 'failed' } : { status: 'pending', delayMs };
}
