import type { Brake } from './brake.js';
import type { Line } from './line.js';

/** A queue of this length shows congestion at once, */
export const QUEUE_LONG_MS = 250;
/** and one of this length if it lasts, or if packets are lost, too. */
export const QUEUE_MS = 80;
const QUEUED_IN_A_ROW = 2;
export const LOSS_WITH_QUEUE = 0.02;
/** Loss that shows congestion without a queue, as behind a policer, if it lasts: a short cut also loses packets. */
const LOSS_ALONE = 0.15;
const LOSSY_IN_A_ROW = 2;
/** Of the packets of this time, loss counts only by as much as chance does not explain: two standard deviations. */
const LOSS_WITHIN_MS = 2_000;
const DEVIATIONS = 2;
/** Invented audio shows congestion if there is a queue, too: a lossy line also makes the decoder invent. */
const CONCEALED = 0.08;
export const QUEUE_SHORT_MS = 40;
/** How fast the memory of harmless loss fades with each sample that has less. */
const FADES = 0.97;
/** A report shows the effect of a reduction if it was sent at most this much before the reduction counts as settled. */
export const EFFECT_EARLIER_MS = 300;
/** The number of bursts that tell the speed of the line. It is wide if they are this much faster than what is needed. */
const BURSTS = 2;
const WIDE = 1.5;
/** Audio gets this much more than it has needed, because packets of video come in bursts. */
const AUDIO_SHARE = 1.2;
const AUDIO_EXTRA_BPS = 5_000;

/** Sent and lost packets of the latest samples. */
export type Packets = readonly { atMs: number; sent: number; lost: number }[];

/** What the samples show of the line. */
export const NO_SIGNS = {
  /** When packets arrived last, or none were expected. */
  heardAtMs: -Infinity,
  /** Of the latest samples at the present rate. */
  packets: [] as Packets,
  /** Their loss, from 0 to 1; and the least loss of the line, as of the last sample, if the rest is chance. */
  loss: 0,
  sureLoss: 0,
  /** Loss that lower rates have not reduced, such as that of a radio link. */
  harmlessLoss: 0,
  /** A longer delay that lower rates have not reduced, in milliseconds: the route has become longer. */
  harmlessQueueMs: 0,
  /** The queue as of the latest report, without the harmless part, in milliseconds; and the reports in a row with one. */
  queueMs: 0,
  queued: 0,
  /** The latest two of {@link Line.burstBps} since the last reduction. */
  bursts: [] as readonly number[],
  /** Samples in a row with so much loss that it shows congestion without a queue. */
  veryLossy: 0,
  /** Bits per second of all audio, which comes first. */
  audioBps: 0,
};

export type Signs = Readonly<typeof NO_SIGNS>;

/** The queue is no news. */
export const NO_QUEUE = { queueMs: 0, queued: 0 };

/** @param settledAtMs when the effect of the last reduction is there */
export function afterSample(
  before: Signs,
  { queueMs: delayMs, audioBps, packets, loss, burstBps }: Line,
  { brake, settledAtMs }: { brake: Brake; settledAtMs: number },
  nowMs: number,
): Signs {
  const signs = withPackets(before, { atMs: nowMs, sent: packets, lost: loss * packets }, brake.untilMs);
  const harmlessQueueMs = Math.min(signs.harmlessQueueMs, delayMs ?? Infinity);
  // An earlier report shows the queue from before the reduction.
  const isCurrent = nowMs >= settledAtMs - EFFECT_EARLIER_MS;
  const queueMs = delayMs === undefined || !isCurrent ? undefined : delayMs - harmlessQueueMs;
  const queued = queueMs !== undefined && queueMs > QUEUE_MS ? signs.queued + 1 : 0;
  return {
    ...signs,
    harmlessQueueMs,
    queueMs: queueMs ?? signs.queueMs,
    queued: queueMs === undefined ? signs.queued : queued,
    bursts: burstBps === undefined ? signs.bursts : [burstBps, ...signs.bursts.slice(0, BURSTS - 1)],
    veryLossy: lossBeyond(signs) > LOSS_ALONE ? signs.veryLossy + 1 : 0,
    // Rises at once, and falls slowly: a pause of the speakers is short.
    audioBps: Math.max(audioBps / Math.max(0.8, 1 - loss), 0.95 * signs.audioBps),
  };
}

