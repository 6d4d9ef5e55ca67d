import { concat, type Bytes } from './sframe.js';

/** How the frames of a codec are split. */
export interface Split {
  /** The bytes that stay clear, because the media server and the packetizers read them. */
  head: Bytes;
  rest: Bytes;
  /** `head` without the bytes that a packetizer may write anew. */
  authentic: Bytes;
}

/** Janus reads 6 bytes of a VP8 key frame; other frames have their type in the first byte. */
const VP8_KEY_BYTES = 10;
/** The header of a slice up to its parameter set: the depacketizer reads it. */
const SLICE_BYTES = 4;

/**
 * Splits a frame, plain or encrypted: both have the same head.
 * @param codec in lower case, such as `vp8`. A frame of an unknown codec is encrypted as a whole.
 */
export function splitFrame(codec: string, frame: Bytes): Split {
  if (codec === 'h264') return splitH264(frame);
  const isVp8Key = codec === 'vp8' && frame.length > 0 && ((frame[0] ?? 1) & 1) === 0;
  const bytes = isVp8Key ? VP8_KEY_BYTES : codec === 'vp8' || codec === 'opus' ? 1 : 0;
  const head = frame.subarray(0, bytes);
  return { head, rest: frame.subarray(bytes), authentic: head };
}

/** The units before the first slice (parameter sets and others) and the begin of that slice stay clear. */
function splitH264(frame: Bytes): Split {
  const starts: number[] = [];
  for (let at = 0; at + 3 < frame.length; at += 1) {
    if (frame[at] !== 0 || frame[at + 1] !== 0 || frame[at + 2] !== 1) continue;
    starts.push(at + 3);
    const type = (frame[at + 3] ?? 0) & 31;
    if (type === 1 || type === 5) break;
    at += 2;
  }
  const end = Math.min(frame.length, (starts.at(-1) ?? 0) + SLICE_BYTES);
  // A packetizer replaces the start codes, of three or four bytes.
  const units = starts.map((start, at) => {
    const next = starts[at + 1];
    if (next === undefined) return frame.subarray(start, end);
    const unit = frame.subarray(start, next - 3);
    return unit.at(-1) === 0 ? unit.subarray(0, -1) : unit;
  });
  return { head: frame.subarray(0, end), rest: frame.subarray(end), authentic: concat(...units) };
}

/** Bytes that may follow each other in a unit of H.264: no start codes (ITU-T H.264, section 7.4.1), no zero at the end. */
export function escapeH264(bytes: Bytes): Bytes {
  const escaped: number[] = [];
  let zeros = 0;
  for (const byte of bytes) {
    if (zeros >= 2 && byte <= 3) {
      escaped.push(3);
      zeros = 0;
    }
    escaped.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  escaped.push(0x80);
  return Uint8Array.from(escaped);
}

export function unescapeH264(bytes: Bytes): Bytes {
  const plain: number[] = [];
  let zeros = 0;
  for (const byte of bytes.subarray(0, -1)) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    plain.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Uint8Array.from(plain);
}
