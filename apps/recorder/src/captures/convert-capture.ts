import { ArrivalClock } from './arrival-clock.js';
import { CODECS, Reorder, type Frame } from './frames.js';
import { readPackets, type CaptureHeader, type Packet } from './packets.js';
import { WebmWriter } from './webm-writer.js';

/** A part of a capture that becomes a file. Times are milliseconds since the recording's begin. */
export interface Part {
  fromMs: number;
  toMs: number;
  /** Where the file goes. */
  path: string;
}

interface ConvertedPart {
  startMs: number;
  durationMs: number;
  size: { width: number; height: number } | null;
}

export type Conversion = { outcome: 'converted'; parts: (ConvertedPart | null)[] } | { outcome: 'codec_unsupported' };

/**
 * Writes parts of a capture as WebM. Reads the capture twice: for the clock, and for the frames.
 * @param startedMs arrival of the first packet, in milliseconds since the recording's begin
 * @returns null for parts without a frame
 */
export async function convertCapture(path: string, startedMs: number, parts: readonly Part[]): Promise<Conversion> {
  const { header, clock, origin } = await readClock(path);
  const codec = CODECS[header.c];
  if (codec === undefined) return { outcome: 'codec_unsupported' };
  if (origin === null) return { outcome: 'converted', parts: parts.map(() => null) };
  const outputs = parts.map((part) => new Output(part, codec.frameMs, header.c === 'opus'));
  const depacketize = codec.frames();
  const write = async (packets: readonly Packet[]): Promise<void> => {
    for (const packet of packets) {
      const frame = depacketize(packet);
      if (frame === null) continue;
      const ms = startedMs + clock.at((frame.timestamp - origin) / codec.rtpPerMs);
      for (const output of outputs) await output.add(ms, frame);
    }
  };
  const reorder = new Reorder();
  try {
    for await (const packets of readPackets(path)) await write(reorder.add(packets));
    await write(reorder.rest());
  } finally {
    await Promise.all(outputs.map((output) => output.close()));
  }
  return { outcome: 'converted', parts: outputs.map((output) => output.result) };
}

async function readClock(path: string) {
  let header: CaptureHeader = { c: '' };
  let origin: number | null = null;
  const clock = new ArrivalClock();
  for await (const packets of readPackets(path, (read) => (header = read))) {
    const rtpPerMs = CODECS[header.c]?.rtpPerMs ?? 1;
    for (const { arrivalMs, timestamp } of packets) {
      origin ??= timestamp;
      clock.add(arrivalMs, (timestamp - origin) / rtpPerMs);
    }
  }
  return { header, clock, origin };
}

/** The file of one part. It begins with its first frame, and a picture with one that needs no other. */
class Output {
  readonly #part: Part;
  readonly #frameMs: number;
  readonly #isSound: boolean;
  #writer: WebmWriter | null = null;
  #startMs = 0;
  #endMs = 0;
  #size: ConvertedPart['size'] = null;

  constructor(part: Part, frameMs: number, isSound: boolean) {
    this.#part = part;
    this.#frameMs = frameMs;
    this.#isSound = isSound;
  }

  get result(): ConvertedPart | null {
    if (this.#writer === null) return null;
    const startMs = Math.max(0, Math.round(this.#startMs));
    return { startMs, durationMs: Math.round(this.#endMs - this.#startMs), size: this.#size };
  }

  async add(ms: number, { data, keySize }: Frame): Promise<void> {
    if (ms < this.#part.fromMs || ms >= this.#part.toMs) return;
    if (this.#writer === null) {
      if (!this.#isSound && keySize === null) return;
      this.#writer = await WebmWriter.create(this.#part.path, this.#isSound ? null : keySize);
      this.#startMs = ms;
      this.#size = keySize;
    }
    this.#endMs = Math.max(this.#endMs, ms + this.#frameMs);
    await this.#writer.write(ms - this.#startMs, data, this.#isSound || keySize !== null);
  }

  async close(): Promise<void> {
    await this.#writer?.close();
  }
}
