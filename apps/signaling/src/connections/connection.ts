import type { Duplex } from 'node:stream';
import { addressKey, type BucketSettings } from '@callplane/core';
import { CLOSE_REASONS, type ClientMessage, type CloseReason } from '@callplane/protocol';
import { WebSocket } from 'ws';
import type { Client, ClientHandler, CloseDetails, Ending } from '../clients/client.js';
import { FrameReader } from './frames.js';
import { Inbox } from './inbox.js';
import { Outbox } from './outbox.js';

export interface ConnectionSettings {
  /** Every message and every ping takes a token. */
  general: BucketSettings;
  pingIntervalMs: number;
}

const FIRST_MESSAGE_WITHIN_MS = 10_000;
/** How long a close handshake may take before the socket is terminated, in milliseconds. */
const CLOSE_WITHIN_MS = 2000;
/** Unsent bytes with which a client gets no parts of streams, so that other messages arrive soon. */
const UNSENT_BYTES_BEFORE_PART_MAX = 256 * 1024;
const SILENT_INTERVALS_MAX = 2.5;

/** A client over a WebSocket. Handles messages in order, bounds waiting ones on both sides, and reports why it ends. */
export class Connection implements Client {
  readonly id: string;
  readonly logFields: Record<string, unknown> = {};
  readonly openedAtMs = performance.now();
  readonly addressKey: string;
  isLeaving = false;
  /** Whether the first valid message was received, which must be a join or resumption. */
  isIntroduced = false;
  ending: Ending | null = null;
  #receivedAtMs = performance.now();
  #pingedAtMs = performance.now();
  #closeTimer: NodeJS.Timeout | undefined;
  readonly #frames: FrameReader;
  readonly #inbox: Inbox<ClientMessage>;
  readonly #outbox: Outbox;
  readonly #webSocket: WebSocket;

