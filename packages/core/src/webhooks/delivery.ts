import { backoffMs, type Random } from '../operations/operation.js';
import {
  RUN_AGE_DAYS_MAX,
  type AttemptOutcome,
  type DeliveryFailureReason,
  REPLAYS_MAX,
  type DeliveryStatus,
} from './vocabulary.js';

export const RUN_AGE_MS_MAX = RUN_AGE_DAYS_MAX * 24 * 60 * 60 * 1000;
/** The status with which a receiver ends a delivery, also if the endpoint retries rejected ones. */
const GONE = 410;

/** Classifies the status of a response. Redirects are not followed, so 3xx is rejected too. */
export function classifyStatus(statusCode: number): 'success' | 'retry' | 'rejected' {
  if (statusCode >= 200 && statusCode <= 299) return 'success';
  if (statusCode === 408 || statusCode === 425 || statusCode === 429) return 'retry';
  return statusCode >= 500 && statusCode <= 599 ? 'retry' : 'rejected';
}

export type AfterAttempt =
  | { status: 'succeeded' }
  | { status: 'pending'; delayMs: number }
  | { status: 'failed'; reason: DeliveryFailureReason };

/**
 * The next state of a delivery after an attempt (the retry policy of the specification, section 6). Once a response
 * head has arrived, its status decides, even if the rest of the response fails.
 * @param input.runAttempt 1 for the first attempt of the run.
 * @param input.statusCode null when no complete response head arrived.
 * @param input.runAgeMs age of the run; a replay starts a new run.
 * @param input.retryRejected whether the endpoint wants rejected deliveries tried again. 410 stays final.
 */
export function afterAttempt(input: {
  runAttempt: number;
  outcome: AttemptOutcome;
  statusCode: number | null;
  runAgeMs: number;
  retryRejected: boolean;
  random: Random;
}): AfterAttempt {
  const { runAttempt, outcome, statusCode, runAgeMs, retryRejected, random } = input;
  if (outcome === 'success') return { status: 'succeeded' };
  if (outcome === 'blocked') return { status: 'failed', reason: 'unsafe_destination' };
  // Without a status the network failed: no connection, a wrong certificate, or a response that is not HTTP.
  const verdict = statusCode === null ? 'retry' : classifyStatus(statusCode);
  if (verdict === 'success') return { status: 'succeeded' };
  const isFinal = verdict === 'rejected' && (!retryRejected || statusCode === GONE);
  if (isFinal) return { status: 'failed', reason: 'rejected' };
  const delayMs = backoffMs(runAttempt, random);
  if (delayMs === null) return { status: 'failed', reason: 'attempts_exhausted' };
  if (runAgeMs + delayMs > RUN_AGE_MS_MAX) return { status: 'failed', reason: 'run_expired' };
  return { status: 'pending', delayMs };
}

/** Why a delivery cannot be replayed now; each value is a public error code. */
export type ReplayConflict =
  | 'REPLAY_COUNT_MISMATCH'
  | 'DELIVERY_NOT_TERMINAL'
  | 'EVENT_ERASED'
  | 'REPLAY_LIMIT_REACHED'
  | 'WEBHOOK_DISABLED';

/** Decides whether a delivery may be replayed; of several conflicts, returns the first in the order of the checks. */
export function decideReplay(input: {
  status: DeliveryStatus;
  replayCount: number;
  expectedReplayCount: number;
  /** Whether the personal data in its event was erased, or an erasure is pending. */
  isErased: boolean;
  isEnabled: boolean;
}): ReplayConflict | null {
  if (input.replayCount !== input.expectedReplayCount) return 'REPLAY_COUNT_MISMATCH';
  if (input.status === 'pending' || input.status === 'delivering') return 'DELIVERY_NOT_TERMINAL';
  if (input.isErased) return 'EVENT_ERASED';
  if (input.replayCount >= REPLAYS_MAX) return 'REPLAY_LIMIT_REACHED';
  return input.isEnabled ? null : 'WEBHOOK_DISABLED';
}

/** Why a delivery cannot be retried now; each value is a public error code. */
export type RetryConflict = 'DELIVERY_NOT_PENDING' | 'DELIVERY_IN_FLIGHT' | 'WEBHOOK_DISABLED';

export function decideRetry(input: { status: DeliveryStatus; isEnabled: boolean }): RetryConflict | null {
  if (input.status === 'delivering') return 'DELIVERY_IN_FLIGHT';
  if (input.status !== 'pending') return 'DELIVERY_NOT_PENDING';
  return input.isEnabled ? null : 'WEBHOOK_DISABLED';
}

/** How fast a recovery goes, so that it does not flood a receiver that has just come back. */
export interface RecoveryPace {
  /** Time between two steps of a recovery, with any number of workers. */
  paceMs: number;
  batchMax: number;
  /** Deliveries of one step while `dueMax` of the endpoint's deliveries are due, so that new events do not wait long. */
  batchMaxWhileBusy: number;
  dueMax: number;
}

/**
 * 100 deliveries a second, but 10 a second while 200 of the endpoint's deliveries are due. The second figure is not 0:
 * due deliveries may wait for one that the recovery has yet to bring forward.
 */
export const RECOVERY_PACE: RecoveryPace = { paceMs: 1000, batchMax: 100, batchMaxWhileBusy: 10, dueMax: 200 };

/**
 * Maximum number of recoveries of an endpoint that are not complete. Each has a pace of its own, and the sweep that
 * looks for the next step reads all of them, also of disabled endpoints.
 */
export const RECOVERIES_PENDING_MAX = 10;

/** Maximum number of deliveries in flight that a recovery waits for; an endpoint has eight for each worker at most. */
export const RECOVERY_IN_FLIGHT_MAX = 100;