/**
 * Adds a sample and forgets old ones, and those from before `fromMs`. A loss that one sample proves counts at once, and
 * the loss of a short cut is over with the next sample.
 */
export function withSample(packets: Packets, sample: Packets[number], fromMs = -Infinity) {
  const sinceMs = Math.max(sample.atMs - LOSS_WITHIN_MS, fromMs);
  const kept = [...packets.filter(({ atMs }) => atMs > sinceMs), sample];
  const [all, one] = [lossOf(kept), lossOf([sample])];
  return { packets: kept, all, sureLoss: Math.min(one.loss, Math.max(one.least, all.least)) };
}

/** The packets of another rate say nothing about the present one. */
function withPackets(signs: Signs, sample: Packets[number], rateFromMs: number): Signs {
  const { packets, all, sureLoss } = withSample(signs.packets, sample, rateFromMs);
  const { harmlessLoss } = signs;
  return {
    ...signs,
    packets,
    loss: all.loss,
    sureLoss,
    harmlessLoss: all.most < harmlessLoss ? FADES * harmlessLoss : harmlessLoss,
  };
}

/** Wilson's score interval: between which values the loss of the line is, unless chance goes beyond the deviations. */
function lossOf(packets: Packets): { loss: number; least: number; most: number } {
  const sent = packets.reduce((sum, one) => sum + one.sent, 0);
  const lost = packets.reduce((sum, one) => sum + one.lost, 0);
  if (sent === 0) return { loss: 0, least: 0, most: 1 };
  const loss = lost / sent;
  const square = DEVIATIONS ** 2 / sent;
  const middle = (loss + square / 2) / (1 + square);
  const half = Math.sqrt(square * loss * (1 - loss) + square ** 2 / 4) / (1 + square);
  return { loss, least: middle - half, most: middle + half };
}

/** The loss that is neither chance nor harmless. */
export function lossBeyond({ sureLoss, harmlessLoss }: Signs): number {
  return sureLoss - harmlessLoss;
}

export function isCongested(signs: Signs, { concealed }: Line): boolean {
  const { queued, queueMs, veryLossy } = signs;
  if (queueMs > QUEUE_LONG_MS || queued >= QUEUED_IN_A_ROW || veryLossy >= LOSSY_IN_A_ROW) return true;
  if (queueMs > QUEUE_MS && lossBeyond(signs) > LOSS_WITH_QUEUE) return true;
  return concealed > CONCEALED && queueMs > QUEUE_SHORT_MS;
}

/** How fast the line is at least and at most, as the packets of pictures show it; undefined if they do not. */
export function burstOf({ bursts }: Signs): { least: number; most: number } | undefined {
  if (bursts.length < BURSTS) return undefined;
  return { least: Math.min(...bursts), most: Math.max(...bursts) };
}

export function areBurstsWide(signs: Signs, neededBps: number): boolean {
  return (burstOf(signs)?.least ?? 0) >= WIDE * neededBps;
}

/** A wide line has no queue: its route is longer. */
export function withLongerRoute(signs: Signs): Signs {
  const harmlessQueueMs = signs.harmlessQueueMs + signs.queueMs;
  return { ...signs, harmlessQueueMs, harmlessLoss: Math.max(signs.harmlessLoss, signs.loss), ...NO_QUEUE };
}

export function audioReserve({ audioBps }: Signs): number {
  return AUDIO_SHARE * audioBps + AUDIO_EXTRA_BPS;
}
