import { abortedError, asCallplaneError, CallplaneError, hasCode, invalidArgument } from '../errors.js';
import type { CreditMessage, PartRequest } from '../protocol.generated.js';
import { backoffMs, pause } from '../wait.js';

/** The bytes of a stream. Text is sent as UTF-8. */
export type StreamSource = Blob | BufferSource | string | ReadableStream<Uint8Array | string>;

export interface StreamProgress {
  /** Bytes that have arrived at every recipient; at the receiver: here. */
  bytes: number;
  /** Undefined if the sender does not know it. */
  size: number | undefined;
}

export interface StreamOptions {
  /** Participant ids, at most 100. Without it, all other participants; in a paged room the ones that are shown. */
  to?: readonly string[];
  /** Default: the name of a `File`. */
  name?: string;
  /** Default: the type of a `Blob`. */
  contentType?: string;
  /** Bytes of a `ReadableStream`, if you know it. */
  size?: number;
  attributes?: Readonly<Record<string, string>>;
  onProgress?: (progress: StreamProgress) => void;
  /** Gives the stream up, for all recipients. */
  signal?: AbortSignal;
}

export interface StreamResult {
  /** The participants that have received everything. */
  delivered: string[];
  /** Why the others have not. */
  failed: ReadonlyMap<string, CallplaneError>;
}

export const STREAM_BYTES_MAX = 16 * 1024 * 1024;
/** As Base64, and with the fields of its message, a part counts as one message of the connection's rate. */
const PART_BYTES = 11 * 1024;
/** Parts on their way to one recipient. The number follows the time that they take: a slow line keeps room for others. */
const WINDOW_FIRST = 4;
const WINDOW_MAX = 24;
/** How much longer than its fastest part a part may take until fewer of them are on their way, and more. */
const DELAY_SHORT_MS = 200;
const DELAY_LONG_MS = 600;
const READ_AHEAD_BYTES = 256 * 1024;
/** How long a recipient has to accept the stream, and to confirm a part. */
const ACCEPT_MS = 15_000;
const SILENCE_MS = 60_000;
/** After this time without a credit, parts are sent again. */
const REPEAT_MS = 3_000;
const REPEAT_MS_MAX = 20_000;

export interface OutgoingContext {
  now: () => number;
  random: () => number;
  /** How many parts may be without the answer of the gateway. */
  partsAtOnce: () => number;
  /** Offers the stream, and resolves once the gateway has passed that on. */
  open: (to: string[]) => Promise<void>;
  /** Sends a part, and resolves once the gateway wants another one. */
  part: (part: Omit<PartRequest, 'type' | 'streamId' | 'data'>, bytes: Uint8Array) => Promise<void>;
  /** Lets recipients forget the stream. */
  abort: (to: string[], offset: number) => void;
}

interface Recipient {
  readonly id: string;
  isAccepted: boolean;
  /** Bytes that it has confirmed, that go next, and up to which it takes them. */
  acked: number;
  position: number;
  limit: number;
  furthest: number;
  isLastSent: boolean;
  window: number;
  /** When the bytes before an offset were sent. */
  sentAtMs: Map<number, number>;
  delayMsMin: number;
  heardAtMs: number;
  triedAtMs: number;
  repeatMs: number;
}

/**
 * A stream to others. Each recipient has a position and credit of its own, so that a slow one delays no other. The bytes
 * stay here until the end: a lost part is sent again from the last confirmed byte.
 */
export class Outgoing {
  readonly #open = new Map<string, Recipient>();
  readonly #failed = new Map<string, CallplaneError>();
  readonly #delivered: string[] = [];
  #bytes = new Uint8Array(0);
  #available = 0;
  #isEnded = false;
  #isReading = false;
  #failure: CallplaneError | undefined;
  #sending = 0;
  #refusals = 0;
  #pausedUntilMs = 0;
  #progress = -1;
  #wake = (): void => undefined;

