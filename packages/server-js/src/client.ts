import { consumeEvents, type ConsumeOptions } from './consume-events.js';
import { OPERATIONS } from './facts.generated.js';
import { checkTimeout, CLIENT_LIMITS } from './limits.js';
import { type OperationFacts, type OperationId, pageOf, type PageContent } from './operation.js';
import type { Operations, RuntimeOperation } from './operations.generated.js';
import { buildRequest, type AllOptions } from './request.js';
import { send, type Connection } from './send.js';
import { streamChanges, type StreamMessage, type StreamOptions } from './stream.js';
import { CallplaneError } from './errors.js';
import { linkedTo, pause } from './retry.js';

export interface ClientOptions {
  /** The base address of the API: `https://calls.example.com/v1`. */
  baseUrl: string;
  /** A secret key, `rtc_sk_…`. Keep it on your backend. */
  apiKey: string;
  /** How long one attempt may take, in milliseconds; default 30000. */
  timeoutMs?: number;
  /** How often a failed attempt is repeated, 0 to 10; default 3. */
  retriesMax?: number;
  /** Replaces the fetch of Node, for proxies and tests. */
  fetch?: typeof fetch;
}

/** Every operation of the API as a function, and helpers. */
export interface Callplane extends Operations {
  /** Waits until the clean-up of a room, or with `participantId` of a participant, is complete. */
  waitForOperation: (of: OperationOf, options?: WaitOptions) => Promise<RuntimeOperation>;
  /** Passes all events to a function, in order, until `signal` is aborted. The function stores the position. */
  consumeEvents: (options: ConsumeOptions) => Promise<void>;
  /** Yields changes as they happen, until `signal` is aborted. */
  stream: (options?: StreamOptions) => AsyncGenerator<StreamMessage>;
}

const TIMEOUT_MS = 30_000;
const RETRIES = 3;
/** Above the longest time for which the API waits on purpose, so that this wait is no time-out. */
const WAIT_MARGIN_MS = 5_000;

/** @throws TypeError for a wrong option. */
export function createClient(options: ClientOptions): Callplane {
  const connection = connectionOf(options);
  const operations = Object.entries(OPERATIONS).map(([id, facts]) => {
    const call = (input: object = {}, given: AllOptions = {}) =>
      callOperation(connection, id as OperationId, facts, { input, options: given });
    return [id, call] as const;
  });
  const api = Object.fromEntries(operations) as unknown as Operations;
  return {
    ...api,
    waitForOperation: (of, given) => waitForOperation(api, of, given),
    consumeEvents: (given) => consumeEvents(api, given, connection.random),
    stream: (given = {}) => streamChanges(connection, given),
  };
}

function callOperation(
  connection: Connection,
  id: OperationId,
  facts: OperationFacts,
  { input, options }: { input: object; options: AllOptions },
): Promise<unknown> {
  const load = async (fields: object): Promise<unknown> => {
    const request = buildRequest(id, facts, { input: fields, options, newKey: () => crypto.randomUUID() });
    const { signal, timeoutMs = connection.timeoutMs, retriesMax = connection.retriesMax } = options;
    checkRetries(retriesMax);
    checkTimeout(timeoutMs);
    const waitMs = options.waitSeconds === undefined ? waitMsIn(fields) : options.waitSeconds * 1_000;
    const leastMs = waitMs === 0 ? 0 : waitMs + WAIT_MARGIN_MS;
    return send(connection, request, { signal, retriesMax, timeoutMs: Math.max(timeoutMs, leastMs) });
  };
  const { cursor: parameter } = facts;
  if (parameter === undefined) return load(input);
  return pageOf(
    id,
    (cursor) => load(cursor === undefined ? input : { ...input, [parameter]: cursor }) as Promise<PageContent<unknown>>,
  );
}

/** Some operations wait, as their `wait` (in seconds) or `timeoutMs` says. */
function waitMsIn(fields: object): number {
  const { wait, timeoutMs } = fields as { wait?: unknown; timeoutMs?: unknown };
  if (typeof timeoutMs === 'number') return timeoutMs;
  return typeof wait === 'number' ? wait * 1_000 : 0;
}

