import { backoffMs, type Random } from '../operations/operation.js';
import { RUN_AGE_DAYS_MAX, type AttemptOutcome, type DeliveryFailureReason } from './vocabulary.js';

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
