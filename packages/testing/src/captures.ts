import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** A packet of a capture that a test writes. */
export interface TestPacket {
  arrivalMs: number;
  sequence: number;
  timestamp: number;
  payload: Buffer;
  isLastOfFrame?: boolean;
}

/** A capture as Janus writes it. */
export function capture(codec: string, packets: readonly TestPacket[]): Buffer {
  const header = Buffer.from(JSON.stringify({ t: codec === 'opus' ? 'a' : 'v', c: codec, s: 1, u: 1 }));
  return Buffer.concat([Buffer.from('MJR00002'), uint16(header.length), header, ...packets.map(packetBytes)]);
}

export function packetBytes({ arrivalMs, sequence, timestamp, payload, isLastOfFrame = true }: TestPacket): Buffer {
  const rtp = Buffer.alloc(12);
  rtp[0] = 0x80;
  rtp[1] = isLastOfFrame ? 0x80 | 96 : 96;
  rtp.writeUInt16BE(sequence & 0xffff, 2);
  rtp.writeUInt32BE(timestamp >>> 0, 4);
  const arrival = Buffer.alloc(4);
  arrival.writeUInt32BE(arrivalMs);
  return Buffer.concat([Buffer.from('MEET'), arrival, uint16(rtp.length + payload.length), rtp, payload]);
}

/**
 * A later repetition of a capture, as the packets that follow in the same file.
 * @param ms how long the capture is
 * @param slow by how much the clock of the sender is slow, such as 0.00005
 */
export function repeated(bytes: Buffer, times: number, ms: number, slow = 0): Buffer {
  const begin = 10 + bytes.readUInt16BE(8);
  const copy = Buffer.from(times === 0 ? bytes : bytes.subarray(begin));
  const starts: number[] = [];
  for (let at = times === 0 ? begin : 0; at < copy.length; at += 10 + copy.readUInt16BE(at + 8)) starts.push(at);
  const { c: codec } = JSON.parse(bytes.toString('utf8', 10, begin)) as { c: string };
  const rtpPerMs = codec === 'opus' ? 48 : 90;
  const sequences = copy.readUInt16BE((starts.at(-1) ?? 0) + 12) + 1;
  for (const at of starts) {
    const rtp = at + 10;
    copy.writeUInt32BE(copy.readUInt32BE(at + 4) + times * ms, at + 4);
    copy.writeUInt16BE((copy.readUInt16BE(rtp + 2) + times * sequences) & 0xffff, rtp + 2);
    const time = copy.readUInt32BE(rtp + 4) + times * ms * rtpPerMs;
    copy.writeUInt32BE(Math.round(time * (1 - slow)) % 2 ** 32, rtp + 4);
  }
  return copy;
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

/** The payload of a VP8 frame in one packet. */
export function vp8(size: { width: number; height: number } | null): Buffer {
  // The descriptor of a frame's first packet, then the frame: bit 0 of its first byte is 0 for a key frame.
  const frame = Buffer.alloc(20);
  frame[0] = size === null ? 1 : 0;
  if (size !== null) {
    frame.set([0x9d, 0x01, 0x2a], 3);
    frame.writeUInt16LE(size.width, 6);
    frame.writeUInt16LE(size.height, 8);
  }
  return Buffer.concat([Buffer.from([0x10]), frame]);
}

/** Payloads of a packet, without the headers of UDP, RTP and SRTP. */
const PAYLOAD_BYTES = 1100;

/** A capture of a picture that ffmpeg makes, such as `testsrc=r=25:d=10`. */
export async function pictureCapture(source: string, more: readonly string[] = []): Promise<Buffer> {
  const codec = ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-auto-alt-ref', '0', '-threads', '1'];
  const ivf = await output(['-f', 'lavfi', '-i', source, ...codec, '-g', '250', ...more, '-f', 'ivf', '-']);
  const packets: TestPacket[] = [];
  const perSecond = ivf.readUInt32LE(16) / ivf.readUInt32LE(20);
  for (let at = 32; at < ivf.length;) {
    const [bytes, frame] = [ivf.readUInt32LE(at), Number(ivf.readBigUInt64LE(at + 4))];
    const ms = (frame * 1000) / perSecond;
    for (let from = 0; from < bytes; from += PAYLOAD_BYTES) {
      const to = Math.min(bytes, from + PAYLOAD_BYTES);
      const payload = Buffer.concat([Buffer.from([from === 0 ? 0x10 : 0]), ivf.subarray(at + 12 + from, at + 12 + to)]);
      const time = { arrivalMs: Math.round(ms), timestamp: Math.round(ms * 90) };
      packets.push({ ...time, sequence: packets.length, payload, isLastOfFrame: to === bytes });
    }
    at += 12 + bytes;
  }
  return capture('vp8', packets);
}

/** A capture of sound that ffmpeg makes, such as `sine=d=10`. */
export async function soundCapture(source: string): Promise<Buffer> {
  const codec = ['-c:a', 'libopus', '-b:a', '32k', '-frame_duration', '20', '-page_duration', '1'];
  const ogg = await output(['-f', 'lavfi', '-i', source, '-ac', '1', ...codec, '-f', 'ogg', '-']);
  const frames: Buffer[] = [];
  // Each page has one packet (RFC 3533, section 6); the first two are headers.
  for (let at = 0; at < ogg.length;) {
    const segments = ogg.readUInt8(at + 26);
    const begin = at + 27 + segments;
    const bytes = ogg.subarray(at + 27, begin).reduce((sum, size) => sum + size, 0);
    frames.push(ogg.subarray(begin, begin + bytes));
    at = begin + bytes;
  }
  const packets = frames
    .slice(2)
    .map((payload, n) => ({ arrivalMs: n * 20, sequence: n, timestamp: n * 960, payload }));
  return capture('opus', packets);
}

async function output(args: readonly string[]): Promise<Buffer> {
  const { stdout } = await promisify(execFile)('ffmpeg', ['-v', 'error', ...args], {
    encoding: 'buffer',
    maxBuffer: 2 ** 30,
  });
  return stdout;
}
