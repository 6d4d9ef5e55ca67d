import { createHmac, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const COOKIE = 0x2112a442;
export const BINDING_REQUEST = 0x0001;
export const BINDING_SUCCESS = 0x0101;
const FINGERPRINT_XOR = 0x5354554e;
export const STUN = {
  username: 0x0006,
  integrity: 0x0008,
  xorMappedAddress: 0x0020,
  priority: 0x0024,
  useCandidate: 0x0025,
  fingerprint: 0x8028,
  controlled: 0x8029,
  controlling: 0x802a,
} as const;

export type StunAttribute = [type: number, value: Buffer];

/** A STUN message (RFC 8489), signed with the password if there is one, and with a fingerprint. */
export function stunMessage(
  type: number,
  attributes: readonly StunAttribute[],
  { id = randomBytes(12), password }: { id?: Buffer; password?: string | Buffer } = {},
): Buffer {
  const header = Buffer.alloc(20);
  header.writeUInt16BE(type, 0);
  header.writeUInt32BE(COOKIE, 4);
  id.copy(header, 8);
  let message = Buffer.concat([header, ...attributes.map(encode)]);
  // The length counts up to the attribute that signs, which itself is included.
  const sized = (more: number) => {
    message.writeUInt16BE(message.length - 20 + more, 2);
    return message;
  };
  if (password !== undefined) {
    const digest = createHmac('sha1', password).update(sized(24)).digest();
    message = Buffer.concat([message, encode([STUN.integrity, digest])]);
  }
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE((crc32(sized(8)) ^ FINGERPRINT_XOR) >>> 0);
  return Buffer.concat([message, encode([STUN.fingerprint, sum])]);
}

/** The value of XOR-MAPPED-ADDRESS. */
export function xorAddress(address: string, port: number): Buffer {
  const value = Buffer.alloc(8);
  value[1] = 1;
  value.writeUInt16BE(port ^ (COOKIE >>> 16), 2);
  const ip = Buffer.from(address.split('.').map(Number)).readUInt32BE();
  value.writeUInt32BE((ip ^ COOKIE) >>> 0, 4);
  return value;
}

function encode([type, value]: StunAttribute): Buffer {
  const padded = Buffer.alloc(4 + ((value.length + 3) & ~3));
  padded.writeUInt16BE(type, 0);
  padded.writeUInt16BE(value.length, 2);
  value.copy(padded, 4);
  return padded;
}
