import { EvictingBound, type Holder } from '@callplane/runtime';

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
  readonly #queue: { message: Message; chars: number }[] = [];
  #queuedChars = 0;
  #charsMax = QUEUED_CHARS_BEFORE_ARRIVAL_MAX;
  #isHandling = false;
  #isStopped = false;
  static readonly #ofProcess = new EvictingBound(QUEUED_CHARS_OF_ALL);

  /**
   * @param handle must neither throw nor reject. A message that it handles without a promise delays no other one.
   * @param onCut called when this connection must end, because most messages wait here while too many of all do
   */
  constructor(
    private readonly handle: (message: Message) => void | Promise<void>,
    private readonly onCut: () => void,
    private readonly all: EvictingBound = Inbox.#ofProcess,
  ) {}

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
    this.onCut();
  }

  #setQueued(chars: number): void {
    this.#queuedChars = chars;
    this.all.set(this, chars);
  }

  #run(first: Message | undefined): void {
    this.#isHandling = true;
    for (let message = first; message !== undefined; message = this.#next()) {
      const pending = this.handle(message);
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
