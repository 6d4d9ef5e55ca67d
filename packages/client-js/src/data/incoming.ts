import { asCallplaneError, CallplaneError } from '../errors.js';
import type { CreditRequest, PartMessage } from '../protocol.generated.js';
import type { Participant } from '../remote/participant.js';
import { Serial } from '../wait.js';
import { STREAM_BYTES_MAX, type StreamProgress } from './stream-options.js';

/** The sender's description of a stream. */
export interface StreamInfo {
  readonly method: string;
  /** Participant id of the sender. */
  readonly from: string;
  /** Undefined if the sender is not shown. */
  readonly participant: Participant | undefined;
  readonly name: string | undefined;
  readonly contentType: string | undefined;
  /** In bytes; undefined if the sender does not know it. */
  readonly size: number | undefined;
  readonly attributes: Readonly<Record<string, string>>;
}

/** A stream that another participant sends. */
export interface IncomingStream extends StreamInfo {
  /**
   * The bytes as they arrive. At most 256 KiB wait here for the page; the sender waits then.
   * It fails with `stream_aborted`, `stream_unread`, `sender_gone`, `stream_invalid`, `undecryptable`, or the reason of the
   * end of the call.
   */
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  onProgress: ((progress: StreamProgress) => void) | undefined;
  /** Refuses the rest, also of a stream that is being read. */
  cancel(): void;
  /** Reads all of it. */
  blob(): Promise<Blob>;
  text(): Promise<string>;
}

/** Handles a stream. If it throws, the sender gets `handler_failed`. */
export type StreamHandler = (stream: IncomingStream) => void | Promise<void>;

type Credit = Omit<CreditRequest, 'type' | 'to' | 'streamId'>;

export interface IncomingContext {
  now: () => number;
  /** Resolves once the gateway wants another message. */
  credit: (credit: Credit) => Promise<unknown>;
  /** Decrypts a part. */
  open: (data: string, part: PartMessage) => Promise<Uint8Array<ArrayBuffer>>;
  /** The stream is over. @param last what its sender is to hear if it asks again */
  onOver: (last: Credit) => void;
}

/** Bytes that may wait for the page. */
const WAITING_BYTES_MAX = 256 * 1024;
/** How long a sender may be silent. It asks for a credit, or repeats a part, at least every 20 s. */
const SILENCE_MS = 60_000;
/** How long bytes may wait while the page reads none: a user may be asked first. */
const UNREAD_MS = 300_000;
/** Credits of one stream have this distance. */
const CREDIT_EVERY_MS = 50;

type Failure = NonNullable<Credit['failure']>;

export class Incoming {
  readonly stream: IncomingStream;
  #received = 0;
  /** Bytes that the page has read, and when they became more. */
  #read = -1;
  #readAtMs = 0;
  #limit = WAITING_BYTES_MAX;
  #isOver = false;
  #controller!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  readonly #opening = new Serial();
  #silence: ReturnType<typeof setTimeout> | undefined;
  #isCreditDue = false;
  #isCrediting = false;

  constructor(
    info: StreamInfo,
    private readonly context: IncomingContext,
  ) {
    const readable = new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        start: (controller) => void (this.#controller = controller),
        pull: () => this.#creditSoon(),
        cancel: () => this.#end('stream_cancelled'),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES_MAX }),
    );
    const blob = () => blobOf(readable, info.contentType);
    this.stream = {
      ...info,
      readable,
      onProgress: undefined,
      cancel: () => this.fail('stream_cancelled'),
      blob,
      text: async () => (await blob()).text(),
    };
    this.#heard();
  }

