import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ApiKeyType } from './scopes.js';

const KEY_PREFIX = { secret: 'rtc_sk_', publishable: 'rtc_pk_' } as const satisfies Record<ApiKeyType, string>;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 62^43 > 2^256: enough for 32 random bytes. */
const RANDOM_LENGTH = 43;
/** 62^6 > 2^32: enough for a CRC-32. */
const CHECKSUM_LENGTH = 6;

/** Number of random bytes in a key. */
export const API_KEY_RANDOM_BYTES = 32;

/** Finds whole keys and secrets of the console anywhere in a text, for secret scanners and for the redaction of logs. */
export const API_KEY_PATTERN = /rtc_(?:[sp]k|c[sl])_[0-9A-Za-z]{20,}/g;

/**
 * Formats an API key: prefix, 256 random bits in base 62, and the CRC-32 of both in base 62. The checksum rejects a
 * typo without a look-up. (GitHub's tokens use the same scheme.)
 */
export function formatApiKey(type: ApiKeyType, randomBytes: Uint8Array): string {
  return formatChecked(KEY_PREFIX[type], randomBytes);
}

/** A secret in the form of an API key, with another prefix. */
export function formatChecked(prefix: string, randomBytes: Uint8Array): string {
  if (randomBytes.length !== API_KEY_RANDOM_BYTES) throw new RangeError('an API key needs 32 random bytes');
  const head = prefix + base62(BigInt(`0x${Buffer.from(randomBytes).toString('hex')}`), RANDOM_LENGTH);
  return head + checksum(head);
}

/** The type of a well-formed key; null for any other text, including a key with a wrong checksum. */
export function parseApiKey(text: string): ApiKeyType | null {
  const type = text.startsWith(KEY_PREFIX.secret)
    ? 'secret'
    : text.startsWith(KEY_PREFIX.publishable)
      ? 'publishable'
      : null;
  return type !== null && isChecked(KEY_PREFIX[type], text) ? type : null;
}

/** Whether a text has this prefix, the length of an API key and the right checksum. */
export function isChecked(prefix: string, text: string): boolean {
  if (!text.startsWith(prefix) || text.length !== prefix.length + RANDOM_LENGTH + CHECKSUM_LENGTH) return false;
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH);
}

/** SHA-256 of the whole key; the key itself is not stored. A key is random, so a slow hash would add nothing. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** The part of a key that is shown after its creation. */
export function apiKeyHint(key: string): string {
  return key.slice(-4);
}

function checksum(head: string): string {
  return base62(BigInt(crc32(head)), CHECKSUM_LENGTH);
}

function base62(value: bigint, length: number): string {
  let digits = '';
  for (let rest = value; rest > 0n; rest /= 62n) digits = BASE62.charAt(Number(rest % 62n)) + digits;
  return digits.padStart(length, '0');
}
