/** Bounds of this client; docs/limits.md lists them. */
export const CLIENT_LIMITS = {
  /** Larger responses are refused. */
  responseBytesMax: 16 * 1024 * 1024,
  retriesMax: 10,
  /** The longest pause before a retry, and the longest `Retry-After` that the client waits for. */
  retryPauseSecondsMax: 60,
  /** The API waits at most this long for a clean-up. */
  waitSecondsMax: 10,
} as const;
