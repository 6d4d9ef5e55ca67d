import type { LoopFigures } from '../test-connection.js';
import { pause } from '../wait.js';
import type { Pair } from './pair.js';

/** As a packet of speech: its bytes, and the time between two of them. */
const SPEECH_BYTES = 160;
const SPEECH_EVERY_MS = 20;
/** A message of this size fits into one packet. */
const FULL_BYTES = 1_100;
export const KBIT_PER_SECOND_MAX = 4_000;
/** More would wait in the browser than the line carries in a moment. */
const BUFFERED_BYTES_MAX = 64 * 1024;
/** How long the last messages may take. */
const LATE_MS = 1_000;
/** The part of the time in which the rate still grows. */
const GROWS_FOR = 1 / 3;

/** First the loss and the round trip with few messages, then the rate with many: each for half of the time. */
export async function measureLoop({ near, far }: Pair, seconds: number, now: () => number): Promise<LoopFigures> {
  const halfMs = seconds * 500;
  const tripsMs: number[] = [];
  const sentAtMs: number[] = [];
  let bytes = 0;
  far.binaryType = 'arraybuffer';
  far.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    bytes += data.byteLength;
    const sentAt = data.byteLength === SPEECH_BYTES ? sentAtMs[new DataView(data).getUint32(0)] : undefined;
    if (sentAt !== undefined) tripsMs.push(now() - sentAt);
  };

  const endsAt = now() + halfMs;
  while (now() < endsAt && isOpen(near)) {
    const message = new DataView(new ArrayBuffer(SPEECH_BYTES));
    message.setUint32(0, sentAtMs.length);
    sentAtMs.push(now());
    near.send(message.buffer);
    await pause(SPEECH_EVERY_MS).over;
  }
  for (const lateAt = now() + LATE_MS; tripsMs.length < sentAtMs.length && now() < lateAt;) {
    await pause(SPEECH_EVERY_MS).over;
  }
  const arrived = tripsMs.length;

  const full = new Uint8Array(FULL_BYTES);
  const beganAt = now();
  let sent = 0;
  let before: { atMs: number; bytes: number } | undefined;
  bytes = 0;
  for (let passedMs = 0; passedMs < halfMs && isOpen(near); passedMs = now() - beganAt) {
    if (before === undefined && passedMs >= halfMs * GROWS_FOR) before = { atMs: passedMs, bytes };
    while (sent < (KBIT_PER_SECOND_MAX / 8) * passedMs && near.bufferedAmount < BUFFERED_BYTES_MAX) {
      near.send(full);
      sent += FULL_BYTES;
    }
    await pause(SPEECH_EVERY_MS / 2).over;
  }
  const { atMs, bytes: first } = before ?? { atMs: 0, bytes: 0 };
  const kbitPerSecond = ((bytes - first) * 8) / Math.max(1, now() - beganAt - atMs);
  tripsMs.sort((a, b) => a - b);
  return {
    roundTripMs: Math.round(tripsMs[arrived >> 1] ?? 0),
    lossPercent: Math.round(1000 * (1 - arrived / Math.max(1, sentAtMs.length))) / 10,
    kbitPerSecond: Math.min(KBIT_PER_SECOND_MAX, Math.round(kbitPerSecond)),
  };
}

function isOpen({ readyState }: RTCDataChannel): boolean {
  return readyState === 'open';
}
