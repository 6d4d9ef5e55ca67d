import { JSON_NESTING_MAX } from '../text/json-body.js';
import { jsonbNumberLength } from '../text/json-number.js';

/** Maximum number of bytes of one metadata object, as returned by a read. */
export const METADATA_BYTES_MAX = 16 * 1024;

/**
 * Why metadata of this size is refused; null if it is not. The API and the gateway use the same words.
 * @param bytes from {@link storedJsonBytes}
 */
export function metadataSizeFailure(bytes: number): string | null {
  if (bytes <= METADATA_BYTES_MAX) return null;
  return `must be at most ${METADATA_BYTES_MAX} bytes as a read returns it, not ${bytes}`;
}

/**
 * Size of a JSON value as PostgreSQL returns it from jsonb, in bytes, without the spaces that it writes after `,` and
 * `:`. PostgreSQL writes numbers without an exponent: 2,300 × `1e308` take 16 KB in the request and 715 KB in every
 * read.
 * @param value a result of JSON.parse. Values nested deeper than {@link JSON_NESTING_MAX} are rejected elsewhere and do
 * not count.
 */
export function storedJsonBytes(value: unknown, depth = 0): number {
  if (typeof value === 'number') return jsonbNumberLength(value);
  if (typeof value !== 'object' || value === null) return Buffer.byteLength(JSON.stringify(value));
  if (depth >= JSON_NESTING_MAX) return 0;
  let bytes = 1;
  let entries = 0;
  if (Array.isArray(value)) {
    for (const item of value) bytes += storedJsonBytes(item, depth + 1);
    entries = value.length;
  } else {
    for (const [key, item] of Object.entries(value)) {
      bytes += Buffer.byteLength(JSON.stringify(key)) + 1 + storedJsonBytes(item, depth + 1);
      entries++;
    }
  }
  // The brackets, and a comma between every two entries.
  return bytes + Math.max(1, entries);
}

/** Compares JSON values, key order aside. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b) || a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))];
  return left.length === right.size && left.every(([key, value]) => right.has(key) && sameJson(value, right.get(key)));
}
