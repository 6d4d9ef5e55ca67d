import { randomBytes } from 'node:crypto';
import { ASK_WAITS_MAX, ASK_WAITS_PER_ENVIRONMENT_MAX, MESSAGE_BYTES_MAX, rateLimited } from '@callplane/core';
import { parsePayload, payloadReader, receiveReplies, type NoticeListener, type RoomMessage } from '@callplane/queue';
import { KeyedBound } from '@callplane/runtime';
import { Type, type Static } from 'typebox';

const REPLY = 'a reply of a participant';
const Reply = Type.Object({
  type: Type.Literal('reply'),
  from: Type.String(),
  askId: Type.String(),
  payload: Type.Unknown(),
  failure: Type.Optional(
    Type.Union([Type.Literal('no_handler'), Type.Literal('handler_failed'), Type.Literal('response_too_large')]),
  ),
});
export type Reply = Static<typeof Reply>;
const readReply = payloadReader(REPLY, Reply);

interface Waiting {
  participantId: string;
  settle(reply: Reply | null): void;
}

/** The requests to participants that wait at this process. Gateways publish the replies to its channel. */
export class Asks {
  readonly #inbox = `api_${randomBytes(12).toString('hex')}`;
  readonly #entered = new KeyedBound({ max: ASK_WAITS_MAX, perKeyMax: ASK_WAITS_PER_ENVIRONMENT_MAX });
  /** By ask, whose id nobody but the participant learns. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #listener: Pick<NoticeListener, 'isListening'>;

  constructor(listener: Pick<NoticeListener, 'isListening' | 'subscribe'>) {
    this.#listener = listener;
    receiveReplies(listener, this.#inbox, (message) => this.#receive(message));
  }

  /** Requests that wait. */
  get count(): number {
    return this.#entered.total;
  }

  /** Whether a reply would arrive. */
  get isListening(): boolean {
    return this.#listener.isListening;
  }

  /**
   * Sends a request, and waits for its reply.
   * @param send gets the id of the ask. Its rejection is the one of this function.
   * @param signal ends the wait
   * @returns null when the time is over, the wait has ended or the process drains
   * @throws PublicError RATE_LIMITED if too many requests wait
   */
  async ask(
    { environmentId, participantId, timeoutMs }: { environmentId: string; participantId: string; timeoutMs: number },
    send: (askId: string) => Promise<void>,
    signal: AbortSignal,
  ): Promise<Reply | null> {
    const leave = this.#entered.take(environmentId);
    if (leave === null) throw rateLimited('Too many requests wait for participants. See Retry-After.');
    const askId = `${this.#inbox}-${randomBytes(16).toString('base64url')}`;
    let timer: NodeJS.Timeout | undefined;
    try {
      const replied = new Promise<Reply | null>((settle) => {
        this.#waiting.set(askId, { participantId, settle });
        timer = setTimeout(() => settle(null), timeoutMs);
        signal.addEventListener('abort', () => settle(null));
      });
      await send(askId);
      return await replied;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(askId);
      leave();
    }
  }

  /** Ends all waits. */
  close(): Promise<void> {
    for (const { settle } of this.#waiting.values()) settle(null);
    return Promise.resolve();
  }

  /** @throws InvalidPayloadError */
  #receive({ from, text }: RoomMessage): void {
    const reply = readReply(parsePayload(REPLY, text));
    const waiting = this.#waiting.get(reply.askId);
    // The gateway names the sender, and nobody else has been asked.
    if (waiting?.participantId !== from || Buffer.byteLength(JSON.stringify(reply.payload)) > MESSAGE_BYTES_MAX) return;
    waiting.settle(reply);
  }
}
