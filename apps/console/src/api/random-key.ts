const BYTES = 16;

/** @returns a random idempotency key. `crypto.randomUUID` is missing on a page without https. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