function connectionOf(options: ClientOptions): Connection {
  const { apiKey, timeoutMs = TIMEOUT_MS, retriesMax = RETRIES } = options;
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('`apiKey` must be a secret key of the API, `rtc_sk_…`.');
  }
  checkTimeout(timeoutMs);
  checkRetries(retriesMax);
  return {
    origin: originOf(options.baseUrl),
    apiKey,
    fetch: options.fetch ?? globalThis.fetch,
    timeoutMs,
    retriesMax,
    random: Math.random,
  };
}

function checkRetries(retriesMax: number): void {
  if (Number.isInteger(retriesMax) && retriesMax >= 0 && retriesMax <= CLIENT_LIMITS.retriesMax) return;
  throw new TypeError(`\`retriesMax\` must be a whole number from 0 to ${CLIENT_LIMITS.retriesMax}.`);
}

/** The base address without `/v1`, which every path of the API contains. */
function originOf(baseUrl: string): string {
  let url: URL | undefined;
  try {
    url = new URL(baseUrl);
  } catch {
    // Reported below, together with the other mistakes.
  }
  const isPlain = url !== undefined && `${url.username}${url.password}${url.search}${url.hash}` === '';
  if (url === undefined || !isPlain || !['http:', 'https:'].includes(url.protocol)) {
    throw new TypeError('`baseUrl` must be the address of the API, such as https://calls.example.com/v1.');
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`;
}

const FIRST_PAUSE_MS = 250;
const PAUSE_MS_MAX = 5_000;
const WAIT_TIMEOUT_MS = 60_000;

export interface OperationOf {
  roomId: string;
  /** For the removal of a participant. Without it the operation is the end of the room. */
  participantId?: string;
}

export interface WaitOptions {
  signal?: AbortSignal;
  /** How long to wait altogether, in milliseconds; default 60000. */
  timeoutMs?: number;
}

type Reader = Pick<Operations, 'readRoomOperation' | 'readParticipantOperation'>;

/**
 * Waits until the clean-up of a room or a participant is complete.
 * @returns the completed operation
 * @throws CallplaneError `OPERATION_FAILED` if it has failed, `TIMED_OUT` after `timeoutMs`, also while a read is being
 *   repeated, `OPERATION_NOT_FOUND` if the room was never ended or the participant never removed; TypeError for a wrong
 *   `timeoutMs`.
 */
async function waitForOperation(
  api: Reader,
  { roomId, participantId }: OperationOf,
  { signal, timeoutMs = WAIT_TIMEOUT_MS }: WaitOptions = {},
): Promise<RuntimeOperation> {
  checkTimeout(timeoutMs);
  signal?.throwIfAborted();
  const { ending, unlink } = linkedTo(signal);
  let seen: RuntimeOperation | undefined;
  const timer = setTimeout(() => ending.abort(timedOut(seen, timeoutMs)), timeoutMs);
  const options = { signal: ending.signal };
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      seen = await (participantId === undefined
        ? api.readRoomOperation({ roomId }, options)
        : api.readParticipantOperation({ roomId, participantId }, options));
      if (seen.status === 'completed') return seen;
      if (seen.status === 'failed') {
        const reason = seen.lastError?.message ?? 'no reason is known';
        throw new CallplaneError(`The operation ${seen.id} has failed: ${reason}`, {
          code: 'OPERATION_FAILED',
          operationId: 'waitForOperation',
        });
      }
      await pause(pauseMs, options.signal);
    }
  } finally {
    clearTimeout(timer);
    unlink();
  }
}

function timedOut(pending: RuntimeOperation | undefined, timeoutMs: number): CallplaneError {
  const state = pending === undefined ? 'No operation could be read' : `The operation ${pending.id} is still pending`;
  return new CallplaneError(`${state} after ${timeoutMs / 1_000} s.`, {
    code: 'TIMED_OUT',
    operationId: 'waitForOperation',
  });
}
