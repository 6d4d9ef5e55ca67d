/** A connection's half that holds memory for its client. */
export interface Holder {
  /** Seconds in a row in which nothing of it could be freed. */
  readonly stalledSeconds: number;
  /** Frees all that it holds, and ends its connection. */
  cut(): void;
}

/** Share of the bound that is left after a cut. Otherwise every further message would cut one more connection. */
const LEFT_AFTER_CUT = 7 / 8;

/**
 * A hard bound for the messages that all connections of a process hold together. A per-connection bound does not stop a
 * caller with many connections. Above the bound, the process cuts the connections that have been stalled longest, then
 * the ones that hold most.
 */
export class HeldByAll {
  readonly #max: number;
  readonly #held = new Map<Holder, number>();
  total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Records the current amount of a holder. It may be cut during the call, and others too. */
  set(holder: Holder, held: number): void {
    const before = this.#held.get(holder) ?? 0;
    if (held === before) return;
    this.total += held - before;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
    this.cut(this.#max, () => true);
  }

  /** If all hold more than `max`, cuts holders that `mayCut` accepts. */
  cut(max: number, mayCut: (holder: Holder) => boolean): void {
    if (this.total <= max) return;
    const order = [...this.#held]
      .filter(([holder]) => mayCut(holder))
      .sort(([one, held], [other, more]) => other.stalledSeconds - one.stalledSeconds || more - held);
    for (const [holder, held] of order) {
      if (this.total <= max * LEFT_AFTER_CUT) return;
      this.#held.delete(holder);
      this.total -= held;
      holder.cut();
    }
  }
}

export const QUEUED_MESSAGES_MAX = 256;
export const QUEUED_CHARS_MAX = 1024 * 1024;
/** The limit until the first message, a join or resumption, is handled: its sender is not authenticated yet. */
export const QUEUED_CHARS_BEFORE_ARRIVAL_MAX = 32 * 1024;
/** Characters that may wait in all connections of this process. Above them, those where most wait are closed. */
const QUEUED_CHARS_OF_ALL = 32 * 1024 * 1024;

/** The receiving half of a connection: handles one message after another, and bounds the waiting ones. */
export class Inbox<Message> implements Holder {
  /** A client cannot stall its inbox: the gateway alone empties it. */
  readonly stalledSeconds = 0;
  readonly #handle: (message: Message) => void | Promise<void>;
  readonly #onCut: () => void;
  readonly #queue: { message: Message; chars: number }[] = [];
  #queuedChars = 0;
  #charsMax = QUEUED_CHARS_BEFORE_ARRIVAL_MAX;
  #isHandling = false;
  #isStopped = false;
  readonly #all: HeldByAll;
  static readonly #ofProcess = new HeldByAll(QUEUED_CHARS_OF_ALL);

  /**
   * @param handle must neither throw nor reject. A message that it handles without a promise delays no other one.
   * @param onCut called when this connection must end, because most messages wait here while too many of all do
   */
  constructor(
    handle: (message: Message) => void | Promise<void>,
    onCut: () => void,
    all: HeldByAll = Inbox.#ofProcess,
  ) {
    this.#handle = handle;
    this.#onCut = onCut;
    this.#all = all;
  }

  /** @returns false, without handling the message, if too many wait */
  push(message: Message, chars: number): boolean {
    if (this.#isStopped) return true;
    if (this.#queue.length >= QUEUED_MESSAGES_MAX || this.#queuedChars + chars > this.#charsMax) return false;
    if (this.#isHandling) {
      this.#queue.push({ message, chars });
      this.#setQueued(this.#queuedChars + chars);
    } else this.#run(message);
    return true;
  }

  stop(): void {
    this.#isStopped = true;
    this.#queue.length = 0;
    this.#setQueued(0);
  }

  cut(): void {
    this.stop();
    this.#onCut();
  }

  #setQueued(chars: number): void {
    this.#queuedChars = chars;
    this.#all.set(this, chars);
  }

  #run(first: Message | undefined): void {
    this.#isHandling = true;
    for (let message = first; message !== undefined; message = this.#next()) {
      const pending = this.#handle(message);
      if (pending !== undefined) {
        void pending.then(() => this.#handled());
        return;
      }
      this.#charsMax = QUEUED_CHARS_MAX;
    }
    this.#isHandling = false;
  }

  #next(): Message | undefined {
    const next = this.#queue.shift();
    if (next !== undefined) this.#setQueued(this.#queuedChars - next.chars);
    return next?.message;
  }

  #handled(): void {
    this.#charsMax = QUEUED_CHARS_MAX;
    this.#run(this.#next());
  }
}
