import { backoffMs, type Random } from '../operations/schedule.js';
import { RUN_AGE_DAYS_MAX, type AttemptOutcome, type DeliveryFailureReason } from './vocabulary.js';

export const RUN_AGE_MS_MAX = RUN_AGE_DAYS_MAX * 24 * 60 * 60 * 1000;
/** An attempt that takes this long leaves its endpoint unproven, however it ends. */
export const SLOW_ATTEMPT_MS = 2000;

/** What a final status says of a delivery. Redirects are not followed, so 3xx is final too. */
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
 * What becomes of a delivery after an attempt (the retry policy of the specification, section 6).
 * @param input.runAttempt 1 for the first attempt of the run.
 * @param input.statusCode null when no complete head of an answer arrived.
 * @param input.runAgeMs since the run began; a replay begins a new one.
 */
export function afterAttempt(input: {
  runAttempt: number;
  outcome: AttemptOutcome;
  statusCode: number | null;
  runAgeMs: number;
  random: Random;
}): AfterAttempt {
  const { runAttempt, outcome, statusCode, runAgeMs, random } = input;
  if (outcome === 'success') return { status: 'succeeded' };
  if (outcome === 'blocked') return { status: 'failed', reason: 'unsafe_destination' };
  // Anything else is a failure of the network: a wrong certificate, an answer that is not HTTP, and one that breaks
  // off after a good status.
  if (outcome === 'response' && statusCode !== null && classifyStatus(statusCode) === 'rejected') {
    return { status: 'failed', reason: 'rejected' };
  }
  const delayMs = backoffMs(runAttempt, random);
  if (delayMs === null) return { status: 'failed', reason: 'attempts_exhausted' };
  if (runAgeMs + delayMs > RUN_AGE_MS_MAX) return { status: 'failed', reason: 'run_expired' };
  return { status: 'pending', delayMs };
}

/** Whether an attempt proves its endpoint: one that answers well and soon may use a worker's free slots. */
export function isProof(outcome: AttemptOutcome, statusCode: number | null, durationMs: number): boolean {
  return (
    outcome === 'success' &&
    statusCode !== null &&
    classifyStatus(statusCode) === 'success' &&
    durationMs < SLOW_ATTEMPT_MS
  );
}
