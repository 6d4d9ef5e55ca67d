import { CallplaneError, isCallplaneError } from './errors.js';
import { CLIENT_LIMITS } from './limits.js';
import type { InputOf } from './operation.js';
import type { EventPage, Operations } from './operations.generated.js';
import { isAborted, isRefusal, pause, pauseAfterFailures } from './retry.js';

/** Some events, and the position after them. */
export interface EventBatch {
  /** Up to `limit` events in their order, as webhooks send them. May be empty at the beginning, with `from: 'latest'`. */
  events: EventPage['data'];
  /** The cursor that `loadCursor` returned, before these events; null if there was none. */
  after: string | null;
  /** The cursor after these events, up to 512 characters. Store it in the transaction of their effects. */
  nextCursor: string;
}

/** A failure after which the consumer continues. */
export interface ConsumerFailure {
  /** The failed step: one of the caller's functions, or the API. */
  step: 'loadCursor' | 'listEvents' | 'handle';
  error: unknown;
  /** Failures in a row, 1 for the first one. */
  failures: number;
  /** How long the consumer pauses before it continues, in milliseconds. */
  pauseMs: number;
}

export interface ConsumeOptions extends Pick<InputOf<'listEvents'>, 'roomId' | 'type'> {
  /** Reads the stored cursor; null or undefined if none is stored. The consumer calls it before it reads events. */
  loadCursor: () => Promise<string | null | undefined>;
  /**
   * Processes a batch and stores its `nextCursor`. One transaction gives each event exactly one effect, with any number
   * of consumers and whatever is killed:
   *
   * 1. Lock the row of the cursor.
   * 2. If its cursor is not `batch.after`, another consumer has processed the batch: return.
   * 3. Apply the effects, store `batch.nextCursor`, and commit.
   *
   * If it rejects, the consumer pauses, loads the cursor, and reads the events after it again.
   */
  handle: (batch: EventBatch) => Promise<void>;
  /**
   * Where to begin without a stored cursor: `earliest` with the oldest event that is kept, `latest` with the next new
   * one, a date with the first one created at this time or later. Default: `earliest`.
   */
  from?: 'earliest' | 'latest' | Date;
  /** The most events of a batch, 1 to 100; default 100. */
  limit?: number;
  /** How long a request waits for an event, in whole seconds, 1 to 30; default 30. */
  waitSeconds?: number;
  /** The consumer ends with the last error after this many failures in a row, 1 to 1000; default 20, about 5 minutes. */
  failuresMax?: number;
  /** Gets each failure after which the consumer continues, for a log. It must not throw. */
  onFailure?: (failure: ConsumerFailure) => void;
  /** Ends the consumer. A request is cut; a running `handle` is not. */
  signal?: AbortSignal;
}

const FAILURES_MAX = 20;
/** Between two reads without an event, also if an API that is being replaced or a proxy does not wait. */
const EMPTY_READ_MS_MIN = 1_000;

interface Progress {
  step: ConsumerFailure['step'];
  /** The cursor before the latest batch that `handle` resolved for; undefined: none. */
  handledAfter: string | null | undefined;
}

/**
 * Reads events until `signal` is aborted, and passes them to `handle`, one batch at a time.
 * @param random from 0 to 1
 * @returns after `signal` is aborted, once a running `handle` has resolved
 * @throws CallplaneError if the API refuses the request for good (such as 401, 403, or 400 for a cursor that is not its
 *   own), or `CURSOR_NOT_STORED`; after `failuresMax` failures in a row the last error; TypeError for a wrong option.
 */
export async function consumeEvents(
  api: Pick<Operations, 'listEvents'>,
  options: ConsumeOptions,
  random: () => number,
): Promise<void> {
  checkOptions(options);
  const { signal, onFailure, failuresMax = FAILURES_MAX } = options;
  const progress: Progress = { step: 'loadCursor', handledAfter: undefined };
  let failures = 0;
  while (!isAborted(signal)) {
    try {
      await consumeBatch(api, options, progress);
      failures = 0;
    } catch (error) {
      if (isAborted(signal) && error === signal?.reason) return;
      failures += 1;
      if (isAborted(signal) || failures >= failuresMax || isFinal(progress.step, error)) throw error;
      const pauseMs = pauseAfterFailures(failures, error, random());
      onFailure?.({ step: progress.step, error, failures, pauseMs });
      await pauseUnlessAborted(pauseMs, signal);
    }
  }
}

