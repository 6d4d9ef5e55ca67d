import { asApiError } from './api-error.js';
import { randomKey } from './random-key.js';

/** One idempotency key for all attempts at the same change: a click after a lost answer makes nothing twice. */
export class AttemptKey {
  #input = '';
  #key = '';

  keyFor(input: object): string {
    const text = JSON.stringify(input);
    if (this.#key === '' || this.#input !== text) this.#key = randomKey();
    this.#input = text;
    return this.#key;
  }

  succeeded(): void {
    this.#key = '';
  }

  /** Keeps the key unless the API has refused the change: it may have been made, or may still be under way. */
  failed(failure: unknown): void {
    const error = asApiError(failure);
    if (!error.isTemporary && error.code !== 'IDEMPOTENCY_CONFLICT') this.#key = '';
  }
}
