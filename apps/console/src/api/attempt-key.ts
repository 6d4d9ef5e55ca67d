import { asApiError } from './api-error.js';

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

const BYTES = 16;

/** @returns a random idempotency key. `crypto.randomUUID` is missing on a page without https. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
