import { CallplaneError, isCallplaneError } from './errors.js';
import { CLIENT_LIMITS } from './limits.js';
import { isAborted, isRefusal, linkedTo, pause, pauseAfterFailures } from './retry.js';
import { readFailure, reasonOf, type Connection } from './send.js';

export type StreamKind = 'rooms' | 'participants' | 'operations';

export interface StreamOptions {
  /** Default: all that the key may read. */
  kinds?: readonly StreamKind[];
  /** Restricts the changes to this room. */
  roomId?: string;
  /** The `id` of the last message of an earlier stream, to continue after it. */
  after?: string;
  /** Ends the stream. */
  signal?: AbortSignal;
  /** Gets each failure after which the stream continues, for a log. It must not throw. */
  onFailure?: (failure: { error: unknown; failures: number; pauseMs: number }) => void;
}

/** An event that changes a room, a participant or an operation. */
export interface StreamChange {
  kind: StreamKind;
  /** The type of the event. */
  type: string;
  eventId: string;
  roomId: string | null;
  participantId: string | null;
  sequence: number | null;
}

/**
 * - `ready`: the stream has begun. Read your data once, unless `resumed` is true.
 * - `changes`: something has changed.
 * - `reset`: changes were missed. Read everything again.
 */
export type StreamMessage =
  | { event: 'ready'; id: string | null; kinds: StreamKind[]; resumed: boolean }
  | { event: 'changes'; id: string | null; changes: StreamChange[] }
  | { event: 'reset'; id: string | null; reason: string };

/** Longer than the pause between two heartbeats of the API, in milliseconds. */
const SILENCE_MS_MAX = 45_000;

/**
 * Yields messages until `signal` is aborted, over all restarts of the API and of the network.
 * @throws CallplaneError if the API refuses the stream for good, such as 401, 403 or 400.
 */
export async function* streamChanges(connection: Connection, options: StreamOptions): AsyncGenerator<StreamMessage> {
  const { signal, onFailure } = options;
  let last = options.after ?? null;
  for (let failures = 0; !isAborted(signal);) {
    try {
      for await (const { id, event, data } of connect(connection, options, last)) {
        failures = 0;
        last = id ?? last;
        if (event === 'ready' || event === 'changes' || event === 'reset') {
          yield { ...(JSON.parse(data) as object), event, id: last } as StreamMessage;
        }
      }
      // The API ends each stream at some time.
      await pause(connection.random() * 1000, signal);
    } catch (error) {
      if (isAborted(signal)) return;
      if (isFinal(error)) throw error;
      failures += 1;
      const pauseMs = pauseAfterFailures(failures, error, connection.random());
      onFailure?.({ error, failures, pauseMs });
      await pause(pauseMs, signal).catch(() => undefined);
    }
  }
}

function isFinal(error: unknown): boolean {
  return isCallplaneError(error) ? isRefusal(error) : !(error instanceof SyntaxError);
}

interface Message {
  id: string | null;
  event: string;
  data: string;
}

/** One connection. Ends when the API or the signal ends it. */
async function* connect(
  connection: Connection,
  { kinds, roomId, signal }: StreamOptions,
  after: string | null,
): AsyncGenerator<Message> {
  const query = new URLSearchParams();
  if (kinds !== undefined) query.set('kinds', kinds.join(','));
  if (roomId !== undefined) query.set('roomId', roomId);
  const { ending, unlink } = linkedTo(signal);
  let timer: NodeJS.Timeout | undefined;
  const listen = () => {
    clearTimeout(timer);
    timer = setTimeout(() => ending.abort(), Math.max(SILENCE_MS_MAX, connection.timeoutMs));
  };
  listen();
  try {
    const response = await connection.fetch(`${connection.origin}/v1/stream?${query.toString()}`, {
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${connection.apiKey}`,
        ...(after === null ? {} : { 'last-event-id': after }),
      },
      redirect: 'manual',
      signal: ending.signal,
    });
    if (response.status !== 200) throw await readFailure('openStream', response);
    yield* messagesOf((response.body ?? []) as AsyncIterable<Uint8Array>, listen);
  } catch (error) {
    if (isCallplaneError(error) || error instanceof SyntaxError) throw error;
    const message = `openStream: the connection to ${connection.origin} failed: ${reasonOf(error)}`;
    throw new CallplaneError(message, { code: 'CONNECTION_FAILED', operationId: 'openStream', cause: error });
  } finally {
    clearTimeout(timer);
    ending.abort();
    unlink();
  }
}

/** Reads server-sent events, as the HTML standard defines them. The API ends each line with a line feed. */
async function* messagesOf(body: AsyncIterable<Uint8Array>, onChunk: () => void): AsyncGenerator<Message> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    onChunk();
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      yield parse(text.slice(0, end));
      text = text.slice(end + 2);
    }
    if (text.length > CLIENT_LIMITS.responseBytesMax) {
      const message = `openStream: a message has more than ${CLIENT_LIMITS.responseBytesMax / 1024 / 1024} MiB`;
      throw new CallplaneError(message, { code: 'INVALID_RESPONSE', operationId: 'openStream' });
    }
  }
}

function parse(block: string): Message {
  const message: Message = { id: null, event: '', data: '' };
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([a-z]*): ?(.*)$/.exec(line) ?? [];
    if (name === 'id' || name === 'event' || name === 'data') message[name] = value;
  }
  return message;
}
