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
