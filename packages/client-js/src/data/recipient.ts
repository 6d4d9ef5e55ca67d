/** As Base64, and with the fields of its message, a part counts as one message of the connection's rate. */
export const PART_BYTES = 11 * 1024;
/** Parts on their way to one recipient. The number follows the time that they take: a slow line keeps room for others. */
const WINDOW_FIRST = 4;
const WINDOW_MAX = 24;
/** How much longer than its fastest part a part may take until fewer of them are on their way, and more. */
const DELAY_SHORT_MS = 200;
const DELAY_LONG_MS = 600;
/** How long a recipient has to accept the stream, and to confirm a part. */
const ACCEPT_MS = 15_000;
const SILENCE_MS = 60_000;
/** After this time without a credit, parts are sent again. */
const REPEAT_MS = 3_000;
const REPEAT_MS_MAX = 20_000;

/** The position of one recipient in the bytes of a stream, and its pace. */
export class Recipient {
  isAccepted = false;
  /** Bytes that it has confirmed, and that go next. */
  acked = 0;
  position = 0;
  furthest = 0;
  isLastSent = false;
  /** When it was heard of last. */
  heardAtMs: number;
  #limit = 0;
  #window = WINDOW_FIRST;
  /** When the bytes before an offset were sent. */
  readonly #sentAtMs = new Map<number, number>();
  #delayMsMin = Infinity;
  #triedAtMs: number;
  #repeatMs = REPEAT_MS;

  constructor(
    readonly id: string,
    nowMs: number,
  ) {
    this.heardAtMs = this.#triedAtMs = nowMs;
  }

  get deadlineMs(): number {
    return Math.min(this.#triedAtMs + this.#repeatMs, this.#silentAtMs);
  }

  get #silentAtMs(): number {
    return this.heardAtMs + (this.isAccepted ? SILENCE_MS : ACCEPT_MS);
  }

  isSilent(nowMs: number): boolean {
    return nowMs >= this.#silentAtMs;
  }

  /** @param bytes of its next part */
  mayHave(bytes: number): boolean {
    const end = this.position + bytes;
    if (!this.isAccepted || this.isLastSent || end > this.#limit) return false;
    return this.position === this.acked || end <= this.acked + this.#window * PART_BYTES;
  }

  sent(end: number, isLast: boolean, nowMs: number): void {
    const bytes = end - this.position;
    this.position = end;
    this.furthest = Math.max(this.furthest, end);
    this.isLastSent = isLast;
    this.#triedAtMs = nowMs;
    // Of a part that was sent twice, nobody knows which one was confirmed.
    if (bytes > 0) this.#sentAtMs.set(end, this.#sentAtMs.has(end) ? NaN : nowMs);
  }

  /** @param limit up to which it takes bytes */
  heard(received: number, limit: number, nowMs: number): void {
    this.isAccepted = true;
    this.heardAtMs = nowMs;
    // A recipient cannot confirm what it was not sent.
    if (received > this.furthest) return;
    this.#limit = Math.max(this.#limit, limit);
    if (received > this.acked) this.#confirmed(received, nowMs);
  }

  #confirmed(received: number, nowMs: number): void {
    const sentAt = this.#sentAtMs.get(received);
    for (const end of this.#sentAtMs.keys()) if (end <= received) this.#sentAtMs.delete(end);
    this.acked = received;
    this.position = Math.max(this.position, received);
    this.#triedAtMs = nowMs;
    if (sentAt === undefined) return;
    const delayMs = nowMs - sentAt;
    this.#delayMsMin = Math.min(this.#delayMsMin, delayMs);
    this.#repeatMs = Math.max(REPEAT_MS, 4 * delayMs);
    const longerMs = delayMs - this.#delayMsMin;
    if (longerMs < DELAY_SHORT_MS) this.#window = Math.min(WINDOW_MAX, this.#window + 1);
    else if (longerMs > DELAY_LONG_MS) this.#narrow();
  }

  #narrow(): void {
    this.#window = Math.max(1, Math.floor(this.#window / 2));
  }

  /** Bytes from the position on are sent again. */
  rewind(position: number): void {
    this.position = position;
    this.isLastSent = false;
  }

  /** A part, a credit or the offer may be lost. */
  late(nowMs: number): void {
    this.#triedAtMs = nowMs;
    this.#repeatMs = Math.min(REPEAT_MS_MAX, 2 * this.#repeatMs);
    if (!this.isAccepted) return;
    if (this.position > this.acked) this.#narrow();
    this.rewind(this.acked);
  }
}
