type Listener<T> = (event: T) => void;

/** Typed events. The error of a listener is reported and does not keep the others from being called. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>();

  /** Listens until `off` or the returned function is called. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    let listeners = this.#listeners.get(name);
    if (listeners === undefined) this.#listeners.set(name, (listeners = new Set()));
    listeners.add(listener);
    return () => this.off(name, listener);
  }

  /** Listens for the next event only. */
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
    // A copy, because listeners may come and go meanwhile.
    callAll([...(this.#listeners.get(name) ?? [])] as Listener<Events[Name]>[], event);
  }
}

/** Calls the listeners. Reports their errors as a browser does for events of its own: in the console and to `window.onerror`. */
export function callAll<T>(listeners: readonly Listener<T>[], event: T): void {
  for (const listener of listeners) {
    try {
      listener(event);
    } catch (error) {
      const here = globalThis as Partial<typeof globalThis>;
      if (here.reportError !== undefined) here.reportError(error);
      else console.error(error);
    }
  }
}
