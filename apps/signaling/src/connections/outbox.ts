import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { HeldByAll, type Holder } from './held-by-all.js';
import { textFrames, type FrameText } from './text-frames.js';

/** Bytes that may wait to be sent before the client counts as a slow consumer. */
export const UNSENT_BYTES_MAX = 1024 * 1024;
/**
 * Bytes that all connections of this process may hold unsent. Above them, the clients that leave most unread count as
 * slow consumers. A text with characters beyond Latin-1 takes up to twice its bytes.
 */
const UNSENT_BYTES_OF_ALL = 64 * 1024 * 1024;
/** Bytes that may wait for the end of the current event-loop tick. With more, they leave after the current callback. */
const TICK_BYTES_MAX = 16 * 1024 * 1024;
/** What a waiting frame takes beside its text, in bytes. */
const FRAME_BYTES = 100;

export interface SendOptions {
  /** Raises the limit by the size of this frame until it has left. */
  exempt?: boolean;
  /** Called when the frame has left or its write has failed; the socket's event `close` follows a failure. */
  onSent?: () => void;
}

interface Frame extends FrameText, SendOptions {}

/**
 * The sending half of a connection. All frames of one event-loop tick leave in one write, past the sender of `ws`, which
 * makes two writes of each frame. While the operating system has not taken a write, later frames wait as texts, which
 * connections share.
 */
export class Outbox implements Holder {
  framesSent = 0;
  bytesSent = 0;
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  readonly #onCut: () => void;
  readonly #all: HeldByAll;
  /** The frames that are not written, and their bytes. */
  #frames: Frame[] = [];
  #waitingBytes = 0;
  #exemptBytes = 0;
  /** Writes whose callback has not been called. */
  #writes = 0;
  /** What counts against the bound of all. */
  #held = 0;
  /** The data of the latest ping without an answer. */
  #ping: Buffer | undefined;
  #isOfTick = false;
  /** The outboxes with frames that wait for the end of the current event-loop tick, and the bytes of these frames. */
  static #ofTick: Outbox[] = [];
  static #bytesOfTick = 0;
  static readonly #ofProcess = new HeldByAll(UNSENT_BYTES_OF_ALL);

  /**
   * @param socket the stream below the WebSocket, which compresses nothing
   * @param onCut called when this connection must end at once, because it holds most while all hold too much
   * @param all the bound for all outboxes together
   */
  constructor(webSocket: WebSocket, socket: Duplex, onCut: () => void, all: HeldByAll = Outbox.#ofProcess) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#onCut = onCut;
    this.#all = all;
    socket.once('close', () => this.#flush());
  }

  /** Bytes that the operating system has not taken. */
  get unsentBytes(): number {
    return this.#waitingBytes + (this.#socket.destroyed ? 0 : this.#socket.writableLength);
  }

  /** Whether more bytes wait than a client may leave unread. */
  get isOverfull(): boolean {
    if (this.unsentBytes - this.#exemptBytes <= UNSENT_BYTES_MAX) return false;
    // The operating system may still take it all.
    if (!this.#isStuck) this.#write();
    return this.unsentBytes - this.#exemptBytes > UNSENT_BYTES_MAX;
  }

  /** Sends a text frame. */
  send(text: string, { exempt = false, onSent }: SendOptions = {}): void {
    const bytes = Buffer.byteLength(text);
    this.framesSent += 1;
    this.bytesSent += bytes;
    this.#waitingBytes += bytes;
    if (exempt) this.#exemptBytes += bytes;
    this.#frames.push(onSent === undefined ? { text, bytes, exempt } : { text, bytes, exempt, onSent });
    this.#flushLater(bytes);
  }

  /** Sends a text frame at once, after those that wait. A closing handshake may follow. */
  sendNow(text: string): void {
    this.send(text);
    this.#write();
  }

  /** Sends a ping, unless it would wait. Returns whether it has. */
  ping(): boolean {
    if (this.#isStuck) return false;
    this.#control('ping');
    return true;
  }

  /** Answers a ping. Of several that wait, the latest gets the answer (RFC 6455, section 5.5.3). */
  pong(data: Buffer): void {
    if (this.#isStuck) this.#ping = data;
    else this.#control('pong', data);
  }

  cut(): void {
    this.#held = 0;
    this.#onCut();
  }

  /** Whether the operating system takes nothing more at the moment, because the client does not read. */
  get #isStuck(): boolean {
    return this.#writes > 0 && this.#socket.writableLength > 0;
  }

  #flushLater(bytes: number): void {
    if (!this.#isOfTick) {
      this.#isOfTick = true;
      if (Outbox.#ofTick.push(this) === 1) setImmediate(() => Outbox.#flushAll());
    }
    const before = Outbox.#bytesOfTick;
    Outbox.#bytesOfTick += bytes;
    if (before <= TICK_BYTES_MAX && Outbox.#bytesOfTick > TICK_BYTES_MAX) queueMicrotask(() => Outbox.#flushAll());
  }

  static #flushAll(): void {
    const outboxes = Outbox.#ofTick;
    Outbox.#ofTick = [];
    Outbox.#bytesOfTick = 0;
    for (const outbox of outboxes) {
      outbox.#isOfTick = false;
      outbox.#flush();
    }
  }

  /** Writes what waits if the operating system may take it, and counts what is left. */
  #flush(): void {
    const isOpen = this.#webSocket.readyState === WebSocket.OPEN;
    if (!isOpen || !this.#isStuck) {
      const ping = this.#ping;
      this.#ping = undefined;
      if (ping !== undefined && isOpen) this.#control('pong', ping);
      this.#write();
    }
    const held = this.#memory();
    if (held === this.#held) return;
    this.#held = held;
    this.#all.set(this, held);
  }

  #memory(): number {
    if (this.#socket.destroyed || !this.#isStuck) return 0;
    // A small write is a part of a pool, and keeps all of it.
    const written = Math.max(this.#socket.writableLength, Buffer.poolSize);
    return written + this.#waitingBytes + this.#frames.length * FRAME_BYTES;
  }

  #write(): void {
    const frames = this.#frames;
    if (frames.length === 0) return;
    this.#frames = [];
    this.#waitingBytes = 0;
    let exemptBytes = 0;
    const left: (() => void)[] = [];
    for (const { bytes, exempt, onSent } of frames) {
      if (exempt === true) exemptBytes += bytes;
      if (onSent !== undefined) left.push(onSent);
    }
    const onLeft = (): void => {
      this.#exemptBytes -= exemptBytes;
      for (const onSent of left) onSent();
    };
    // No data may follow a close frame, for example after one of the client.
    if (this.#webSocket.readyState !== WebSocket.OPEN) {
      onLeft();
      return;
    }
    this.#writes += 1;
    // The callback keeps no text: a write that waits is in memory once.
    this.#socket.write(textFrames(frames), () => {
      onLeft();
      this.#written();
    });
  }

  #control(type: 'ping' | 'pong', data?: Buffer): void {
    this.#writes += 1;
    this.#webSocket[type](data, false, () => this.#written());
  }

  #written(): void {
    this.#writes -= 1;
    if (this.#held > 0 || this.#ping !== undefined) this.#flush();
  }
}
