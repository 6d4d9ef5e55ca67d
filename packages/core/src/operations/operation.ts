import type { ErrorCode } from '../errors/errors.js';

/** The schedule of operations and webhook deliveries. `GET /v1/webhooks/signature-contract` serves these constants. */
export const ATTEMPTS_PER_RUN = 8;
/** Waits between the attempts of a run, in seconds. */
export const BACKOFF_SECONDS = [5, 30, 120, 600, 1800, 3600, 21600] as const;
/** Maximum random addition to each wait, as a share of it. */
export const BACKOFF_JITTER_RATIO_MAX = 0.2;
/** How long a worker's lease on a row lasts before the row is due again. */
export const LEASE_SECONDS = 120;
/** Maximum number of rows that one worker process works on at once. */
export const CONCURRENCY_PER_WORKER = 4;

/** A source of uniform numbers in [0, 1), such as `Math.random`. */
export type Random = () => number;

export function isExhausted(runAttempts: number): boolean {
  return runAttempts >= ATTEMPTS_PER_RUN;
}

/**
 * The wait after a failed attempt of a run, in milliseconds; null after the run's last attempt.
 * @param runAttempt 1 for the first attempt of the run.
 */
export function backoffMs(runAttempt: number, random: Random): number | null {
  const seconds = BACKOFF_SECONDS[runAttempt - 1];
  if (seconds === undefined || isExhausted(runAttempt)) return null;
  return Math.round(seconds * 1000 * (1 + random() * BACKOFF_JITTER_RATIO_MAX));
}

/**
 * The kinds of operations and their queues. A new kind is a line here, a line of `KINDS` in the app that works on it,
 * and a folder there with its steps.
 */
export const QUEUE_OF_OPERATION = {
  'room.end': 'room-end',
  'participant.remove': 'participant-remove',
  'participant.move': 'participant-move',
  'recording.process': 'recording-process',
  'recording.delete': 'recording-delete',
} as const;
export type OperationKind = keyof typeof QUEUE_OF_OPERATION;
export const OPERATION_KINDS = Object.keys(QUEUE_OF_OPERATION) as OperationKind[];

/** `pending` until it is `completed` or `failed`. Whether a worker currently holds it is internal. */
export const OPERATION_STATUSES = ['pending', 'completed', 'failed'] as const;
export type OperationStatus = (typeof OPERATION_STATUSES)[number];

/** Why the last attempt failed; names the step and never an internal host. Any other code is the one of a refusal. */
export interface OperationError {
  code: 'STEP_FAILED' | 'LEASE_EXPIRED' | MoveRefusal;
  message: string;
}

/** Why a participant cannot be moved: codes of the API. */
const MOVE_REFUSALS = [
  'PARTICIPANT_REMOVED',
  'PARTICIPANT_NOT_CONNECTED',
  'ROOM_ENDED',
  'ROOM_FULL',
  'ENCRYPTION_DIFFERS',
] as const satisfies readonly ErrorCode[];
export type MoveRefusal = (typeof MOVE_REFUSALS)[number];

export interface OperationState {
  id: string;
  kind: OperationKind;
  status: OperationStatus;
  attempts: number;
  lastError: OperationError | null;
  completedAt: Date | null;
}

export function afterFailure(runAttempt: number, random: Random) {
  const delayMs = backoffMs(runAttempt, random);
  return delayMs === null ? ({ status: 'failed' } as const) : ({ status: 'pending', delayMs } as const);
}

/** A repeated request gets a pending operation as it is, and a completed one has nothing left to do. */
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
    completedAt: operation.completedAt === null ? null : operation.completedAt.toISOString(),
  };
}
