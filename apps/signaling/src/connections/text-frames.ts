/** A text with its length in UTF-8. */
export interface FrameText {
  readonly text: string;
  readonly bytes: number;
}

/** First byte of an unfragmented text frame. */
const TEXT = 0x81;
/** Greatest length that fits into the second header byte. A greater one takes 2 further bytes. */
const BYTES_IN_HEADER_MAX = 125;
/** Greatest length that fits into 2 further bytes. A greater one takes 8. */
const BYTES_IN_16_BITS_MAX = 0xffff;

/** Encodes texts as WebSocket frames of a server (RFC 6455, section 5.2), one after the other. */
export function textFrames(frames: readonly FrameText[]): Buffer {
  const encoded = Buffer.allocUnsafe(frames.reduce((sum, { bytes }) => sum + headerBytes(bytes) + bytes, 0));
  let at = 0;
  for (const { text, bytes } of frames) {
    encoded[at] = TEXT;
    if (bytes <= BYTES_IN_HEADER_MAX) encoded[at + 1] = bytes;
    else if (bytes <= BYTES_IN_16_BITS_MAX) {
      encoded[at + 1] = 126;
      encoded.writeUInt16BE(bytes, at + 2);
    } else {
      encoded[at + 1] = 127;
      encoded.writeBigUInt64BE(BigInt(bytes), at + 2);
    }
    at += headerBytes(bytes);
    // Only ASCII has as many bytes as characters. It is copied faster as Latin-1.
    at += encoded.write(text, at, bytes === text.length ? 'latin1' : 'utf8');
  }
  return encoded;
}

function headerBytes(bytes: number): number {
  if (bytes <= BYTES_IN_HEADER_MAX) return 2;
  return bytes <= BYTES_IN_16_BITS_MAX ? 4 : 10;
}
