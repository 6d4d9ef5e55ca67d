/** Decides whether and when a failed attempt is repeated, without I/O. */
import { setTimeout as delay } from 'node:timers/promises';
import { isCallplaneError, type CallplaneError } from './errors.js';
import { CLIENT_LIMITS } from './limits.js';
import type { OperationFacts, OperationId } from './operation.js';

const FIRST_PAUSE_MS = 200;
const PAUSE_MS_MAX = 5_000;

/** Failures before a request reached the API: it had no effect. */
const NOT_SENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

/**
 * POSTs without an idempotency key that may be repeated nevertheless: a second token or credential that no client gets
 * harms nothing, and a muted track stays muted.
 */
const REPEATABLE_POSTS: readonly OperationId[] = ['issueToken', 'issueTurnCredentials', 'muteTrack'];

/** Whether a repetition of the request has the effect of one request. */
export function isRepeatable(id: OperationId, { method }: OperationFacts, hasIdempotencyKey: boolean): boolean {
  return method !== 'POST' || hasIdempotencyKey || REPEATABLE_POSTS.includes(id);
}

/**
 * @param attempt 0 for the first one
 * @param random from 0 to 1
 * @returns how long to wait before the next attempt, in milliseconds; null if the failure is final
 */
export function pauseBefore(
  error: CallplaneError,
  { attempt, retriesMax, repeatable, random }: RetryState,
): number | null {
  if (attempt >= retriesMax || !mayRepeat(error, repeatable)) return null;
  const wantedMs = (error.retryAfterSeconds ?? 0) * 1_000;
  if (wantedMs > CLIENT_LIMITS.retryPauseSecondsMax * 1_000) return null;
  return Math.max(wantedMs, backoff(attempt, PAUSE_MS_MAX, random));
}

/**
 * How long a consumer of events pauses, in milliseconds.
 * @param failures in a row, 1 for the first one
 * @param random from 0 to 1
 */
export function pauseAfterFailures(failures: number, error: unknown, random: number): number {
  const retryAfterSeconds = isCallplaneError(error) ? (error.retryAfterSeconds ?? 0) : 0;
  const wantedMs = Math.min(retryAfterSeconds, CLIENT_LIMITS.retryPauseSecondsMax) * 1_000;
  return Math.max(wantedMs, backoff(failures, CLIENT_LIMITS.consumerPauseSecondsMax * 1_000, random));
}

function backoff(attempt: number, pauseMsMax: number, random: number): number {
  const backoffMs = Math.min(FIRST_PAUSE_MS * 2 ** attempt, pauseMsMax);
  // Half of the pause is random, so that clients of an API that comes back do not all call at once.
  return backoffMs / 2 + (backoffMs / 2) * random;
}

export interface RetryState {
  attempt: number;
  retriesMax: number;
  repeatable: boolean;
  random: number;
}

function mayRepeat({ code, status, cause }: CallplaneError, repeatable: boolean): boolean {
  // The API refused the request, or another request with this idempotency key is not complete yet.
  if (status === 429 || code === 'IDEMPOTENCY_CONFLICT') return true;
  if (code === 'CONNECTION_FAILED' && NOT_SENT.test(systemCodeOf(cause))) return true;
  return repeatable && (code === 'CONNECTION_FAILED' || code === 'TIMED_OUT' || isTemporary(status));
}

function isTemporary(status: number | null): boolean {
  return status === 408 || (status !== null && status >= 500);
}

/** The code of the system's error below the error of fetch, such as `ECONNREFUSED`. */
function systemCodeOf(cause: unknown): string {
  for (let error = cause, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth += 1) {
    const { code } = error as { code?: unknown };
    if (typeof code === 'string') return code;
    // Node tries several addresses of a host; the last one tells as much as the others.
    if (error instanceof AggregateError) return systemCodeOf(error.errors.at(-1));
  }
  return '';
}

/** Whether the API refuses a request for good. A proxy that is being replaced may answer anything. */
export function isRefusal({ status, code }: CallplaneError): boolean {
  return status !== null && status !== 429 && !isTemporary(status) && code !== 'INVALID_RESPONSE';
}

/** A function, because the compiler takes a property of a signal for constant. */
export function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/**
 * A controller that aborts with the caller's signal, until `unlink`. AbortSignal.any would keep every attempt in memory
 * for as long as the signal lives.
 */
export function linkedTo(signal: AbortSignal | undefined): { ending: AbortController; unlink: () => void } {
  const ending = new AbortController();
  const onAbort = () => ending.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  return { ending, unlink: () => signal?.removeEventListener('abort', onAbort) };
}

/** Waits. Rejects with the reason of the signal as soon as it is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
