/** How long the caller wants an answer to wait for completion (RFC 7240); null where it does not say. */
export interface Preference {
  waitMs: number | null;
  /** Value for the `Preference-Applied` header. */
  applied: string | null;
}

const WAIT_SECONDS_MAX = 10;
const NONE: Preference = { waitMs: null, applied: null };

/**
 * Reads `Prefer: wait=N` (whole seconds, at most 10 are waited) and `Prefer: respond-async` (no wait at all, unless
 * `wait` says how long). Anything else is ignored, as RFC 7240 asks.
 */
export function parsePrefer(header: string | undefined): Preference {
  if (header === undefined) return NONE;
  const preferences = header.split(',').map((part) => (part.split(';')[0] ?? '').trim().toLowerCase());
  const wait = preferences
    .map((preference) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(preference)?.[1])
    .find((n) => n !== undefined);
  if (wait !== undefined) {
    const seconds = Math.min(Number(wait), WAIT_SECONDS_MAX);
    return { waitMs: seconds * 1000, applied: `wait=${seconds}` };
  }
  return preferences.includes('respond-async') ? { waitMs: 0, applied: 'respond-async' } : NONE;
}
