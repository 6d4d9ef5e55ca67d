/** SFrame, RFC 9605, with its two suites of AES-GCM. */

export type Cipher = 'AES-GCM-128' | 'AES-GCM-256';
/** Bytes that the crypto API accepts: none that other threads may change meanwhile. */
export type Bytes = Uint8Array<ArrayBuffer>;

const SUITES = {
  'AES-GCM-128': { id: 4, hash: 'SHA-256', keyBytes: 16 },
  'AES-GCM-256': { id: 5, hash: 'SHA-512', keyBytes: 32 },
} as const;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface SFrameKey {
  key: CryptoKey;
  salt: Bytes;
}

export interface SFrameHeader {
  kid: bigint;
  counter: bigint;
  /** Length of the header in bytes. */
  length: number;
}

export function concat(...parts: readonly Uint8Array[]): Bytes {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export const bytesOf = (text: string): Bytes => new Uint8Array(new TextEncoder().encode(text));

/** @returns the bytes in big-endian order, at least `length`. */
function bigEndian(value: bigint, length: number): Bytes {
  const bytes = new Uint8Array(Math.max(8, length));
  new DataView(bytes.buffer).setBigUint64(bytes.length - 8, value);
  let start = 0;
  while (start < bytes.length - length && bytes[start] === 0) start += 1;
  return bytes.slice(start);
}

export async function hkdf(secret: Bytes, info: Bytes, bytes: number, hash = 'SHA-256'): Promise<Bytes> {
  const key = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
  const parameters = { name: 'HKDF', hash, salt: new Uint8Array(), info };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, key, 8 * bytes));
}

/** Section 4.4.2: the key and the salt of a key id. */
export async function deriveKey(baseKey: Bytes, kid: bigint, cipher: Cipher): Promise<SFrameKey> {
  const { id, hash, keyBytes } = SUITES[cipher];
  const derive = (label: string, length: number) =>
    hkdf(
      baseKey,
      concat(bytesOf(`SFrame 1.0 Secret ${label} `), bigEndian(kid, 8), bigEndian(BigInt(id), 2)),
      length,
      hash,
    );
  const raw = await derive('key', keyBytes);
  const key = await crypto.subtle.importKey('raw', raw, 'AES-GCM', false, ['encrypt', 'decrypt']);
  return { key, salt: await derive('salt', NONCE_BYTES) };
}

/** Section 4.3: small numbers are in the first byte, others follow it after their length. */
export function encodeHeader(kid: bigint, counter: bigint): Bytes {
  const parts = [kid, counter].map((value) => {
    if (value < 8n) return { config: Number(value), bytes: new Uint8Array() };
    const bytes = bigEndian(value, 1);
    return { config: 8 | (bytes.length - 1), bytes };
  });
  const [first, second] = parts as [(typeof parts)[0], (typeof parts)[0]];
  return concat([(first.config << 4) | second.config] as unknown as Bytes, first.bytes, second.bytes);
}

/** @returns undefined if the bytes are too short */
export function decodeHeader(bytes: Uint8Array): SFrameHeader | undefined {
  const [config] = bytes;
  if (config === undefined) return undefined;
  let length = 1;
  const read = (bits: number): bigint => {
    if ((bits & 8) === 0) return BigInt(bits & 7);
    const end = length + (bits & 7) + 1;
    let value = 0n;
    for (; length < end; length += 1) value = (value << 8n) | BigInt(bytes[length] ?? 0);
    return value;
  };
  const kid = read(config >> 4);
  const counter = read(config & 15);
  return length > bytes.length ? undefined : { kid, counter, length };
}

function parametersOf({ salt }: SFrameKey, counter: bigint, additionalData: Bytes): AesGcmParams {
  const number = bigEndian(counter, NONCE_BYTES);
  return {
    name: 'AES-GCM',
    iv: salt.map((byte, at) => byte ^ (number[at] ?? 0)),
    additionalData,
    tagLength: 8 * TAG_BYTES,
  };
}

/** Section 4.4.3. @returns header, encrypted bytes and tag. The key may never have had the counter before. */
export async function seal(
  key: SFrameKey,
  kid: bigint,
  counter: bigint,
  metadata: Bytes,
  plain: Bytes,
): Promise<Bytes> {
  const header = encodeHeader(kid, counter);
  const parameters = parametersOf(key, counter, concat(header, metadata));
  return concat(header, new Uint8Array(await crypto.subtle.encrypt(parameters, key.key, plain)));
}

/** Section 4.4.4. @throws if the bytes are not as they were sealed */
export async function open(
  key: SFrameKey,
  { counter, length }: SFrameHeader,
  metadata: Bytes,
  sealed: Bytes,
): Promise<Bytes> {
  const parameters = parametersOf(key, counter, concat(sealed.subarray(0, length), metadata));
  return new Uint8Array(await crypto.subtle.decrypt(parameters, key.key, sealed.subarray(length)));
}
