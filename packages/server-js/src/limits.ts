/** Bounds of this client; docs/limits.md lists them. */
export const CLIENT_LIMITS = {
  /** Larger responses are refused. */
  responseBytesMax: 16 * 1024 * 1024,
  retriesMax: 10,
  /** The longest pause before a retry, and the longest `Retry-After` that the client waits for. */
  retryPauseSecondsMax: 60,
  /** The API waits at most this long for a clean-up. */
  waitSecondsMax: 10,
  /** The API waits at most this long for an event. */
  eventWaitSecondsMax: 30,
  /** Events of one batch of a consumer, and of one page of the API. */
  eventBatchMax: 100,
  /** Failures in a row after which a consumer of events ends. */
  consumerFailuresMax: 1_000,
  /** The longest pause of a consumer of events, unless `Retry-After` is longer. */
  consumerPauseSecondsMax: 30,
} as const;

/** A longer timer of Node fires at once. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** @throws TypeError for a time that no timer can have. */
export function checkTimeout(timeoutMs: number): void {
  if (timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX) return;
  throw new TypeError(`\`timeoutMs\` must be a number above 0, at most ${TIMEOUT_MS_MAX}.`);
}
