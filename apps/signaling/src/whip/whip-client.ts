import { addressKey } from '@callplane/core';
import type { ClientMessages, CloseReason, ServerMessages } from '@callplane/protocol';
import type { Client, ClientHandler, CloseDetails, Ending } from '../clients/client.js';

interface Closing {
  type: 'closing';
  reason: Ending;
  retryAfterSeconds?: number | undefined;
}

/** The answer of the gateway to a message of an encoder. */
export type WhipAnswer = Closing | ServerMessages['welcome' | 'published' | 'iceServers' | 'error'];

type Asked = ClientMessages['join' | 'resume' | 'publish' | 'test'];

/**
 * An encoder, as the gateway sees it: a client that sends messages only while one of its HTTP requests is handled.
 * Messages of the gateway in between are for clients that show a room, except the loss of the peer connection.
 */
export class WhipClient implements Client {
  readonly isHeadless = true;
  readonly isLeaving = false;
  readonly pauseMs = 0;
  readonly openedAtMs = performance.now();
  readonly logFields: Record<string, unknown> = { transport: 'whip' };
  readonly addressKey: string;
  ending: Ending | null = null;
  #waiting: { id: string; resolve: (answer: WhipAnswer) => void } | null = null;
  #asked = 0;

  constructor(
    readonly id: string,
    address: string | undefined,
    /** Undefined if this gateway continues the session unasked. */
    readonly resumeSecret: string | undefined,
    private readonly handler: ClientHandler,
  ) {
    this.logFields['ip'] = address;
    this.addressKey = addressKey(address);
  }

  /** Sends the gateway a message. Resolves with its answer, or with the end of the client. Await it before the next. */
  async ask(message: Asked): Promise<WhipAnswer> {
    if (this.ending !== null) return { type: 'closing', reason: this.ending };
    this.#asked += 1;
    const id = `whip-${this.#asked}`;
    const answered = new Promise<WhipAnswer>((resolve) => {
      this.#waiting = { id, resolve };
    });
    await this.handler.onMessage(this, { ...message, id });
    return answered;
  }

  /** Ends the session as a client that leaves. */
  async leave(): Promise<void> {
    if (this.ending === null) await this.handler.onMessage(this, { type: 'leave' });
  }

  /** An encoder takes no streams. */
  sendPart(): boolean {
    return true;
  }

  sendWelcome(text: string): void {
    this.#answer(JSON.parse(text) as WhipAnswer);
  }

  sendText(text: string): void {
    if (text.startsWith('{"type":"mediaReset"') || text.startsWith('{"type":"mediaState","state":"down"')) {
      this.close('media_unavailable', { cause: 'The media server has ended the peer connection.' });
    } else if (this.#waiting !== null && text.includes(`"replyTo":"${this.#waiting.id}"`)) {
      this.#answer(JSON.parse(text) as WhipAnswer);
    }
  }

  close(reason: CloseReason, { cause, retryAfterSeconds }: CloseDetails): void {
    if (this.ending === null) this.logFields['cause'] = cause;
    this.#end(reason, retryAfterSeconds);
  }

  drop(): void {
    this.#end('elsewhere');
  }

  #end(reason: Ending, retryAfterSeconds?: number): void {
    if (this.ending !== null) return;
    this.ending = reason;
    this.#answer({ type: 'closing', reason, retryAfterSeconds });
    this.handler.onEnd(this, reason);
  }

  #answer(answer: WhipAnswer): void {
    this.#waiting?.resolve(answer);
    this.#waiting = null;
  }
}
