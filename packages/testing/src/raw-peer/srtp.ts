import { createCipheriv, createHmac } from 'node:crypto';

/** Keying material of DTLS-SRTP (RFC 5764, section 4.2) for AES_128_CM_HMAC_SHA1_80. */
export const KEYING_MATERIAL_BYTES = 60;
const TAG_BYTES = 10;
const KEY_BYTES = 16;
const SALT_BYTES = 14;
/** Labels of RFC 3711, section 4.3.2. */
const LABELS = { rtp: 0, rtcp: 3 } as const;

interface Keys {
  cipher: Buffer;
  auth: Buffer;
  salt: Buffer;
}

/**
 * Protects packets of one direction (RFC 3711), however malformed they are. Sequence numbers must not wrap: each stream
 * has at most 65,536 packets.
 */
export class SrtpContext {
  readonly #rtp: Keys;
  readonly #rtcp: Keys;
  #rtcpIndex = 0;

  constructor(masterKey: Buffer, masterSalt: Buffer) {
    this.#rtp = deriveKeys(masterKey, masterSalt, LABELS.rtp);
    this.#rtcp = deriveKeys(masterKey, masterSalt, LABELS.rtcp);
  }

  /** @param packet with at least its header of 12 bytes */
  protectRtp(packet: Buffer): Buffer {
    const begin = Math.min(packet.length, payloadOffset(packet));
    const index = Buffer.alloc(6);
    packet.copy(index, 4, 2, 4);
    const sealed = crypt(this.#rtp, packet, begin, packet.subarray(8, 12), index);
    return Buffer.concat([sealed, tagOf(this.#rtp, sealed, Buffer.alloc(4))]);
  }

  /** @param packet with at least its header of 8 bytes */
  protectRtcp(packet: Buffer): Buffer {
    this.#rtcpIndex += 1;
    const index = Buffer.alloc(6);
    index.writeUInt32BE(this.#rtcpIndex, 2);
    const sealed = crypt(this.#rtcp, packet, 8, packet.subarray(4, 8), index);
    const trailer = Buffer.alloc(4);
    trailer.writeUInt32BE((0x80000000 | this.#rtcpIndex) >>> 0);
    const signed = Buffer.concat([sealed, trailer]);
    return Buffer.concat([signed, tagOf(this.#rtcp, signed)]);
  }

  /** Reads a packet of the other side, whose keys this context has. Does not verify it. */
  openRtcp(sealed: Buffer): Buffer {
    const end = sealed.length - TAG_BYTES - 4;
    const index = Buffer.alloc(6);
    index.writeUInt32BE(sealed.readUInt32BE(end) & 0x7fffffff, 2);
    return crypt(this.#rtcp, sealed.subarray(0, end), 8, sealed.subarray(4, 8), index);
  }
}

/** @returns the contexts of the DTLS client and the DTLS server */
export function srtpContexts(material: Buffer): { client: SrtpContext; server: SrtpContext } {
  const [serverKey, clientSalt, serverSalt] = [KEY_BYTES, 2 * KEY_BYTES, 2 * KEY_BYTES + SALT_BYTES];
  return {
    client: new SrtpContext(material.subarray(0, serverKey), material.subarray(clientSalt, serverSalt)),
    server: new SrtpContext(material.subarray(serverKey, clientSalt), material.subarray(serverSalt)),
  };
}

function deriveKeys(masterKey: Buffer, masterSalt: Buffer, label: number): Keys {
  const derive = (add: number, bytes: number) => {
    const iv = Buffer.alloc(16);
    masterSalt.copy(iv);
    xor(iv, 7, Buffer.from([label + add]));
    return createCipheriv('aes-128-ctr', masterKey, iv).update(Buffer.alloc(bytes));
  };
  return { cipher: derive(0, KEY_BYTES), auth: derive(1, 20), salt: derive(2, SALT_BYTES) };
}

/** Encrypts or decrypts the packet from `begin` on. */
function crypt({ cipher, salt }: Keys, packet: Buffer, begin: number, ssrc: Buffer, index: Buffer): Buffer {
  const iv = Buffer.alloc(16);
  salt.copy(iv);
  xor(iv, 4, ssrc);
  xor(iv, 8, index);
  const body = createCipheriv('aes-128-ctr', cipher, iv).update(packet.subarray(begin));
  return Buffer.concat([packet.subarray(0, begin), body]);
}

function xor(target: Buffer, from: number, bytes: Buffer): void {
  for (const [at, byte] of bytes.entries()) target.writeUInt8(target.readUInt8(from + at) ^ byte, from + at);
}

function tagOf({ auth }: Keys, ...parts: Buffer[]): Buffer {
  return createHmac('sha1', auth).update(Buffer.concat(parts)).digest().subarray(0, TAG_BYTES);
}

function payloadOffset(packet: Buffer): number {
  const fixed = 12 + 4 * (packet.readUInt8(0) & 0x0f);
  const hasExtension = (packet.readUInt8(0) & 0x10) !== 0 && packet.length >= fixed + 4;
  return hasExtension ? fixed + 4 + 4 * packet.readUInt16BE(fixed + 2) : fixed;
}
