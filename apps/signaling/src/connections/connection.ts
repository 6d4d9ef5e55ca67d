import {
  CLOSE_REASONS,
  PROTOCOL_LIMITS,
  type ClientMessage,
  type CloseReason,
  type ServerMessage,
} from '@callplane/protocol';
import { WebSocket, type RawData } from 'ws';
import { readMessage, type Detail } from './read-message.js';
import { TokenBucket, type BucketSettings } from './token-bucket.js';

export interface ConnectionSettings {
  /** Every message counts. */
  general: BucketSettings;
  messages: BucketSettings;
  metadata: BucketSettings;
  pingIntervalMs: number;
}

/** How a connection came to its end: a reason of the protocol, or what nobody could be told any more. */
export type Ending = CloseReason | 'lost' | 'moved';

export interface ConnectionHandler {
  /** Handles one message; the next one waits for it. Whatever it throws is answered here. */
  onMessage(connection: Connection, message: ClientMessage): Promise<void>;
  /** An error of a handler, told to the client. Returns what to answer, or closes the connection and returns null. */
  onError(connection: Connection, message: ClientMessage, error: unknown): ServerMessage | null;
  /** Once, as soon as the end is known; the socket may still be closing. */
  onEnd(connection: Connection, ending: Ending): void;
}

/** What waits to be sent, in bytes, before a reader counts as too slow. */
const BUFFERED_BYTES_MAX = 1024 * 1024;
/** What waits to be handled. */
const QUEUED_MESSAGES_MAX = 256;
const QUEUED_CHARS_MAX = 1024 * 1024;
/** How long the first message may take, in milliseconds. */
const FIRST_MESSAGE_WITHIN_MS = 10_000;
/** How long a close handshake may take, in milliseconds. */
const CLOSE_WITHIN_MS = 2000;
const SILENT_INTERVALS_MAX = 2.5;
/** A wrong message costs more to judge than a right one: it counts as so many. */
const TOKENS_OF_WRONG = 10;

/** One WebSocket: reads messages in order and bounded, sends bounded, and says why it ends. */
export class Connection {
  readonly id: string;
  /** Stands in the log line of its end; whoever learns something about the connection adds it. */
  readonly logFields: Record<string, unknown> = {};
  readonly openedAtMs = performance.now();
  readonly messagesBucket: TokenBucket;
  readonly metadataBucket: TokenBucket;
  messagesIn = 0;
  messagesOut = 0;
  bytesIn = 0;
  bytesOut = 0;
  #ending: Ending | null = null;
  #introduced = false;
  #heardAtMs = performance.now();
  #pingedAtMs = performance.now();
  #queuedChars = 0;
  #bulkBytes = 0;
  #handling = false;
  readonly #queue: { message: ClientMessage; chars: number }[] = [];
  readonly #general: TokenBucket;
  readonly #socket: WebSocket;
  readonly #settings: ConnectionSettings;
  readonly #handler: ConnectionHandler;
  #closeTimer: NodeJS.Timeout | undefined;

