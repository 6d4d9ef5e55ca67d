import { createReadStream } from 'node:fs';

// The format of Janus' recordings (record.c): "MJR00002", a length of 16 bits, a header in JSON; then for each packet
// "MEET", its arrival in milliseconds since the first one, a length, and the RTP packet.

export interface Packet {
  /** Arrival, in milliseconds since the first packet, by a clock that never steps. */
  arrivalMs: number;
  /** Sequence number and time of RTP, continued beyond their ranges of 16 and 32 bits. */
  sequence: number;
  timestamp: number;
  isLastOfFrame: boolean;
  payload: Buffer;
}

export interface CaptureHeader {
  /** Codec as Janus names it. */
  c: string;
}

const MAGIC = 'MJR00002';
const FRAME = Buffer.from('MEET');
const FRAME_BYTES = 10;
const RTP_BYTES = 12;
const CHUNK_BYTES = 1024 * 1024;

/**
 * Reads a capture in the order of arrival. Skips damaged parts, and a last packet that is not complete: the process that
 * wrote it may have been killed.
 * @param onHeader gets the header before the first packets.
 */
export async function* readPackets(
  path: string,
  onHeader: (header: CaptureHeader) => void = () => undefined,
): AsyncGenerator<Packet[]> {
  const unwrap = unwrapper();
  let rest: Buffer = Buffer.alloc(0);
  let hasHeader = false;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    if (!hasHeader) {
      const header = parseHeader(bytes);
      if (header === null) {
        rest = bytes;
        continue;
      }
      hasHeader = true;
      at = header.bytes;
      onHeader(header.header);
    }
    const packets: Packet[] = [];
    while (at + FRAME_BYTES <= bytes.length) {
      if (bytes.compare(FRAME, 0, FRAME.length, at, at + FRAME.length) !== 0) {
        const next = bytes.indexOf(FRAME, at + 1);
        at = next === -1 ? bytes.length - FRAME.length + 1 : next;
        continue;
      }
      const length = bytes.readUInt16BE(at + 8);
      if (at + FRAME_BYTES + length > bytes.length) break;
      const rtp = bytes.subarray(at + FRAME_BYTES, at + FRAME_BYTES + length);
      const packet = parseRtp(rtp, bytes.readUInt32BE(at + FRAME.length), unwrap);
      if (packet !== null) packets.push(packet);
      at += FRAME_BYTES + length;
    }
    rest = bytes.subarray(at);
    if (packets.length > 0) yield packets;
  }
}

/**
 * @returns null if it is not complete
 * @throws an error if the bytes begin no capture
 */
function parseHeader(bytes: Buffer): { header: CaptureHeader; bytes: number } | null {
  const begin = bytes.toString('latin1', 0, Math.min(bytes.length, MAGIC.length));
  if (!MAGIC.startsWith(begin)) throw new Error('the file is no capture of Janus');
  const textAt = MAGIC.length + 2;
  if (bytes.length < textAt) return null;
  const end = textAt + bytes.readUInt16BE(MAGIC.length);
  if (bytes.length < end) return null;
  return { header: JSON.parse(bytes.toString('utf8', textAt, end)) as CaptureHeader, bytes: end };
}

/** RFC 3550, section 5.1. */
function parseRtp(rtp: Buffer, arrivalMs: number, unwrap: ReturnType<typeof unwrapper>): Packet | null {
  if (rtp.length < RTP_BYTES) return null;
  const [flags = 0, second = 0] = rtp;
  let begin = RTP_BYTES + 4 * (flags & 15);
  const hasExtension = (flags & 16) !== 0;
  if (hasExtension && begin + 4 > rtp.length) return null;
  if (hasExtension) begin += 4 + 4 * rtp.readUInt16BE(begin + 2);
  const end = (flags & 32) === 0 ? rtp.length : rtp.length - (rtp.at(-1) ?? 0);
  if (begin >= end) return null;
  return {
    arrivalMs,
    ...unwrap(rtp.readUInt16BE(2), rtp.readUInt32BE(4)),
    isLastOfFrame: (second & 128) !== 0,
    payload: rtp.subarray(begin, end),
  };
}

function unwrapper() {
  let last: { sequence: number; timestamp: number } | null = null;
  return (sequence16: number, timestamp32: number) => {
    if (last === null) {
      last = { sequence: sequence16, timestamp: timestamp32 };
      return last;
    }
    const ahead = (((sequence16 - last.sequence) << 16) >> 16) | 0;
    const sequence = last.sequence + ahead;
    // Numbers above 32 bits keep their low bits in `| 0`.
    const timestamp = last.timestamp + ((timestamp32 - last.timestamp) | 0);
    if (ahead > 0) last = { sequence, timestamp };
    return { sequence, timestamp };
  };
}
