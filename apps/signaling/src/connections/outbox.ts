import type { Duplex } from 'node:stream';
import { SharedBound } from '@callplane/core';
import { WebSocket } from 'ws';
import { textFrames, type FrameText } from './text-frames.js';

/** Bytes that may wait to be sent before the client counts as a slow consumer. */
export const UNSENT_BYTES_MAX = 1024 * 1024;
/**
 * Bytes that may wait in all connections of this process before a client with more than its share of them counts as a
 * slow consumer. Otherwise a few hundred clients that read nothing would take the memory of all.
 */
export const UNSENT_BYTES_OF_ALL = 192 * 1024 * 1024;

export interface SendOptions {
  /** Raises the limit by the size of this frame until it has left. */
  exempt?: boolean;
  /** Called when the frame has left or its write has failed; the socket's event `close` follows a failure. */
  onSent?: () => void;
}

interface Frame extends FrameText, SendOptions {}

/**
 * The sending half of a connection. All frames of one event-loop tick leave in one write, past the sender of `ws`, which
 * makes two writes of each frame. Counts the bytes that have not left this process, each frame from `send` until the
 * callback of its write.
 */
export class Outbox {
  framesSent = 0;
  bytesSent = 0;
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  readonly #all: SharedBound;
  #unsentBytes = 0;
  #exemptBytes = 0;
  #isClosed = false;
  /** The frames of the current tick. */
  #frames: Frame[] = [];
  /** The outboxes with frames that wait for the end of the current event-loop tick. */
  static #waiting: Outbox[] = [];
  static readonly #ofProcess = new SharedBound(UNSENT_BYTES_OF_ALL);

  /**
   * @param socket the stream below the WebSocket, which compresses nothing
   * @param all the bound for all outboxes together
   */
  constructor(webSocket: WebSocket, socket: Duplex, all: SharedBound = Outbox.#ofProcess) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#all = all;
    socket.once('close', () => {
      this.#isClosed = true;
      all.change(this.#unsentBytes, 0);
    });
  }

  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /** Whether more bytes wait than a client may leave unread. */
  get isOverfull(): boolean {
    const bytes = this.#unsentBytes - this.#exemptBytes;
    if (bytes <= UNSENT_BYTES_MAX && this.#all.allows(bytes, 0)) return false;
    // The operating system may still take it all.
    this.#flush();
    return this.#socket.writableLength > 0;
  }

  /** Sends a text frame. */
  send(text: string, { exempt = false, onSent }: SendOptions = {}): void {
    const bytes = Buffer.byteLength(text);
    this.framesSent += 1;
    this.bytesSent += bytes;
    this.#count(bytes);
    if (exempt) this.#exemptBytes += bytes;
    this.#frames.push(onSent === undefined ? { text, bytes, exempt } : { text, bytes, exempt, onSent });
    if (this.#frames.length > 1) return;
    if (Outbox.#waiting.push(this) === 1) setImmediate(() => Outbox.#flushAll());
  }

  /** Sends a text frame at once, after those that wait. A closing handshake may follow. */
  sendNow(text: string): void {
    this.send(text);
    this.#flush();
  }

  #count(bytes: number): void {
    if (!this.#isClosed) this.#all.change(this.#unsentBytes, this.#unsentBytes + bytes);
    this.#unsentBytes += bytes;
  }

  #flush(): void {
    const frames = this.#frames;
    if (frames.length === 0) return;
    this.#frames = [];
    // No data may follow a close frame, for example after one of the client.
    if (this.#webSocket.readyState === WebSocket.OPEN) this.#socket.write(textFrames(frames), () => this.#left(frames));
    else this.#left(frames);
  }

  #left(frames: readonly Frame[]): void {
    for (const { bytes, exempt, onSent } of frames) {
      this.#count(-bytes);
      if (exempt === true) this.#exemptBytes -= bytes;
      onSent?.();
    }
  }

  static #flushAll(): void {
    const outboxes = Outbox.#waiting;
    Outbox.#waiting = [];
    for (const outbox of outboxes) outbox.#flush();
  }
}
