import type { Packet } from './packets.js';

export interface Frame {
  timestamp: number;
  data: Buffer;
  /** The size of the picture, if the frame needs no other one; null otherwise. Sound has none. */
  keySize: { width: number; height: number } | null;
}

/** Packets that a reader holds back, so that one that was sent again takes its place. */
const REORDER_PACKETS = 512;

/** Puts packets into the order of their sequence, without duplicates. */
export class Reorder {
  #held: Packet[] = [];
  #passed = -Infinity;

  add(packets: readonly Packet[]): Packet[] {
    this.#held = [...this.#held, ...packets].sort((a, b) => a.sequence - b.sequence);
    return this.#pass(this.#held.splice(0, Math.max(0, this.#held.length - REORDER_PACKETS)));
  }

  rest(): Packet[] {
    return this.#pass(this.#held.splice(0));
  }

  #pass(packets: Packet[]): Packet[] {
    return packets.filter(({ sequence }) => {
      if (sequence <= this.#passed) return false;
      this.#passed = sequence;
      return true;
    });
  }
}

/** Makes frames of packets in their order. */
export type Depacketizer = (packet: Packet) => Frame | null;

/** Each packet is a frame (RFC 7587). */
const opusFrames = (): Depacketizer => (packet) => ({
  timestamp: packet.timestamp,
  data: packet.payload,
  keySize: null,
});

/** RFC 7741. Drops frames that are not complete, and pictures of an impossible size. */
export function vp8Frames(): Depacketizer {
  let frame: { timestamp: number; parts: Buffer[]; next: number } | null = null;
  return ({ timestamp, sequence, payload, isLastOfFrame }) => {
    const descriptor = vp8Descriptor(payload);
    if (descriptor.isFirst) frame = { timestamp, parts: [], next: sequence };
    if (frame === null) return null;
    if (frame.timestamp !== timestamp || frame.next !== sequence) {
      frame = null;
      return null;
    }
    frame.parts.push(payload.subarray(descriptor.bytes));
    frame.next = sequence + 1;
    if (!isLastOfFrame) return null;
    const data = Buffer.concat(frame.parts);
    frame = null;
    const keySize = vp8KeySize(data);
    return keySize === null || isPossible(keySize) ? { timestamp, data, keySize } : null;
  };
}

function vp8Descriptor(payload: Buffer): { bytes: number; isFirst: boolean } {
  const [first = 0, extension = 0] = payload;
  const isFirst = (first & 0x10) !== 0 && (first & 7) === 0;
  if ((first & 0x80) === 0) return { bytes: 1, isFirst };
  let bytes = 2;
  if ((extension & 0x80) !== 0) bytes += ((payload[bytes] ?? 0) & 0x80) !== 0 ? 2 : 1;
  if ((extension & 0x40) !== 0) bytes += 1;
  if ((extension & 0x30) !== 0) bytes += 1;
  return { bytes, isFirst };
}

const VP8_KEY_BYTES = 10;
/** ffmpeg refuses larger pictures, or takes all memory for one; and it cannot fit narrower ones into a tile. */
const PIXELS_MAX = 4096 * 2304;
const ASPECT_MAX = 32;

function isPossible({ width, height }: { width: number; height: number }): boolean {
  const [short, long] = [Math.min(width, height), Math.max(width, height)];
  return short > 0 && long <= ASPECT_MAX * short && short * long <= PIXELS_MAX;
}

/** RFC 6386, section 9.1. */
function vp8KeySize(data: Buffer): Frame['keySize'] {
  if (data.length < VP8_KEY_BYTES || ((data[0] ?? 1) & 1) === 1) return null;
  return { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff };
}

/** How a codec becomes a track of WebM. Codecs are named as Janus does. */
export const CODECS: Readonly<Record<string, { rtpPerMs: number; frameMs: number; frames: () => Depacketizer }>> = {
  opus: { rtpPerMs: 48, frameMs: 20, frames: opusFrames },
  vp8: { rtpPerMs: 90, frameMs: 40, frames: vp8Frames },
};