  constructor(
    { id, address }: { id: string; address: string | undefined },
    { webSocket, socket }: { webSocket: WebSocket; socket: Duplex },
    private readonly settings: ConnectionSettings,
    private readonly handler: ClientHandler,
  ) {
    this.id = id;
    this.logFields['ip'] = address;
    this.addressKey = addressKey(address);
    this.#webSocket = webSocket;
    this.#frames = new FrameReader(settings.general);
    this.#inbox = new Inbox(
      (message) => handler.onMessage(this, message),
      () => this.close('rate_limited', { cause: 'Too many messages wait, most of them from this connection.' }),
    );
    this.#outbox = new Outbox(webSocket, socket, () => this.#cut());
    this.#listen();
  }

  get isOpen(): boolean {
    return this.ending === null;
  }

  get pauseMs(): number {
    return this.#frames.pauseMs;
  }

  get traffic(): { messagesIn: number; messagesOut: number; bytesIn: number; bytesOut: number } {
    return {
      messagesIn: this.#frames.frames,
      messagesOut: this.#outbox.framesSent,
      bytesIn: this.#frames.bytes,
      bytesOut: this.#outbox.bytesSent,
    };
  }

  sendText(text: string): void {
    if (!this.#canSend) return;
    this.#outbox.send(text);
    this.#closeIfOverfull();
  }

  sendPart(text: string): boolean {
    if (this.#outbox.unsentBytes > UNSENT_BYTES_BEFORE_PART_MAX) return false;
    this.sendText(text);
    return true;
  }

  /** Leaves at once. Messages of other connections leave at the end of the tick. */
  sendWelcome(text: string): void {
    if (this.#canSend) this.#outbox.sendNow(text);
  }

  close(reason: CloseReason, { cause, ...more }: CloseDetails): void {
    if (!this.isOpen) return;
    const { code, message, reconnect } = CLOSE_REASONS[reason];
    this.logFields['cause'] = cause;
    if (this.#canSend) {
      this.#outbox.sendNow(JSON.stringify({ type: 'closing', reason, message, reconnect, ...more }));
      this.#webSocket.close(code, reason);
    }
    // A slow or vanished client would otherwise hold the send buffer for as long as ws waits for the handshake.
    this.#closeTimer = setTimeout(() => this.#webSocket.terminate(), CLOSE_WITHIN_MS);
    this.#end(reason);
  }

  drop(): void {
    if (!this.isOpen) return;
    this.#end('elsewhere');
    this.#webSocket.terminate();
  }

  closed(): Promise<void> {
    if (this.#webSocket.readyState === WebSocket.CLOSED) return Promise.resolve();
    return new Promise((resolve) => this.#webSocket.once('close', () => resolve()));
  }

  /** Called every second. Closes the connection if it is silent or does not read, and pings it at each ping interval. */
  check(nowMs: number): void {
    if (!this.isOpen) return;
    this.#outbox.eachSecond();
    this.#closeIfOverfull();
    if (!this.isIntroduced) {
      if (nowMs - this.openedAtMs > FIRST_MESSAGE_WITHIN_MS) this.close('timeout', { cause: 'No first message.' });
      return;
    }
    const { pingIntervalMs } = this.settings;
    if (nowMs - this.#receivedAtMs > pingIntervalMs * SILENT_INTERVALS_MAX) {
      this.close('timeout', { cause: 'No pong and no message.' });
      return;
    }
    if (nowMs - this.#pingedAtMs < pingIntervalMs) return;
    if (this.#outbox.ping()) this.#pingedAtMs = nowMs;
  }

  get #canSend(): boolean {
    return this.isOpen && this.#webSocket.readyState === WebSocket.OPEN;
  }

  #closeIfOverfull(): void {
    if (!this.#outbox.isOverfull) return;
    const { stalledSeconds, unsentBytes } = this.#outbox;
    const cause = `${unsentBytes} bytes are unsent, and none has left for ${stalledSeconds} s.`;
    this.close('slow_consumer', { cause });
  }

  /** Frees the messages of the connection at once: a closing handshake would wait behind them. */
  #cut(): void {
    this.logFields['cause'] ??=
      `${this.#outbox.unsentBytes} bytes are unsent, and all connections together hold too many.`;
    this.#webSocket.terminate();
    this.#end('slow_consumer');
  }

  #listen(): void {
    const webSocket = this.#webSocket;
    webSocket.on('message', (data: Buffer, isBinary) => this.#receive(data, isBinary));
    webSocket.on('pong', () => {
      this.#receivedAtMs = performance.now();
    });
    webSocket.on('ping', (data) => {
      this.#receivedAtMs = performance.now();
      // Every ping gets an answer, so pings count against the rate limit like messages.
      if (!this.#frames.ping()) this.close('rate_limited', { cause: 'Too many pings.' });
      else this.#outbox.pong(data);
    });
    // ws closes the socket itself after a broken frame or one beyond its hard limit. The event 'close' follows.
    webSocket.on('error', (error) => {
      this.logFields['socketError'] = (error as NodeJS.ErrnoException).code ?? error.message;
    });
    webSocket.on('close', (code) => {
      clearTimeout(this.#closeTimer);
      this.logFields['code'] = code;
      this.#end('lost');
    });
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (!this.isOpen) return;
    this.#receivedAtMs = performance.now();
    const isFirst = !this.isIntroduced;
    const frame = this.#frames.read(data, isBinary, isFirst);
    if (frame.is === 'violation') {
      this.close(frame.reason, { cause: frame.cause });
      return;
    }
    if (frame.is === 'invalid') {
      this.handler.onInvalid(this, frame);
      if (isFirst) this.close('protocol_error', { cause: 'The first message does not match its schema.' });
      return;
    }
    this.isIntroduced = true;
    this.isLeaving ||= frame.message.type === 'leave';
    if (!this.#inbox.push(frame.message, frame.chars)) this.close('rate_limited', { cause: 'Too many messages wait.' });
  }

  #end(ending: Ending): void {
    if (!this.isOpen) return;
    this.ending = ending;
    this.#inbox.stop();
    this.handler.onEnd(this, ending);
  }
}
