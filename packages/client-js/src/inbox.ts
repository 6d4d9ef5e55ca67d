/** Holds events until the caller of `connect()` could add its listeners. */
export class Inbox {
  /** Undefined once the listeners are there. */
  #waiting: (() => void)[] | undefined = [];

  deliver(event: () => void): void {
    if (this.#waiting === undefined) event();
    else this.#waiting.push(event);
  }

  /** Runs after the continuation of `await connect()`. */
  open(): void {
    setTimeout(() => {
      const waiting = this.#waiting ?? [];
      this.#waiting = undefined;
      for (const deliver of waiting) deliver();
    });
  }
}
