/**
 * The retry schedule of operations and webhook deliveries alike, defined only here. The route
 * `GET /v1/webhooks/signature-contract` serves these constants.
 */
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

/** Whether a run has had all its attempts. */
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
