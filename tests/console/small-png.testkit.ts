import { deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS_MAX = 256;

/** Writes a screenshot again with its 256 most frequent colours, in a third of its size. */
export function smallPng(png: Buffer): Buffer {
  const { width, height, channels, data } = readPng(png);
  const pixels = new Uint32Array(width * height);
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += 1) {
    const from = at * channels;
    const colour = (data[from]! << 16) | (data[from + 1]! << 8) | data[from + 2]!;
    pixels[at] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const frequent = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  const palette = frequent.slice(0, COLOURS_MAX);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  for (const colour of frequent.slice(COLOURS_MAX)) places.set(colour, nearest(palette, colour));
  const rows = Buffer.alloc((width + 1) * height);
  for (let at = 0; at < pixels.length; at += 1) rows[at + Math.floor(at / width) + 1] = places.get(pixels[at]!)!;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const parts = [chunk('IHDR', header), chunk('PLTE', colours), chunk('IDAT', deflateSync(rows, { level: 9 }))];
  return Buffer.concat([SIGNATURE, ...parts, chunk('IEND', Buffer.alloc(0))]);
}

function nearest(palette: readonly number[], colour: number): number {
  let [best, least] = [0, Infinity];
  for (const [place, other] of palette.entries()) {
    const [red, green, blue] = [16, 8, 0].map((bits) => ((colour >> bits) & 255) - ((other >> bits) & 255));
    const distance = red! ** 2 + green! ** 2 + blue! ** 2;
    if (distance < least) [best, least] = [place, distance];
  }
  return best;
}

/** Reads what Chromium writes: 8 bits a channel, without interlacing. */
function readPng(png: Buffer): { width: number; height: number; channels: number; data: Buffer } {
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  const channels = png[25] === 6 ? 4 : 3;
  const parts: Buffer[] = [];
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const packed = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const data = Buffer.alloc(stride * height);
  for (let row = 0; row < height; row += 1) {
    const filter = packed[row * (stride + 1)]!;
    for (let at = 0; at < stride; at += 1) {
      const to = row * stride + at;
      const left = at < channels ? 0 : data[to - channels]!;
      const up = row === 0 ? 0 : data[to - stride]!;
      const corner = at < channels || row === 0 ? 0 : data[to - stride - channels]!;
      data[to] = packed[row * (stride + 1) + 1 + at]! + predicted(filter, left, up, corner);
    }
  }
  return { width, height, channels, data };
}

/** The prediction of a filter of PNG. */
function predicted(filter: number, left: number, up: number, corner: number): number {
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  if (filter === 0) return 0;
  const [toLeft, toUp, toCorner] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(content.length, 0);
  frame.writeUInt32BE(checksum(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** CRC-32 of PNG. zlib.crc32 needs Node 22. */
function checksum(bytes: Buffer): number {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
}
