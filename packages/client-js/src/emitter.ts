type Listener<T> = (event: T) => void;

/** Typed events. A listener that throws is reported and harms nobody else. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>();

  /** Listens until the returned function is called, or `off`. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    let listeners = this.#listeners.get(name);
    if (listeners === undefined) this.#listeners.set(name, (listeners = new Set()));
    listeners.add(listener);
    return () => this.off(name, listener);
  }

  /** Listens for the next one alone. */
  once<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    const stop = this.on(name, (event) => {
      stop();
      listener(event);
    });
    return stop;
  }

  off<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): void {
    this.#listeners.get(name)?.delete(listener);
  }

  protected emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    // A copy: listeners may come and go meanwhile.
    for (const listener of [...(this.#listeners.get(name) ?? [])] as Listener<Events[Name]>[]) {
      try {
        listener(event);
      } catch (error) {
        report(error);
      }
    }
  }
}

/** As a browser does with errors of its own events' listeners: seen in the console and by `window.onerror`. */
function report(error: unknown): void {
  const here = globalThis as Partial<typeof globalThis>;
  if (here.reportError !== undefined) here.reportError(error);
  else console.error(error);
}
