/**
 * The contract's numbers for everything durable (operations and webhook deliveries alike). They stand here and
 * nowhere else; `GET /v1/webhooks/signature-contract` serves these constants.
 */
export const ATTEMPTS_PER_RUN = 8;
/** Waits between the attempts of a run, in seconds. */
export const BACKOFF_SECONDS = [5, 30, 120, 600, 1800, 3600, 21600] as const;
/** Each wait gets up to this share of itself on top, at random. */
export const BACKOFF_JITTER_RATIO_MAX = 0.2;
/** How long a worker holds a row before it is due again. */
export const LEASE_SECONDS = 120;
/** Rows that one worker process works on at once. */
export const CONCURRENCY_PER_WORKER = 4;

/** A source of uniform numbers in [0, 1), such as `Math.random`. */
export type Random = () => number;

/**
 * The wait after the given attempt of a run failed, in milliseconds; null when that was the run's last attempt.
 * @param runAttempt 1 for the first attempt of the run.
 */
export function backoffMs(runAttempt: number, random: Random): number | null {
  const seconds = BACKOFF_SECONDS[runAttempt - 1];
  if (seconds === undefined) return null;
  return Math.round(seconds * 1000 * (1 + random() * BACKOFF_JITTER_RATIO_MAX));
}
