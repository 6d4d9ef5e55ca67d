/** How one direction of a line treats packets. */
export interface LineShape {
  /** Undefined: unlimited. */
  kbitPerSecond?: number | undefined;
  /** Packets that would wait longer than this for their turn are dropped; default 300 ms. */
  queueMs?: number;
  /** Of all packets, at random; 100 cuts the line. */
  lossPercent?: number;
  /** Added to each packet's way. */
  delayMs?: number;
}

const QUEUE_MS = 300;
/** IPv4 and UDP headers. */
const HEADER_BYTES = 28;

/** One direction of a line with a limited rate, a bounded queue, delay and loss. Without I/O. */
export class ShapedLine {
  shape: LineShape = {};
  readonly #random: () => number;
  /** When the line has sent everything that waits. */
  #freeAtMs = -Infinity;
  #lastAtMs = -Infinity;

  /** @param seed the same seed loses the same packets */
  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  /** @returns when the packet arrives at the other end; undefined if it is lost */
  admit(nowMs: number, payloadBytes: number): number | undefined {
    const { kbitPerSecond, queueMs = QUEUE_MS, lossPercent = 0, delayMs = 0 } = this.shape;
    if (this.#random() * 100 < lossPercent) return undefined;
    const beginsAtMs = kbitPerSecond === undefined ? nowMs : Math.max(nowMs, this.#freeAtMs);
    if (beginsAtMs - nowMs > queueMs) return undefined;
    if (kbitPerSecond !== undefined) this.#freeAtMs = beginsAtMs + (8 * (payloadBytes + HEADER_BYTES)) / kbitPerSecond;
    const sentAtMs = kbitPerSecond === undefined ? nowMs : this.#freeAtMs;
    // Packets stay in order when the shape changes.
    this.#lastAtMs = Math.max(this.#lastAtMs, sentAtMs + delayMs);
    return this.#lastAtMs;
  }
}

/** A generator of numbers from 0 to 1, without 1: the same seed gives the same numbers (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