  constructor(
    to: readonly string[],
    private readonly reader: ReadableStreamDefaultReader<Uint8Array | string>,
    private readonly options: StreamOptions,
    private readonly context: OutgoingContext,
  ) {
    const nowMs = context.now();
    for (const id of new Set(to))
      this.#open.set(id, {
        ...{ id, isAccepted: false, acked: 0, position: 0, limit: 0, furthest: 0, isLastSent: false },
        ...{ window: WINDOW_FIRST, sentAtMs: new Map(), delayMsMin: Infinity },
        ...{ heardAtMs: nowMs, triedAtMs: nowMs, repeatMs: REPEAT_MS },
      });
  }

  /** @throws CallplaneError if nobody receives everything */
  async run(): Promise<StreamResult> {
    const { signal } = this.options;
    const onAbort = () => signal !== undefined && this.fail(abortedError(signal));
    signal?.addEventListener('abort', onAbort);
    try {
      if (signal?.aborted === true) onAbort();
      if (this.#open.size > 0) this.#offer([...this.#open.keys()]);
      while (this.#open.size > 0) {
        this.#read();
        if (!this.#sendNext()) await this.#untilNext();
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.reader.cancel(this.#failure).catch(() => undefined);
    }
    const [first] = this.#failed.values();
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#delivered.length === 0 && first !== undefined) throw first;
    return { delivered: this.#delivered, failed: this.#failed };
  }

  /** Ends the stream for all recipients. */
  fail(error: CallplaneError): void {
    this.#failure ??= error;
    const ids = [...this.#open.keys()];
    if (ids.length > 0) this.context.abort(ids, 0);
    for (const id of ids) this.lose(id, error, true);
  }

  /** Ends the stream for one recipient. */
  lose(id: string, error: CallplaneError, isTold = false): void {
    const recipient = this.#open.get(id);
    if (recipient === undefined) return;
    this.#open.delete(id);
    this.#failed.set(id, error);
    if (!isTold) this.context.abort([id], recipient.acked);
    this.#changed();
  }

  receive({ from, received, limit, done, failure }: CreditMessage): void {
    const recipient = this.#open.get(from);
    if (recipient === undefined) return;
    if (failure !== undefined) {
      this.lose(from, new CallplaneError(failure, TEXTS[failure]), true);
      return;
    }
    const nowMs = this.context.now();
    recipient.isAccepted = true;
    recipient.heardAtMs = nowMs;
    // A recipient cannot confirm what it was not sent.
    if (received > recipient.furthest) return;
    recipient.limit = Math.max(recipient.limit, limit);
    if (received > recipient.acked) this.#confirmed(recipient, received, nowMs);
    if (done === true && this.#isEnded && received === this.#available) {
      this.#open.delete(from);
      this.#delivered.push(from);
    }
    this.#changed();
  }

  #confirmed(recipient: Recipient, received: number, nowMs: number): void {
    const { sentAtMs } = recipient;
    const sentAt = sentAtMs.get(received);
    for (const end of sentAtMs.keys()) if (end <= received) sentAtMs.delete(end);
    recipient.acked = received;
    recipient.position = Math.max(recipient.position, received);
    recipient.triedAtMs = nowMs;
    if (sentAt === undefined) return;
    const delayMs = nowMs - sentAt;
    recipient.delayMsMin = Math.min(recipient.delayMsMin, delayMs);
    recipient.repeatMs = Math.max(REPEAT_MS, 4 * delayMs);
    const longerMs = delayMs - recipient.delayMsMin;
    if (longerMs < DELAY_SHORT_MS) recipient.window = Math.min(WINDOW_MAX, recipient.window + 1);
    else if (longerMs > DELAY_LONG_MS) recipient.window = Math.max(1, Math.floor(recipient.window / 2));
  }

  #changed(): void {
    const { onProgress, size } = this.options;
    const bytes = Math.min(...[...this.#open.values()].map(({ acked }) => acked), this.#available);
    const isWanted = this.#open.size > 0 || (this.#delivered.length > 0 && this.#failure === undefined);
    if (onProgress !== undefined && bytes > this.#progress && isWanted) {
      this.#progress = bytes;
      // Its errors are the page's.
      queueMicrotask(() => onProgress({ bytes, size }));
    }
    this.#wake();
  }

  /** Reads the source, but only a little further than the fastest recipient. */
  #read(): void {
    const furthest = Math.max(...[...this.#open.values()].map((one) => one.furthest));
    if (this.#isReading || this.#isEnded || this.#available - furthest >= READ_AHEAD_BYTES) return;
    this.#isReading = true;
    this.reader.read().then(
      ({ value, done }) => {
        this.#isReading = false;
        if (!done) this.#append(typeof value === 'string' ? new TextEncoder().encode(value) : value);
        else if (this.#available === (this.options.size ?? this.#available)) this.#isEnded = true;
        else this.fail(invalidArgument('size', `is ${this.options.size}, but the source has ${this.#available} bytes`));
        this.#wake();
      },
      (error: unknown) => this.fail(asCallplaneError(error)),
    );
  }

  #append(chunk: Uint8Array): void {
    const length = this.#available + chunk.length;
    if (length > STREAM_BYTES_MAX) {
      this.fail(tooLarge(length));
      return;
    }
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(length, this.options.size ?? Math.min(2 * length, STREAM_BYTES_MAX)));
      grown.set(this.#bytes.subarray(0, this.#available));
      this.#bytes = grown;
    }
    this.#bytes.set(chunk, this.#available);
    this.#available = length;
  }

  /** @returns whether a part was sent: the next one, to all who are at its offset and may have it */
  #sendNext(): boolean {
    if (this.#sending >= this.context.partsAtOnce() || this.context.now() < this.#pausedUntilMs) return false;
    const able = [...this.#open.values()].filter((one) => this.#mayHave(one));
    const offset = Math.min(...able.map(({ position }) => position));
    const group = able.filter(({ position }) => position === offset);
    if (group.length > 0) this.#send(group, offset, this.#nextBytes(offset));
    return group.length > 0;
  }

  #nextBytes(offset: number): number {
    return Math.min(PART_BYTES, this.#available - offset);
  }

  #mayHave({ acked, isAccepted, isLastSent, limit, position, window }: Recipient): boolean {
    const bytes = this.#nextBytes(position);
    if (!isAccepted || isLastSent || (bytes === 0 && !this.#isEnded)) return false;
    return position + bytes <= limit && (position === acked || position + bytes <= acked + window * PART_BYTES);
  }

  /** @param bytes none: a last part, or a question for the credit */
  #send(group: readonly Recipient[], offset: number, bytes: number, isQuestion = false): void {
    const nowMs = this.context.now();
    const end = offset + bytes;
    const isLast = this.#isEnded && end === this.#available && !isQuestion;
    for (const one of group) {
      one.position = end;
      one.furthest = Math.max(one.furthest, end);
      one.isLastSent = isLast;
      one.triedAtMs = nowMs;
      // Of a part that was sent twice, nobody knows which one was confirmed.
      if (bytes > 0) one.sentAtMs.set(end, one.sentAtMs.has(end) ? NaN : nowMs);
    }
    this.#sending += 1;
    const to = group.map(({ id }) => id);
    const part = { to, offset, ...(isLast ? { last: true } : {}) };
    this.context
      .part(part, this.#bytes.subarray(offset, end))
      .then(
        () => (this.#refusals = 0),
        (error: unknown) => this.#refused(group, offset, asCallplaneError(error)),
      )
      .finally(() => {
        this.#sending -= 1;
        this.#wake();
      });
  }

  #refused(group: readonly Recipient[], offset: number, error: CallplaneError): void {
    if (hasCode(error, 'not_found')) {
      const gone = group.filter(({ id }) => error.details.some(({ message }) => message.startsWith(`${id} `)));
      for (const { id } of gone) this.lose(id, recipientGone(), true);
    } else if (!hasCode(error, 'rate_limited', 'unavailable', 'no_answer', 'connection_lost')) {
      this.fail(error);
      return;
    }
    const nowMs = this.context.now();
    for (const one of group) {
      this.#rewind(one, Math.min(one.position, Math.max(offset, one.acked)));
      // The connection of this side was the silent one.
      one.heardAtMs = nowMs;
    }
    this.#pausedUntilMs = nowMs + backoffMs(this.#refusals, this.context.random());
    this.#refusals += 1;
  }

  #rewind(recipient: Recipient, position: number): void {
    recipient.position = position;
    recipient.isLastSent = false;
  }

  #offer(to: string[]): void {
    this.context.open(to).catch((error: unknown) => {
      if (!hasCode(error, 'not_found')) this.fail(asCallplaneError(error));
      else if (to.length === 1) this.lose(to[0] as string, recipientGone(), true);
      // Somebody is absent. Each of the others gets an offer of its own.
      else for (const id of to) this.#offer([id]);
    });
  }

  /** Waits until something has changed, or for the next deadline of a recipient. */
  async #untilNext(): Promise<void> {
    const nowMs = this.context.now();
    const deadlines = [...this.#open.values()].map((one) => this.#deadlineOf(one));
    if (this.#pausedUntilMs > nowMs) deadlines.push(this.#pausedUntilMs);
    const waiting = pause(Math.max(0, Math.min(...deadlines) - nowMs));
    this.#wake = waiting.end;
    await waiting.over;
    for (const one of this.#open.values()) if (this.#deadlineOf(one) <= this.context.now()) this.#late(one);
  }

  #deadlineOf({ heardAtMs, isAccepted, repeatMs, triedAtMs }: Recipient): number {
    return Math.min(triedAtMs + repeatMs, heardAtMs + (isAccepted ? SILENCE_MS : ACCEPT_MS));
  }

  /** A part, a credit or the offer may be lost. */
  #late(recipient: Recipient): void {
    const { acked, heardAtMs, id, isAccepted } = recipient;
    const nowMs = this.context.now();
    if (nowMs >= heardAtMs + (isAccepted ? SILENCE_MS : ACCEPT_MS)) {
      const why = `The participant did not ${isAccepted ? 'confirm' : 'accept'} the stream in time.`;
      this.lose(id, new CallplaneError('recipient_timeout', why));
      return;
    }
    recipient.triedAtMs = nowMs;
    recipient.repeatMs = Math.min(REPEAT_MS_MAX, 2 * recipient.repeatMs);
    if (!isAccepted) {
      this.#offer([id]);
      return;
    }
    if (recipient.position > acked) recipient.window = Math.max(1, Math.floor(recipient.window / 2));
    this.#rewind(recipient, acked);
    if (!this.#mayHave(recipient)) this.#send([recipient], acked, 0, true);
  }
}

const TEXTS: { [T in NonNullable<CreditMessage['failure']>]: string } = {
  no_handler: 'The participant has no handler for this method.',
  handler_failed: 'The handler of the participant has failed.',
  stream_cancelled: 'The participant wants no more of the stream.',
  stream_unknown: 'The page of the participant does not have the stream any more.',
  stream_invalid: 'The participant has received other bytes than it was told of.',
  too_many_streams: 'The participant receives too many streams.',
  undecryptable: 'The participant cannot decrypt the stream.',
};

export function recipientGone(): CallplaneError {
  return new CallplaneError('recipient_gone', 'The participant is not in the room, or has left it.');
}

export function tooLarge(bytes: number): CallplaneError {
  return new CallplaneError('payload_too_large', `A stream has at most ${STREAM_BYTES_MAX} bytes, not ${bytes}.`);
}