  constructor(id: string, socket: WebSocket, settings: ConnectionSettings, handler: ConnectionHandler) {
    this.id = id;
    this.#socket = socket;
    this.#settings = settings;
    this.#handler = handler;
    const nowMs = performance.now();
    this.#general = new TokenBucket(settings.general, nowMs);
    this.messagesBucket = new TokenBucket(settings.messages, nowMs);
    this.metadataBucket = new TokenBucket(settings.metadata, nowMs);
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    socket.on('pong', () => {
      this.#heardAtMs = performance.now();
    });
    socket.on('ping', () => {
      this.#heardAtMs = performance.now();
      // Each is answered with a pong; a flood of them is a flood.
      if (!this.#general.take(this.#heardAtMs)) this.close('rate_limited');
    });
    // What ws itself refuses (a broken frame, one beyond its hard limit) it closes itself; 'close' follows.
    socket.on('error', (error) => {
      this.logFields['socketError'] = (error as NodeJS.ErrnoException).code ?? error.message;
    });
    socket.on('close', (code) => {
      clearTimeout(this.#closeTimer);
      this.logFields['code'] = code;
      this.#end('lost');
    });
  }

  get isOpen(): boolean {
    return this.#ending === null;
  }

  send(message: ServerMessage): void {
    this.sendText(JSON.stringify(message));
  }

  /** The welcome to a large room may be larger than what may wait: it does not count until it has gone out. */
  sendBulk(message: ServerMessage): void {
    if (this.#ending !== null || this.#socket.readyState !== WebSocket.OPEN) return;
    const text = JSON.stringify(message);
    const bytes = Buffer.byteLength(text);
    this.#bulkBytes += bytes;
    this.#write(text, () => {
      this.#bulkBytes -= bytes;
    });
  }

  /** A message that was serialised already, for many. */
  sendText(text: string): void {
    if (this.#ending !== null || this.#socket.readyState !== WebSocket.OPEN) return;
    this.#write(text);
    if (this.#socket.bufferedAmount > BUFFERED_BYTES_MAX + this.#bulkBytes) this.close('slow_consumer');
  }

  /** Tells the reason and closes. Idempotent: the first reason stands. */
  close(reason: CloseReason): void {
    if (this.#ending !== null) return;
    const { code, message, reconnect } = CLOSE_REASONS[reason];
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.#write(JSON.stringify({ type: 'closing', reason, message, reconnect } satisfies ServerMessage));
      this.#socket.close(code, reason);
    }
    // A reader that is too slow or gone would hold what is buffered for as long as ws waits.
    this.#closeTimer = setTimeout(() => this.#socket.terminate(), CLOSE_WITHIN_MS);
    this.#end(reason);
  }

  /** Ends it without a word: its session goes on elsewhere. */
  drop(): void {
    if (this.#ending !== null) return;
    this.#end('moved');
    this.#socket.terminate();
  }

  /** Resolves when the socket is closed. */
  closed(): Promise<void> {
    if (this.#socket.readyState === WebSocket.CLOSED) return Promise.resolve();
    return new Promise((resolve) => this.#socket.once('close', () => resolve()));
  }

  /** Called every second: closes what is silent, pings what is open. */
  check(nowMs: number): void {
    if (this.#ending !== null) return;
    if (!this.#introduced) {
      if (nowMs - this.openedAtMs > FIRST_MESSAGE_WITHIN_MS) this.close('timeout');
      return;
    }
    const { pingIntervalMs } = this.#settings;
    if (nowMs - this.#heardAtMs > pingIntervalMs * SILENT_INTERVALS_MAX) {
      this.close('timeout');
      return;
    }
    if (nowMs - this.#pingedAtMs < pingIntervalMs) return;
    this.#pingedAtMs = nowMs;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  /** @param done it has gone out, or never will: 'close' follows a write that fails. */
  #write(text: string, done: () => void = () => undefined): void {
    this.messagesOut += 1;
    this.bytesOut += text.length;
    this.#socket.send(text, done);
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#ending !== null) return;
    this.#heardAtMs = performance.now();
    const bytes = byteLength(data);
    this.messagesIn += 1;
    this.bytesIn += bytes;
    if (!this.#general.take(this.#heardAtMs)) {
      this.close('rate_limited');
      return;
    }
    if (bytes > PROTOCOL_LIMITS.frameBytesMax) {
      this.close('message_too_large');
      return;
    }
    if (isBinary) {
      this.close('protocol_error');
      return;
    }
    const text = toText(data);
    const read = readMessage(text);
    if (!read.ok) {
      if (read.protocolError !== null) {
        this.close('protocol_error');
        return;
      }
      this.#refuse(read.id, read.details);
      return;
    }
    if (!this.#introduced) {
      if (read.message.type !== 'join' && read.message.type !== 'resume') {
        this.close('protocol_error');
        return;
      }
      // One attempt: whatever becomes of it, the next message is not a first one.
      this.#introduced = true;
    }
    if (this.#queue.length >= QUEUED_MESSAGES_MAX || this.#queuedChars + text.length > QUEUED_CHARS_MAX) {
      this.close('rate_limited');
      return;
    }
    this.#queuedChars += text.length;
    this.#queue.push({ message: read.message, chars: text.length });
    if (!this.#handling) void this.#handle();
  }

  #refuse(id: string | undefined, details: Detail[]): void {
    for (let taken = 1; taken < TOKENS_OF_WRONG; taken++) this.#general.take(this.#heardAtMs);
    this.send({
      type: 'error',
      ...(id === undefined ? {} : { replyTo: id }),
      code: 'invalid_message',
      message: 'The message does not match its schema.',
      details,
    });
    if (!this.#introduced) this.close('protocol_error');
  }

  /** One message after another; the connection may end at any of them. Never rejects. */
  async #handle(): Promise<void> {
    this.#handling = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#queuedChars -= next.chars;
      if (this.#ending !== null) break;
      try {
        await this.#handler.onMessage(this, next.message);
      } catch (error) {
        const answer = this.#handler.onError(this, next.message, error);
        if (answer !== null) this.send(answer);
      }
    }
    this.#queue.length = 0;
    this.#queuedChars = 0;
    this.#handling = false;
  }

  #end(ending: Ending): void {
    if (this.#ending !== null) return;
    this.#ending = ending;
    this.#handler.onEnd(this, ending);
  }
}

function byteLength(data: RawData): number {
  return Array.isArray(data) ? data.reduce((sum, part) => sum + part.length, 0) : data.byteLength;
}

function toText(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString();
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString();
}
