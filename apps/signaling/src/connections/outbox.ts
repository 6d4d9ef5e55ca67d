import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/** Bytes that may wait to be sent before the client counts as a slow consumer. */
export const UNSENT_BYTES_MAX = 1024 * 1024;

export interface SendOptions {
  /** Raises the limit by the size of this frame until it has left. */
  exempt?: boolean;
  /** Called when the frame has left or its write has failed; the socket's event `close` follows a failure. */
  onSent?: () => void;
}

/**
 * The sending half of a connection. All frames of one event-loop tick leave in one write. Counts the bytes that have
 * not left this process, each frame from `send` until the callback of its write.
 */
export class Outbox {
  framesSent = 0;
  bytesSent = 0;
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  #unsentBytes = 0;
  #exemptBytes = 0;
  #isCorked = false;
  /** The outboxes whose frames wait for the end of the current event-loop tick. */
  static #corked: Outbox[] = [];

  /** @param socket the stream below the WebSocket */
  constructor(webSocket: WebSocket, socket: Duplex) {
    this.#webSocket = webSocket;
    this.#socket = socket;
  }

  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /** Whether more bytes wait than a client may leave unread. */
  get isOverfull(): boolean {
    if (this.#unsentBytes <= UNSENT_BYTES_MAX + this.#exemptBytes) return false;
    // The operating system may still take it all.
    if (this.#isCorked) this.#socket.uncork();
    this.#isCorked = false;
    return this.#socket.writableLength > 0;
  }

  /** Sends a text frame. */
  send(text: string, { exempt = false, onSent }: SendOptions = {}): void {
    const bytes = Buffer.byteLength(text);
    this.framesSent += 1;
    this.bytesSent += bytes;
    this.#unsentBytes += bytes;
    if (exempt) this.#exemptBytes += bytes;
    this.#cork();
    this.#webSocket.send(text, () => {
      this.#unsentBytes -= bytes;
      if (exempt) this.#exemptBytes -= bytes;
      onSent?.();
    });
  }

  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#socket.cork();
    if (Outbox.#corked.push(this) === 1) setImmediate(() => Outbox.#uncorkAll());
  }

  static #uncorkAll(): void {
    const outboxes = Outbox.#corked;
    Outbox.#corked = [];
    for (const outbox of outboxes) {
      outbox.#isCorked = false;
      outbox.#socket.uncork();
    }
  }
}
