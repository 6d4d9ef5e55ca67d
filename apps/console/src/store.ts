import { useSyncExternalStore } from 'react';

/** A value outside of React that components follow. */
export class Store<T> {
  readonly #listeners = new Set<() => void>();

  constructor(private value: T) {}

  set(value: T): void {
    this.value = value;
    for (const listener of this.#listeners) listener();
  }

  change(next: (value: T) => T): void {
    this.set(next(this.value));
  }

  readonly #subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  use(): T {
    return useSyncExternalStore(this.#subscribe, () => this.value);
  }
}
