import type { Duplex } from 'node:stream';
import { EvictingBound, type Holder } from '@callplane/runtime';
import { WebSocket } from 'ws';

/** Seconds in which the operating system takes nothing, after which a client counts as one that does not read. */
export const STALLED_SECONDS = 5;
/** Unsent bytes that a client may have that does not read. */
export const UNSENT_BYTES_MAX = 1024 * 1024;
/** Unsent bytes that a client may have that reads, but more slowly than it is sent to. */
export const UNSENT_BYTES_OF_READER_MAX = 4 * UNSENT_BYTES_MAX;
/** Memory that all connections of this process may hold for clients that do not read, in bytes. */
const HELD_BYTES_OF_ALL = 64 * 1024 * 1024;
/** Memory that they may hold in any case. Text takes a part of the heap, which has 320 MiB in the image. */
const HELD_BYTES_OF_ALL_HARD = 192 * 1024 * 1024;
/** Bytes that may wait for the end of the current event-loop tick. With more, they leave after the current callback. */
const TICK_BYTES_MAX = 16 * 1024 * 1024;
/** Bytes of one write. The callback of each write tells that the client reads. */
const WRITE_BYTES_MAX = 64 * 1024;
/** Memory of a waiting frame beside its text, in bytes. */
const FRAME_BYTES = 100;

interface FrameText {
  readonly text: string;
  readonly bytes: number;
}

/**
 * The sending half of a connection. All frames of one event-loop tick leave in one write, past the sender of `ws`, which
 * makes two writes of each frame. While the operating system has not taken a write, later frames wait as texts, which
 * connections share.
 *
 * A burst fills the buffers of every client for a moment. So a client is slow because of the time in which nothing
 * leaves, and only beyond a far higher bound because of bytes alone.
 */
export class Outbox implements Holder {
  framesSent = 0;
  bytesSent = 0;
  /** Seconds in a row in which the operating system has taken nothing, although something waits. */
  stalledSeconds = 0;
  /** The frames that are not encoded, their bytes, and the memory that their texts take. */
  #frames: FrameText[] = [];
  #waitingBytes = 0;
  #textBytes = 0;
  #rest: Buffer | undefined;
  #writes = 0;
  /** Whether a write has ended since the last `eachSecond`. */
  #hasProgressed = false;
  #held = 0;
  /** The data of the latest ping without an answer. */
  #ping: Buffer | undefined;
  #isOfTick = false;
  /** The outboxes with frames that wait for the end of the current event-loop tick, and the bytes of these frames. */
  static #ofTick: Outbox[] = [];
  static #bytesOfTick = 0;
  static readonly #ofProcess = new EvictingBound(HELD_BYTES_OF_ALL_HARD);

