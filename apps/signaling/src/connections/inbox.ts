import { SharedBound } from '@callplane/core';

/** Limits of the queue of messages that wait to be handled. */
export const QUEUED_MESSAGES_MAX = 256;
export const QUEUED_CHARS_MAX = 1024 * 1024;
/**
 * Limit in characters until the first message, a join or resumption, is handled. It is small because the sender is not
 * authenticated yet.
 */
export const QUEUED_CHARS_BEFORE_ARRIVAL_MAX = 32 * 1024;
/** Characters that may wait in all connections of this process before one with more than its share is refused. */
export const QUEUED_CHARS_OF_ALL = 64 * 1024 * 1024;

/** The receiving half of a connection: handles one message after another, and bounds those that wait. */
export class Inbox<Message> {
  readonly #handle: (message: Message) => void | Promise<void>;
  readonly #queue: { message: Message; chars: number }[] = [];
  #queuedChars = 0;
  #charsMax = QUEUED_CHARS_BEFORE_ARRIVAL_MAX;
  #isHandling = false;
  #isStopped = false;
  readonly #all: SharedBound;
  static readonly #ofProcess = new SharedBound(QUEUED_CHARS_OF_ALL);

  /**
   * @param handle must neither throw nor reject. A message that it handles without a promise delays no other one.
   * @param all the bound for all inboxes together
   */
  constructor(handle: (message: Message) => void | Promise<void>, all: SharedBound = Inbox.#ofProcess) {
    this.#handle = handle;
    this.#all = all;
  }

  /**
   * Handles the message after the earlier ones.
   * @param chars length of the message's frame
   * @returns false, without handling the message, if too many wait
   */
  push(message: Message, chars: number): boolean {
    if (this.#isStopped) return true;
    if (this.#queue.length >= QUEUED_MESSAGES_MAX || this.#queuedChars + chars > this.#charsMax) return false;
    if (this.#isHandling && !this.#all.allows(this.#queuedChars, chars)) return false;
    this.#setQueued(this.#queuedChars + chars);
    this.#queue.push({ message, chars });
    if (!this.#isHandling) this.#run();
    return true;
  }

  /** Drops the messages that wait, and all later ones. */
  stop(): void {
    this.#isStopped = true;
    this.#queue.length = 0;
    this.#setQueued(0);
  }

  #setQueued(chars: number): void {
    this.#all.change(this.#queuedChars, chars);
    this.#queuedChars = chars;
  }

  #run(): void {
    this.#isHandling = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#setQueued(this.#queuedChars - next.chars);
      const pending = this.#handle(next.message);
      if (pending !== undefined) {
        void pending.then(() => this.#handled());
        return;
      }
      this.#charsMax = QUEUED_CHARS_MAX;
    }
    this.#isHandling = false;
  }

  #handled(): void {
    this.#charsMax = QUEUED_CHARS_MAX;
    this.#run();
  }
}
