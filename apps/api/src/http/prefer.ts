/** How long the caller wants the answer to wait for completion (RFC 7240). `waitMs` is null without a preference. */
export interface Preference {
  waitMs: number | null;
  /** Value for the `Preference-Applied` header. */
  applied: string | null;
}

const WAIT_SECONDS_MAX = 10;
const NONE: Preference = { waitMs: null, applied: null };

/**
 * Parses `Prefer: wait=N` (whole seconds, capped at 10) and `Prefer: respond-async`, which means no wait unless `wait`
 * is given too. Ignores every other preference, as RFC 7240 requires.
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
