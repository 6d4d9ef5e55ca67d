import { describe, expect, test } from '@jest/globals';
import { decodeHeader, deriveKey, encodeHeader, open, seal, type Bytes } from './sframe.js';

const bytes = (hex: string): Bytes => Uint8Array.from(Buffer.from(hex, 'hex'));
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex');

/** RFC 9605, appendix C.1. */
const NUMBERS = [0n, 1n, 0xffn, 0x100n, 0xffffn, 0x10000n, 0xffffffn, 0x1000000n, 0xffffffffn, 0x100000000n];
const LARGE = [0xffffffffffn, 0x10000000000n, 0xffffffffffffn, 0x1000000000000n, 0xffffffffffffffn];
const HEADERS: [kid: bigint, counter: bigint, header: string][] = [
  [0n, 0n, '00'],
  [0n, 1n, '01'],
  [0n, 0xffn, '08ff'],
  [0n, 0x100n, '090100'],
  [0n, 0xffffffffn, '0bffffffff'],
  [0n, 0x100000000n, '0c0100000000'],
  [0n, 0xffffffffffffffffn, '0fffffffffffffffff'],
  [1n, 0n, '10'],
  [1n, 0xffffffn, '1affffff'],
  [0xffn, 0n, '80ff'],
  [0xffn, 1n, '81ff'],
  [0xffn, 0xffn, '88ffff'],
  [0x100n, 0x100n, '9901000100'],
  [0xffffn, 0n, '90ffff'],
  [0x10000n, 0xffffffffffffffffn, 'af010000ffffffffffffffff'],
  [0xffffffn, 0x10000n, 'aaffffff010000'],
  [0x1000000n, 0n, 'b001000000'],
  [0xffffffffn, 0x1000000n, 'bbffffffff01000000'],
  [0x100000000n, 0xffffffffffn, 'cc0100000000ffffffffff'],
  [0xffffffffffn, 1n, 'c1ffffffffff'],
];

/** RFC 9605, appendix C.3. */
const VECTORS = [
  {
    cipher: 'AES-GCM-128' as const,
    salt: '75234edefe07819026751816',
    sealed: '9901234567b7412c2513a1b66dbb48841bbaf17f598751176ad847681a69c6d0b091c07018ce4adb34eb',
  },
  {
    cipher: 'AES-GCM-256' as const,
    salt: '84991c167b8cd23c93708ec7',
    sealed: '990123456794f509d36e9beacb0e261d99c7d1e972f1fed787d4049f17ca21353c1cc24d56ceabced279',
  },
];
const METADATA = bytes('4945544620534672616d65205747');
const PLAIN = bytes('64726166742d696574662d736672616d652d656e63');

describe('SFrame', () => {
  test.each(HEADERS)('encodes key id %s and counter %s', (kid, counter, header) => {
    expect(hex(encodeHeader(kid, counter))).toBe(header);
  });

  test('decodes each header that it encodes, and refuses all cut ones', () => {
    const numbers = [...NUMBERS, ...LARGE, 7n, 8n, 2n ** 64n - 1n];
    for (const kid of numbers) {
      for (const counter of numbers) {
        const header = encodeHeader(kid, counter);
        expect(decodeHeader(header)).toEqual({ kid, counter, length: header.length });
        for (let length = 0; length < header.length; length += 1) {
          expect(decodeHeader(header.subarray(0, length))).toBeUndefined();
        }
      }
    }
  });

  test.each(VECTORS)('seals and opens the test vector of $cipher', async ({ cipher, salt, sealed }) => {
    const key = await deriveKey(bytes('000102030405060708090a0b0c0d0e0f'), 0x123n, cipher);
    expect(hex(key.salt)).toBe(salt);
    expect(hex(await seal(key, 0x123n, 0x4567n, METADATA, PLAIN))).toBe(sealed);
    const header = decodeHeader(bytes(sealed))!;
    expect(header).toEqual({ kid: 0x123n, counter: 0x4567n, length: 5 });
    expect(hex(await open(key, header, METADATA, bytes(sealed)))).toBe(hex(PLAIN));
    await expect(open(key, header, METADATA.subarray(1), bytes(sealed))).rejects.toThrow();
  });
});
