import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ApiKeyType } from './scopes.js';

const KEY_PREFIX = { secret: 'rtc_sk_', publishable: 'rtc_pk_' } as const satisfies Record<ApiKeyType, string>;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 62^43 > 2^256: what 32 random bytes need. */
const RANDOM_LENGTH = 43;
/** 62^6 > 2^32: what a CRC-32 needs. */
const CHECKSUM_LENGTH = 6;

/** Random bytes that a key is made of. */
export const API_KEY_RANDOM_BYTES = 32;

/** Finds a whole key anywhere in a text: for secret scanners and for the redaction of logs. */
export const API_KEY_PATTERN = /rtc_[sp]k_[0-9A-Za-z]{20,}/g;

/**
 * An API key: prefix, 256 random bits in base 62, and the CRC-32 of both in base 62 as a tail, so that a typo is
 * refused without a look-up. (The scheme of GitHub's tokens.)
 */
export function formatApiKey(type: ApiKeyType, randomBytes: Uint8Array): string {
  if (randomBytes.length !== API_KEY_RANDOM_BYTES) throw new RangeError('an API key takes 32 random bytes');
  const head = KEY_PREFIX[type] + base62(BigInt(`0x${Buffer.from(randomBytes).toString('hex')}`), RANDOM_LENGTH);
  return head + checksum(head);
}

/** The type of a well-formed key; null for anything else, a key with a wrong checksum included. */
export function parseApiKey(text: string): ApiKeyType | null {
  const type = text.startsWith(KEY_PREFIX.secret)
    ? 'secret'
    : text.startsWith(KEY_PREFIX.publishable)
      ? 'publishable'
      : null;
  if (type === null || text.length !== KEY_PREFIX[type].length + RANDOM_LENGTH + CHECKSUM_LENGTH) return null;
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH) ? type : null;
}

/** SHA-256 of the whole key: all that is stored of it. A key is random, so a slow hash would add nothing. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** What a person may see of a key afterwards. */
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
