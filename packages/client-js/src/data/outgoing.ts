import { abortedError, asCallplaneError, CallplaneError, hasCode } from '../errors.js';
import type { CreditMessage, PartRequest } from '../protocol.generated.js';
import { backoffMs, pause } from '../wait.js';
import { PART_BYTES, Recipient } from './recipient.js';
import { Source } from './source.js';
import { recipientGone, type StreamOptions, type StreamResult } from './stream-options.js';

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

/** A stream to others. Each recipient has a position and credit of its own, so that a slow one delays no other. */
export class Outgoing {
  readonly #open = new Map<string, Recipient>();
  readonly #failed = new Map<string, CallplaneError>();
  readonly #delivered: string[] = [];
  readonly #source: Source;
  #failure: CallplaneError | undefined;
  #sending = 0;
  #refusals = 0;
  #pausedUntilMs = 0;
  #progress = -1;
  #wake = (): void => undefined;

  constructor(
    to: readonly string[],
    reader: ReadableStreamDefaultReader<Uint8Array | string>,
    private readonly options: StreamOptions,
    private readonly context: OutgoingContext,
  ) {
    this.#source = new Source(reader, options.size, { read: () => this.#wake(), failure: (error) => this.fail(error) });
    for (const id of to) this.#open.set(id, new Recipient(id, context.now()));
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
        this.#source.readAhead(Math.max(...[...this.#open.values()].map(({ furthest }) => furthest)));
        if (!this.#sendNext()) await this.#untilNext();
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#source.cancel(this.#failure);
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
    recipient.heard(received, limit, this.context.now());
    if (done === true && this.#source.isEnded && recipient.acked === this.#source.available) {
      this.#open.delete(from);
      this.#delivered.push(from);
    }
    this.#changed();
  }

  #changed(): void {
    const { onProgress, size } = this.options;
    const bytes = Math.min(...[...this.#open.values()].map(({ acked }) => acked), this.#source.available);
    const isWanted = this.#open.size > 0 || (this.#delivered.length > 0 && this.#failure === undefined);
    if (onProgress !== undefined && bytes > this.#progress && isWanted) {
      this.#progress = bytes;
      // Its errors are the page's.
      queueMicrotask(() => onProgress({ bytes, size }));
    }
    this.#wake();
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
    return Math.min(PART_BYTES, this.#source.available - offset);
  }

  #mayHave(recipient: Recipient): boolean {
    const bytes = this.#nextBytes(recipient.position);
    return (bytes > 0 || this.#source.isEnded) && recipient.mayHave(bytes);
  }

  /** @param bytes none: a last part, or a question for the credit */
  #send(group: readonly Recipient[], offset: number, bytes: number, isQuestion = false): void {
    const end = offset + bytes;
    const isLast = this.#source.isEnded && end === this.#source.available && !isQuestion;
    for (const one of group) one.sent(end, isLast, this.context.now());
    this.#sending += 1;
    const to = group.map(({ id }) => id);
    const part = { to, offset, ...(isLast ? { last: true } : {}) };
    this.context
      .part(part, this.#source.subarray(offset, end))
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
      one.rewind(Math.min(one.position, Math.max(offset, one.acked)));
      // The connection of this side was the silent one.
      one.heardAtMs = nowMs;
    }
    this.#pausedUntilMs = nowMs + backoffMs(this.#refusals, this.context.random());
    this.#refusals += 1;
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
    const deadlines = [...this.#open.values()].map(({ deadlineMs }) => deadlineMs);
    if (this.#pausedUntilMs > nowMs) deadlines.push(this.#pausedUntilMs);
    const waiting = pause(Math.max(0, Math.min(...deadlines) - nowMs));
    this.#wake = waiting.end;
    await waiting.over;
    for (const one of this.#open.values()) if (one.deadlineMs <= this.context.now()) this.#late(one);
  }

  #late(recipient: Recipient): void {
    const { acked, id, isAccepted } = recipient;
    const nowMs = this.context.now();
    if (recipient.isSilent(nowMs)) {
      const why = `The participant did not ${isAccepted ? 'confirm' : 'accept'} the stream in time.`;
      this.lose(id, new CallplaneError('recipient_timeout', why));
      return;
    }
    recipient.late(nowMs);
    if (!isAccepted) this.#offer([id]);
    else if (!this.#mayHave(recipient)) this.#send([recipient], acked, 0, true);
  }
}

const TEXTS: { [T in NonNullable<CreditMessage['failure']>]: string } = {
  no_handler: 'The participant has no handler for this method.',
  handler_failed: 'The handler of the participant has failed.',
  stream_cancelled: 'The participant wants no more of the stream.',
  stream_unread: 'The page of the participant reads nothing of the stream.',
  stream_unknown: 'The page of the participant does not have the stream any more.',
  stream_invalid: 'The participant has received other bytes than it was told of.',
  too_many_streams: 'The participant receives too many streams.',
  undecryptable: 'The participant cannot decrypt the stream.',
};
