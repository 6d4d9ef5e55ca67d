import { open, type FileHandle } from 'node:fs/promises';

// Matroska, RFC 9559; the ids of its elements are named beside them.

const CLUSTER_MS = 5000;

/** Writes one track, without an index and a duration: ffmpeg adds them. */
export class WebmWriter {
  readonly #file: FileHandle;
  readonly #isSound: boolean;
  #head: Buffer;
  #clusterAtMs = 0;
  #blocks: Buffer[] = [];
  #lastMs = -1;

  private constructor(file: FileHandle, isSound: boolean, begin: Buffer) {
    this.#file = file;
    this.#isSound = isSound;
    this.#head = begin;
  }

  /** @param size of the first picture; null for sound. */
  static async create(path: string, size: { width: number; height: number } | null): Promise<WebmWriter> {
    return new WebmWriter(await open(path, 'w'), size === null, head(size));
  }

  /** @param ms time of the frame. A picture that is not later than the one before gets the next millisecond. */
  async write(ms: number, data: Buffer, isKey: boolean): Promise<void> {
    const atMs = Math.max(Math.round(ms), this.#isSound ? Math.max(0, this.#lastMs) : this.#lastMs + 1);
    this.#lastMs = atMs;
    if (this.#blocks.length === 0 || atMs - this.#clusterAtMs > CLUSTER_MS) {
      await this.#flush();
      this.#clusterAtMs = atMs;
    }
    const header = Buffer.from([0x81, 0, 0, isKey ? 0x80 : 0]);
    header.writeInt16BE(atMs - this.#clusterAtMs, 1);
    // SimpleBlock
    this.#blocks.push(element(0xa3, Buffer.concat([header, data])));
  }

  async close(): Promise<void> {
    try {
      await this.#flush();
    } finally {
      await this.#file.close();
    }
  }

  async #flush(): Promise<void> {
    if (this.#blocks.length === 0) return;
    // Cluster: Timestamp, blocks
    const cluster = element(0x1f43b675, Buffer.concat([element(0xe7, this.#clusterAtMs), ...this.#blocks]));
    // Unlike write(), it writes all or throws: a full disk takes a part without an error.
    await this.#file.appendFile(Buffer.concat([this.#head, cluster]));
    this.#head = Buffer.alloc(0);
    this.#blocks = [];
  }
}

function head(size: { width: number; height: number } | null): Buffer {
  const ebml = [
    ...[element(0x4286, 1), element(0x42f7, 1), element(0x42f2, 4), element(0x42f3, 8)],
    ...[element(0x4282, Buffer.from('webm')), element(0x4287, 4), element(0x4285, 2)],
  ];
  const app = Buffer.from('Callplane');
  // Info: TimestampScale (a millisecond), MuxingApp, WritingApp
  const info = [element(0x2ad7b1, 1_000_000), element(0x4d80, app), element(0x5741, app)];
  return Buffer.concat([
    element(0x1a45dfa3, Buffer.concat(ebml)),
    // A segment of unknown size.
    Buffer.from('1853806701ffffffffffffff', 'hex'),
    element(0x1549a966, Buffer.concat(info)),
    // Tracks: TrackEntry
    element(0x1654ae6b, element(0xae, Buffer.concat(size === null ? soundTrack() : pictureTrack(size)))),
  ]);
}

/** "OpusHead", version 1, two channels, no samples to skip, 48 kHz (RFC 7845, section 5.1). */
const OPUS_HEAD = Buffer.from('4f707573486561640102000080bb0000000000', 'hex');
const SEEK_PREROLL_NS = 80_000_000;

function soundTrack(): Buffer[] {
  const rate = Buffer.alloc(8);
  rate.writeDoubleBE(48_000);
  return [
    // TrackNumber, TrackUID, TrackType, CodecID, CodecPrivate, SeekPreRoll
    ...[element(0xd7, 1), element(0x73c5, 1), element(0x83, 2), element(0x86, Buffer.from('A_OPUS'))],
    ...[element(0x63a2, OPUS_HEAD), element(0x56bb, SEEK_PREROLL_NS)],
    // Audio: SamplingFrequency, Channels
    element(0xe1, Buffer.concat([element(0xb5, rate), element(0x9f, 2)])),
  ];
}

function pictureTrack({ width, height }: { width: number; height: number }): Buffer[] {
  return [
    ...[element(0xd7, 1), element(0x73c5, 1), element(0x83, 1), element(0x86, Buffer.from('V_VP8'))],
    // Video: PixelWidth, PixelHeight
    element(0xe0, Buffer.concat([element(0xb0, width), element(0xba, height)])),
  ];
}

function element(id: number, content: Buffer | number): Buffer {
  const data = Buffer.isBuffer(content) ? content : bytesOf(content);
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(data.length) | (1n << 56n));
  return Buffer.concat([bytesOf(id), size, data]);
}

function bytesOf(value: number): Buffer {
  const hex = value.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
}