  async handle(handler: StreamHandler, onError: (error: CallplaneError) => void): Promise<void> {
    try {
      await handler(this.stream);
    } catch (error) {
      if (this.#isOver) return;
      this.fail('handler_failed');
      onError(asCallplaneError(error));
    }
  }

  receive(part: PartMessage): void {
    const { aborted, data, last } = part;
    if (this.#isOver) return;
    this.#heard();
    if (aborted === true) this.end(new CallplaneError('stream_aborted', 'The sender has given the stream up.'));
    // Its sender asks at least every 20 s.
    else if (this.#isUnread()) this.fail('stream_unread');
    else if (data === '' && last !== true) this.#creditSoon();
    else void this.#opening.run(() => this.#take(part));
  }

  /** Ends the stream for a reason that its sender need not hear. */
  end(error: CallplaneError): void {
    if (this.#isOver) return;
    this.#controller.error(error);
    this.#end('stream_cancelled', false);
  }

  /** Ends the stream, and tells its sender why. */
  fail(failure: keyof typeof TEXTS): void {
    if (this.#isOver) return;
    this.#controller.error(new CallplaneError(failure, TEXTS[failure]));
    this.#end(failure);
  }

  #isUnread(): boolean {
    const nowMs = this.context.now();
    const waiting = WAITING_BYTES_MAX - (this.#controller.desiredSize ?? 0);
    const read = this.#received - waiting;
    if (read > this.#read || waiting === 0) [this.#read, this.#readAtMs] = [read, nowMs];
    return nowMs - this.#readAtMs >= UNREAD_MS;
  }

  /** Checked again after a wait. */
  #isEnded(): boolean {
    return this.#isOver;
  }

  async #take(part: PartMessage): Promise<void> {
    const { offset, data, last = false } = part;
    if (this.#isOver) return;
    // Another part was lost, or the credit for this one. The sender learns which bytes are missing.
    if (offset !== this.#received) {
      this.#creditSoon();
      return;
    }
    try {
      const bytes = await this.context.open(data, part);
      if (this.#isEnded()) return;
      const { size = STREAM_BYTES_MAX, onProgress } = this.stream;
      const received = offset + bytes.length;
      const isWrong = last && received !== (this.stream.size ?? received);
      if (received > Math.min(size, this.#limit) || isWrong) this.fail('stream_invalid');
      else {
        this.#received = received;
        if (bytes.length > 0) this.#controller.enqueue(bytes);
        const progress = { bytes: received, size: this.stream.size };
        if (onProgress !== undefined) queueMicrotask(() => onProgress(progress));
        if (last) {
          this.#controller.close();
          this.#end(undefined);
        } else this.#creditSoon();
      }
    } catch (error) {
      // An encrypted part that took too long. The sender encrypts it again.
      const isLate = (error as { reason?: unknown }).reason === 'replayed';
      if (!isLate) this.fail(error instanceof CallplaneError ? 'undecryptable' : 'stream_invalid');
    }
  }

  #heard(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(
      () => this.end(new CallplaneError('sender_gone', 'The sender of the stream is silent.')),
      SILENCE_MS,
    );
  }

  #end(failure: Failure | undefined, isTold = true): void {
    this.#isOver = true;
    clearTimeout(this.#silence);
    const last = { received: this.#received, limit: this.#limit, ...(failure ? { failure } : { done: true }) };
    if (isTold) this.context.credit(last).catch(() => undefined);
    this.context.onOver(last);
  }

  /** Confirms the bytes that have arrived, and makes room for more. One credit at a time is on its way. */
  #creditSoon(): void {
    if (this.#isOver) return;
    this.#isCreditDue = true;
    if (this.#isCrediting) return;
    this.#isCrediting = true;
    // The stream calls `pull` before its first credit.
    queueMicrotask(() => void this.#credit());
  }

  async #credit(): Promise<void> {
    while (this.#isCreditDue && !this.#isOver) {
      this.#isCreditDue = false;
      this.#limit = Math.max(this.#limit, this.#received + Math.max(0, this.#controller.desiredSize ?? 0));
      const paced = new Promise((resolve) => setTimeout(resolve, CREDIT_EVERY_MS));
      // A lost credit is asked for again.
      await this.context.credit({ received: this.#received, limit: this.#limit }).catch(() => undefined);
      await paced;
    }
    this.#isCrediting = false;
  }
}

const TEXTS = {
  handler_failed: 'The handler has failed.',
  stream_cancelled: 'The stream was refused.',
  stream_unread: 'Nothing has read the stream for 5 minutes.',
  stream_invalid: 'The stream has other bytes than its sender has said.',
  undecryptable: 'The stream cannot be decrypted.',
};

async function blobOf(readable: ReadableStream<Uint8Array<ArrayBuffer>>, type: string | undefined): Promise<Blob> {
  const reader = readable.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return new Blob(chunks, type === undefined ? {} : { type });
    chunks.push(value);
  }
}