  /** @param onCut called when this connection must end at once, because all hold too much */
  constructor(
    private readonly webSocket: WebSocket,
    private readonly socket: Duplex,
    private readonly onCut: () => void,
    private readonly all: EvictingBound = Outbox.#ofProcess,
  ) {
    socket.once('close', () => this.#flush());
  }

  get unsentBytes(): number {
    return this.#waitingBytes + (this.#rest?.length ?? 0) + (this.socket.destroyed ? 0 : this.socket.writableLength);
  }

  get isOverfull(): boolean {
    const max = this.#isStalled ? UNSENT_BYTES_MAX : UNSENT_BYTES_OF_READER_MAX;
    if (this.unsentBytes <= max) return false;
    // The operating system may still take it all.
    if (!this.#isStuck) this.#write();
    return this.unsentBytes > max;
  }

  send(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.framesSent += 1;
    this.bytesSent += bytes;
    this.#frames.push({ text, bytes });
    this.#waitingBytes += bytes;
    this.#textBytes += memoryOf(text, bytes);
    this.#flushLater(bytes);
  }

  /** Sends a text frame at once, after the waiting ones. A closing handshake may follow. */
  sendNow(text: string): void {
    this.send(text);
    this.#write(true);
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

  /**
   * Call it once a second. Counts calls instead of time: while this process is busy, no client seems to read, but the
   * calls do not come either.
   */
  eachSecond(): void {
    this.stalledSeconds = this.#isStuck && !this.#hasProgressed ? this.stalledSeconds + 1 : 0;
    this.#hasProgressed = false;
  }

  /** Call it once a second. Cuts the connections whose clients do not read if all hold too much. */
  static cutStalled(all: EvictingBound = Outbox.#ofProcess, max = HELD_BYTES_OF_ALL): void {
    all.cut(max, ({ stalledSeconds }) => stalledSeconds >= STALLED_SECONDS);
  }

  cut(): void {
    this.#held = 0;
    this.onCut();
  }

  get #isStalled(): boolean {
    return this.stalledSeconds >= STALLED_SECONDS;
  }

  get #isStuck(): boolean {
    return this.#writes > 0 && this.socket.writableLength > 0;
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

  /** Writes waiting frames if the operating system may take them, and counts the rest. */
  #flush(): void {
    const isOpen = this.webSocket.readyState === WebSocket.OPEN;
    if (!isOpen || !this.#isStuck) {
      const ping = this.#ping;
      this.#ping = undefined;
      if (ping !== undefined && isOpen) this.#control('pong', ping);
      this.#write();
    }
    const held = this.#memory();
    if (held === this.#held) return;
    this.#held = held;
    this.all.set(this, held);
  }

  #memory(): number {
    if (this.socket.destroyed || !this.#isStuck) return 0;
    // A small write is a part of a pool, and keeps all of it.
    const written = Math.max(this.socket.writableLength, Buffer.poolSize);
    return written + (this.#rest?.length ?? 0) + this.#textBytes + this.#frames.length * FRAME_BYTES;
  }

  /** @param isAll whether to write all that waits, even if the operating system takes nothing at the moment */
  #write(isAll = false): void {
    // No data may follow a close frame, for example after one of the client.
    if (this.webSocket.readyState !== WebSocket.OPEN) {
      this.#rest = undefined;
      this.#takeFrames(Infinity);
      return;
    }
    while (isAll || !this.#isStuck) {
      const part = this.#nextPart();
      if (part === undefined) return;
      this.#writes += 1;
      this.socket.write(part, () => this.#written());
    }
  }

  /** Encodes the next write: frames that fit into it together, or a part of a longer frame. */
  #nextPart(): Buffer | undefined {
    let encoded = this.#rest;
    if (encoded === undefined) {
      if (this.#frames.length === 0) return undefined;
      encoded = textFrames(this.#takeFrames(WRITE_BYTES_MAX));
    }
    const isLonger = encoded.length > WRITE_BYTES_MAX;
    this.#rest = isLonger ? encoded.subarray(WRITE_BYTES_MAX) : undefined;
    return isLonger ? encoded.subarray(0, WRITE_BYTES_MAX) : encoded;
  }

  /** Takes the first frames, at least one, with at most `bytesMax` bytes together. */
  #takeFrames(bytesMax: number): FrameText[] {
    if (this.#waitingBytes <= bytesMax) {
      const frames = this.#frames;
      this.#frames = [];
      this.#waitingBytes = 0;
      this.#textBytes = 0;
      return frames;
    }
    let count = 0;
    let taken = 0;
    for (const { text, bytes } of this.#frames) {
      if (count > 0 && taken + bytes > bytesMax) break;
      count += 1;
      taken += bytes;
      this.#textBytes -= memoryOf(text, bytes);
    }
    this.#waitingBytes -= taken;
    return this.#frames.splice(0, count);
  }

  #control(type: 'ping' | 'pong', data?: Buffer): void {
    this.#writes += 1;
    this.webSocket[type](data, false, () => this.#written());
  }

  #written(): void {
    this.#writes -= 1;
    this.#hasProgressed = true;
    this.stalledSeconds = 0;
    if (this.#held > 0 || this.#ping !== undefined) this.#flush();
  }
}

/** Memory of a text: a byte for each character, or two if it has characters beyond Latin-1. */
function memoryOf(text: string, bytes: number): number {
  return bytes === text.length ? bytes : 2 * text.length;
}

const TEXT = 0x81;
/** Greatest length that fits into the second header byte. A greater one takes 2 further bytes. */
const BYTES_IN_HEADER_MAX = 125;
/** Greatest length that fits into 2 further bytes. A greater one takes 8. */
const BYTES_IN_16_BITS_MAX = 0xffff;

/** Encodes texts as WebSocket frames of a server (RFC 6455, section 5.2), one after the other. */
function textFrames(frames: readonly FrameText[]): Buffer {
  const encoded = Buffer.allocUnsafe(frames.reduce((sum, { bytes }) => sum + headerBytes(bytes) + bytes, 0));
  let at = 0;
  for (const { text, bytes } of frames) {
    encoded[at] = TEXT;
    if (bytes <= BYTES_IN_HEADER_MAX) encoded[at + 1] = bytes;
    else if (bytes <= BYTES_IN_16_BITS_MAX) {
      encoded[at + 1] = 126;
      encoded.writeUInt16BE(bytes, at + 2);
    } else {
      encoded[at + 1] = 127;
      encoded.writeBigUInt64BE(BigInt(bytes), at + 2);
    }
    at += headerBytes(bytes);
    // Only ASCII has as many bytes as characters. It is copied faster as Latin-1.
    at += encoded.write(text, at, bytes === text.length ? 'latin1' : 'utf8');
  }
  return encoded;
}

function headerBytes(bytes: number): number {
  if (bytes <= BYTES_IN_HEADER_MAX) return 2;
  return bytes <= BYTES_IN_16_BITS_MAX ? 4 : 10;
}