async function consumeBatch(
  api: Pick<Operations, 'listEvents'>,
  options: ConsumeOptions,
  progress: Progress,
): Promise<void> {
  const { loadCursor, handle, signal } = options;
  progress.step = 'loadCursor';
  const after = (await loadCursor()) ?? null;
  if (after === progress.handledAfter) {
    // The same events would come again and again, without a pause.
    const message = '`handle` has resolved without storing `nextCursor`. Store it, or reject to get the batch again.';
    throw new CallplaneError(`consumeEvents: ${message}`, { code: 'CURSOR_NOT_STORED', operationId: 'listEvents' });
  }
  progress.handledAfter = undefined;
  if (isAborted(signal)) return;

  progress.step = 'listEvents';
  const startedAt = performance.now();
  // The loop repeats failed reads.
  const call = { retriesMax: 0, ...(signal === undefined ? {} : { signal }) };
  const { data, nextCursor } = await api.listEvents(inputOf(options, after), call);
  if (nextCursor === null) {
    await pauseUnlessAborted(EMPTY_READ_MS_MIN - (performance.now() - startedAt), signal);
    return;
  }
  progress.step = 'handle';
  await handle({ events: data, after, nextCursor });
  progress.handledAfter = after;
}

function inputOf(options: ConsumeOptions, after: string | null): InputOf<'listEvents'> {
  const { roomId, type, from = 'earliest', limit = CLIENT_LIMITS.eventBatchMax, waitSeconds } = options;
  const filters = { ...(roomId === undefined ? {} : { roomId }), ...(type === undefined ? {} : { type }), limit };
  // Without a wait, so that the position is stored at once.
  if (after === null && from === 'latest') return { ...filters, after: 'latest' };
  const wait = waitSeconds ?? CLIENT_LIMITS.eventWaitSecondsMax;
  if (after !== null) return { ...filters, wait, after };
  return from instanceof Date ? { ...filters, wait, since: from.toISOString() } : { ...filters, wait };
}

/** Whether a repetition cannot help. Failures of the caller's functions may always pass. */
function isFinal(step: ConsumerFailure['step'], error: unknown): boolean {
  if (!isCallplaneError(error)) return false;
  if (step === 'loadCursor') return error.code === 'CURSOR_NOT_STORED';
  return step === 'listEvents' && isRefusal(error);
}

async function pauseUnlessAborted(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms <= 0 || isAborted(signal)) return;
  await pause(ms, signal).catch((error: unknown) => {
    if (!isAborted(signal)) throw error;
  });
}

function checkOptions({ loadCursor, handle, from, limit, waitSeconds, failuresMax }: ConsumeOptions): void {
  if (typeof loadCursor !== 'function' || typeof handle !== 'function') {
    throw new TypeError('consumeEvents needs the functions `loadCursor` and `handle`.');
  }
  const isTime = from instanceof Date && !Number.isNaN(from.getTime());
  if (from !== undefined && from !== 'earliest' && from !== 'latest' && !isTime) {
    throw new TypeError('`from` must be `earliest`, `latest` or a valid Date.');
  }
  checkWhole('limit', limit, CLIENT_LIMITS.eventBatchMax);
  checkWhole('waitSeconds', waitSeconds, CLIENT_LIMITS.eventWaitSecondsMax);
  checkWhole('failuresMax', failuresMax, CLIENT_LIMITS.consumerFailuresMax);
}

function checkWhole(name: string, value: number | undefined, max: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= 1 && value <= max)) return;
  throw new TypeError(`\`${name}\` must be a whole number from 1 to ${max}, not ${value}.`);
}
