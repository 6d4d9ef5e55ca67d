/** Runs tasks one after the other. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs the task after all earlier ones. It should check first whether it is still wanted. */
  run<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
