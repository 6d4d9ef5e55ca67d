import { PublicError } from '@callplane/core';

export interface PlacesSettings {
  max: number;
  perEnvironmentMax: number;
  /** Of the answer to a request that gets no place. */
  message: string;
  retryAfterSeconds: number;
}

/** Bounds how many requests of one environment, and of all together, stay open for long. */
export class Places {
  readonly #settings: PlacesSettings;
  readonly #taken = new Map<string, number>();
  #count = 0;

  constructor(settings: PlacesSettings) {
    this.#settings = settings;
  }

  get count(): number {
    return this.#count;
  }

  isTakenBy(environmentId: string): boolean {
    return this.#taken.has(environmentId);
  }

  /**
   * @returns a function that gives the place back. Further calls of it do nothing.
   * @throws PublicError RATE_LIMITED if no place is left.
   */
  take(environmentId: string): () => void {
    const { max, perEnvironmentMax, message, retryAfterSeconds } = this.#settings;
    const taken = this.#taken.get(environmentId) ?? 0;
    if (taken >= perEnvironmentMax || this.#count >= max) {
      throw new PublicError('RATE_LIMITED', { message, headers: { 'retry-after': String(retryAfterSeconds) } });
    }
    this.#change(environmentId, 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#change(environmentId, -1);
      isTaken = false;
    };
  }

  #change(environmentId: string, by: 1 | -1): void {
    this.#count += by;
    const taken = (this.#taken.get(environmentId) ?? 0) + by;
    if (taken > 0) this.#taken.set(environmentId, taken);
    else this.#taken.delete(environmentId);
  }
}
