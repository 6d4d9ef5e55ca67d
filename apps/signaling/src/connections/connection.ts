import type { Duplex } from 'node:stream';
import { addressKey, bucketTimes, TokenBucket, type BucketSettings } from '@callplane/core';
import { CLOSE_REASONS, type ClientMessage, type CloseReason, type ServerMessage } from '@callplane/protocol';
import { WebSocket, type RawData } from 'ws';
import type { Ending } from '../metrics.js';
import { FrameReader, type InvalidMessage } from './frames.js';
import { Inbox } from './inbox.js';
import { Outbox } from './outbox.js';
import { errorMessage } from './request-failure.js';

export interface CloseDetails {
  /** For the log: why the gateway chose this reason. */
  cause: string;
  retryAfterSeconds?: number;
}

export interface ConnectionSettings {
  /** Every message and every ping takes a token. */
  general: BucketSettings;
  messages: BucketSettings;
  metadata: BucketSettings;
  pingIntervalMs: number;
}

export interface ConnectionHandler {
  /** Handles one valid message. The next message waits for it. Must neither throw nor reject. */
  onMessage(connection: Connection, message: ClientMessage): void | Promise<void>;
  /** Called when a message does not match its schema. The client has its answer already. */
  onInvalid(connection: Connection, invalid: InvalidMessage): void;
  /** Called once, as soon as the end is known. The socket may still be closing. */
  onEnd(connection: Connection, ending: Ending): void;
}

const FIRST_MESSAGE_WITHIN_MS = 10_000;
/** How long a close handshake may take before the socket is terminated, in milliseconds. */
const CLOSE_WITHIN_MS = 2000;
const SILENT_INTERVALS_MAX = 2.5;

/** One WebSocket. Handles messages in order, bounds the messages that wait on both sides, and reports why it ends. */
export class Connection {
  readonly id: string;
  /** Fields for the log line at the connection's end. Handlers add facts about the connection. */
  readonly logFields: Record<string, unknown> = {};
  refusalsLogged = 0;
  readonly openedAtMs = performance.now();
  /** Key of the client's address for the limit of failed arrivals. */
  readonly addressKey: string;
  readonly messagesBucket: TokenBucket;
  readonly metadataBucket: TokenBucket;
  /** Whether the client has asked to leave. The request may still wait behind others. */
  isLeaving = false;
  /** Whether the first valid message was received, which must be a join or resumption. */
  isIntroduced = false;
  /** How the connection ended; null while it is open. */
  ending: Ending | null = null;
  #receivedAtMs = performance.now();
  #pingedAtMs = performance.now();
  #closeTimer: NodeJS.Timeout | undefined;
  readonly #frames: FrameReader;
  readonly #inbox: Inbox<ClientMessage>;
  readonly #outbox: Outbox;
  readonly #webSocket: WebSocket;
  readonly #settings: ConnectionSettings;
  readonly #handler: ConnectionHandler;

  constructor(
    { id, address }: { id: string; address: string | undefined },
    { webSocket, socket }: { webSocket: WebSocket; socket: Duplex },
    settings: ConnectionSettings,
    handler: ConnectionHandler,
  ) {
    this.id = id;
    this.logFields['ip'] = address;
    this.addressKey = addressKey(address);
    this.#webSocket = webSocket;
    this.#settings = settings;
    this.#handler = handler;
    this.messagesBucket = new TokenBucket(bucketTimes(settings.messages));
    this.metadataBucket = new TokenBucket(bucketTimes(settings.metadata));
    this.#frames = new FrameReader(settings.general);
    this.#inbox = new Inbox(
      (message) => handler.onMessage(this, message),
      () => this.close('rate_limited', { cause: 'Most messages wait here, and too many of all connections do.' }),
    );
    this.#outbox = new Outbox(webSocket, socket, () => this.#cut());
    this.#listen();
  }

  get isOpen(): boolean {
    return this.ending === null;
  }

  get traffic(): { messagesIn: number; messagesOut: number; bytesIn: number; bytesOut: number } {
    return {
      messagesIn: this.#frames.frames,
      messagesOut: this.#outbox.framesSent,
      bytesIn: this.#frames.bytes,
      bytesOut: this.#outbox.bytesSent,
    };
  }

  send(message: ServerMessage): void {
    this.sendText(JSON.stringify(message));
  }

  /** Sends a message that is already serialised, perhaps for several clients. */
  sendText(text: string): void {
    if (!this.#canSend) return;
    this.#outbox.send(text);
    this.#closeIfOverfull();
  }

  /** Sends the first message of a session at once. Messages to other connections leave at the end of the tick. */
  sendWelcome(text: string): void {
    if (this.#canSend) this.#outbox.sendNow(text);
  }

  /** Sends the reason and closes. Idempotent: the first reason counts. */
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

  /** Terminates the socket without a close message, because the session continues with another connection. */
  drop(): void {
    if (!this.isOpen) return;
    this.#end('moved');
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
    const { pingIntervalMs } = this.#settings;
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
    this.logFields['cause'] ??= `${this.#outbox.unsentBytes} bytes are unsent, and too many of all connections.`;
    this.#webSocket.terminate();
    this.#end('slow_consumer');
  }

  #listen(): void {
    const webSocket = this.#webSocket;
    webSocket.on('message', (data, isBinary) => this.#receive(data, isBinary));
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

  #receive(data: RawData, isBinary: boolean): void {
    if (!this.isOpen) return;
    this.#receivedAtMs = performance.now();
    const isFirst = !this.isIntroduced;
    const frame = this.#frames.read(data, isBinary, isFirst);
    if (frame.is === 'violation') {
      this.close(frame.reason, { cause: frame.cause });
      return;
    }
    if (frame.is === 'invalid') {
      this.send(errorMessage(frame.id, 'invalid_message', 'The message does not match its schema.', frame.details));
      this.#handler.onInvalid(this, frame);
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
    this.#handler.onEnd(this, ending);
  }
}
