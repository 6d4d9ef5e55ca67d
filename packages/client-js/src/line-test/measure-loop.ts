import type { LoopFigures } from '../test-connection.js';
import { pause } from '../wait.js';
import type { Pair } from './pair.js';

/** As a packet of speech: its bytes, and the time between two of them. A loop carries as many of the other direction. */
const SPEECH_BYTES = 40;
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

/**
 * First the loss and the round trip with few messages, then the rate with many: each for half of the time.
 * @param isSplit only the far end's way to its relay loses packets: messages to the far end are lost on the way down,
 *   messages from it on the way up
 */
export async function measureLoop(
  { near, far }: Pair,
  isSplit: boolean,
  seconds: number,
  now: () => number,
): Promise<LoopFigures> {
  const halfMs = seconds * 500;
  const [down, up] = [directionOf(near, far, now), directionOf(far, near, now)];
  const endsAt = now() + halfMs;
  while (now() < endsAt && isOpen(near)) {
    for (const direction of [down, up]) direction.send();
    await pause(SPEECH_EVERY_MS).over;
  }
  for (const lateAt = now() + LATE_MS; lossOf(down, up) > 0 && now() < lateAt;) await pause(SPEECH_EVERY_MS).over;
  const [lossDown, lossUp] = [lossOf(down), lossOf(up)];
  const loss = isSplit ? 1 - (1 - lossDown) * (1 - lossUp) : lossOf(down, up);
  const tripsMs = [...down.tripsMs, ...up.tripsMs].sort((a, b) => a - b);
  return {
    roundTripMs: Math.round(tripsMs[tripsMs.length >> 1] ?? 0),
    lossPercent: percent(loss),
    lossUpPercent: isSplit ? percent(lossUp) : undefined,
    lossDownPercent: isSplit ? percent(lossDown) : undefined,
    kbitPerSecond: await measureRate({ near, far }, halfMs, now),
  };
}

interface Direction {
  sentAtMs: number[];
  /** Of the messages that have arrived. */
  tripsMs: number[];
  send: () => void;
}

function directionOf(from: RTCDataChannel, to: RTCDataChannel, now: () => number): Direction {
  const sentAtMs: number[] = [];
  const tripsMs: number[] = [];
  to.binaryType = 'arraybuffer';
  to.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    const sentAt = sentAtMs[new DataView(data).getUint32(0)];
    if (sentAt !== undefined) tripsMs.push(now() - sentAt);
  };
  const send = () => {
    if (!isOpen(from)) return;
    const message = new DataView(new ArrayBuffer(SPEECH_BYTES));
    message.setUint32(0, sentAtMs.length);
    sentAtMs.push(now());
    from.send(message.buffer);
  };
  return { sentAtMs, tripsMs, send };
}

function lossOf(...directions: Direction[]): number {
  const sum = (of: 'sentAtMs' | 'tripsMs') => directions.reduce((all, direction) => all + direction[of].length, 0);
  return 1 - sum('tripsMs') / Math.max(1, sum('sentAtMs'));
}

function percent(share: number): number {
  return Math.round(1000 * share) / 10;
}

async function measureRate(
  { near, far }: Pick<Pair, 'near' | 'far'>,
  forMs: number,
  now: () => number,
): Promise<number> {
  const full = new Uint8Array(FULL_BYTES);
  const beganAt = now();
  let sent = 0;
  let bytes = 0;
  let before: { atMs: number; bytes: number } | undefined;
  far.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => (bytes += data.byteLength);
  for (let passedMs = 0; passedMs < forMs && isOpen(near); passedMs = now() - beganAt) {
    if (before === undefined && passedMs >= forMs * GROWS_FOR) before = { atMs: passedMs, bytes };
    while (sent < (KBIT_PER_SECOND_MAX / 8) * passedMs && near.bufferedAmount < BUFFERED_BYTES_MAX) {
      near.send(full);
      sent += FULL_BYTES;
    }
    await pause(SPEECH_EVERY_MS / 2).over;
  }
  const { atMs, bytes: first } = before ?? { atMs: 0, bytes: 0 };
  const kbitPerSecond = ((bytes - first) * 8) / Math.max(1, now() - beganAt - atMs);
  return Math.min(KBIT_PER_SECOND_MAX, Math.round(kbitPerSecond));
}

function isOpen({ readyState }: RTCDataChannel): boolean {
  return readyState === 'open';
}
