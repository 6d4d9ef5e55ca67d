import { areSmallest } from './ladder.js';
import { SETTLE_MS, type DownlinkState } from './state.js';
import type { Line } from './line.js';

/** A queue of this length shows congestion at once, */
export const QUEUE_LONG_MS = 250;
/** and one of this length if it lasts, or if packets are lost, too. */
export const QUEUE_MS = 80;
const QUEUED_IN_A_ROW = 2;
export const LOSS_WITH_QUEUE = 0.02;
/** Loss that shows congestion without a queue, as behind a policer, if it goes on: that of a short cut does not. */
export const LOSS_ALONE = 0.15;
const LOSSY_IN_A_ROW = 2;
/** Of the packets of this time, loss counts only by as much as chance does not explain: two standard deviations. */
const LOSS_WITHIN_MS = 2_000;
const DEVIATIONS = 2;
/** Invented audio shows congestion if there is a queue, too: a lossy line also makes the decoder invent. */
const CONCEALED = 0.08;
const QUEUE_SHORT_MS = 40;
/** How fast the memory of harmless loss fades with each sample that has less. */
const FADES = 0.97;
/** If a lower rate leaves more than this part of the loss, the rate was not its cause. */
const LOSS_REMAINS = 0.7;
const HARMLESS_LOSS_MAX = 0.4;
/** If a lower rate leaves more than this part of a queue, and all but so much, there is no queue: the route is longer. */
const QUEUE_REMAINS = 0.8;
const QUEUE_DRAINS_MS = 250;
/** A report shows the effect of a reduction if it was sent at most this much before the reduction counts as settled. */
const EFFECT_EARLIER_MS = 300;
/** So many bursts say how fast the line is, and that it is wide if they are this much faster than what is needed. */
const BURSTS = 2;
const WIDE = 1.5;
/**
 * A probe ends at the first sign of congestion, once the key frames of its larger pictures are there. On a line that carries
 * more than the smallest pictures, some pictures in a row that need many bits are no sign.
 */
const PROBE_QUEUE_MS = 180;
const PROBE_QUEUE_SMALLEST_MS = 80;
const PROBE_LOSS = 0.04;
const PROBE_CONCEALED = 0.03;

export function withLine(
  before: DownlinkState,
  { queueMs: delayMs, audioBps, packets, loss, burstBps }: Line,
  nowMs: number,
): DownlinkState {
  const sent = audioBps / Math.max(0.8, 1 - loss);
  const state = withPackets(before, { atMs: nowMs, sent: packets, lost: loss * packets });
  const excess = state.sureLoss - state.harmlessLoss;
  const harmlessQueueMs = Math.min(state.harmlessQueueMs, delayMs ?? Infinity);
  // An earlier report shows the queue from before the reduction.
  const isCurrent = nowMs >= before.settledAtMs - EFFECT_EARLIER_MS;
  const queueMs = delayMs === undefined || !isCurrent ? undefined : delayMs - harmlessQueueMs;
  const queued = queueMs !== undefined && queueMs > QUEUE_MS ? state.queued + 1 : 0;
  return {
    ...state,
    harmlessQueueMs,
    suspectedQueue: delayMs === undefined ? state.suspectedQueue : stillSuspected(state, delayMs, nowMs),
    queueMs: queueMs ?? state.queueMs,
    queued: queueMs === undefined ? state.queued : queued,
    bursts: burstBps === undefined ? state.bursts : [burstBps, ...state.bursts.slice(0, BURSTS - 1)],
    veryLossy: excess > LOSS_ALONE ? state.veryLossy + 1 : 0,
    // Rises at once, and falls slowly: a pause of the speakers is short.
    audioBps: Math.max(sent, 0.95 * state.audioBps),
  };
}

/** The packets of another rate say nothing about the present one. What one sample proves counts at once. */
function withPackets(state: DownlinkState, sample: DownlinkState['packets'][number]): DownlinkState {
  const fromMs = Math.max(sample.atMs - LOSS_WITHIN_MS, state.brakedUntilMs);
  const packets = [...state.packets.filter(({ atMs }) => atMs > fromMs), sample];
  const all = lossOf(packets);
  const one = lossOf([sample]);
  const { harmlessLoss } = state;
  return {
    ...state,
    packets,
    loss: all.loss,
    // The loss of a short cut is over with the next sample.
    sureLoss: Math.min(one.loss, Math.max(one.least, all.least)),
    harmlessLoss: all.most < harmlessLoss ? FADES * harmlessLoss : harmlessLoss,
  };
}

/** Wilson's score interval: between which values the loss of the line is, unless chance goes beyond the deviations. */
function lossOf(packets: DownlinkState['packets']): { loss: number; least: number; most: number } {
  const sent = packets.reduce((sum, one) => sum + one.sent, 0);
  const lost = packets.reduce((sum, one) => sum + one.lost, 0);
  if (sent === 0) return { loss: 0, least: 0, most: 1 };
  const loss = lost / sent;
  const square = DEVIATIONS ** 2 / sent;
  const middle = (loss + square / 2) / (1 + square);
  const half = Math.sqrt(square * loss * (1 - loss) + square ** 2 / 4) / (1 + square);
  return { loss, least: middle - half, most: middle + half };
}

/** A report that was sent before the reduction shows how long the queue became until then: it may be seconds long. */
function stillSuspected(
  { suspectedQueue, settledAtMs }: DownlinkState,
  delayMs: number,
  nowMs: number,
): DownlinkState['suspectedQueue'] {
  if (suspectedQueue === undefined) return undefined;
  const { queueMs } = suspectedQueue;
  if (delayMs < Math.max(QUEUE_REMAINS * queueMs, queueMs - QUEUE_DRAINS_MS)) return undefined;
  const isOlder = nowMs - delayMs < settledAtMs - SETTLE_MS;
  return isOlder ? { ...suspectedQueue, queueMs: Math.max(queueMs, delayMs) } : suspectedQueue;
}

export function isCongested(state: DownlinkState, { concealed }: Line): boolean {
  const { mode, levels, queued, queueMs, sureLoss, harmlessLoss, provenLoss, veryLossy } = state;
  if (queueMs > QUEUE_LONG_MS || queued >= QUEUED_IN_A_ROW) return true;
  if (queueMs > QUEUE_MS && sureLoss - harmlessLoss > LOSS_WITH_QUEUE) return true;
  if (concealed > CONCEALED && queueMs > QUEUE_SHORT_MS) return true;
  if (veryLossy >= LOSSY_IN_A_ROW) return true;
  // What was lost before the probe is not its doing.
  const more = sureLoss - Math.max(harmlessLoss, provenLoss);
  const isHeard = queueMs > QUEUE_SHORT_MS || more > LOSS_WITH_QUEUE;
  const probeQueueMs = areSmallest(levels.values()) ? PROBE_QUEUE_SMALLEST_MS : PROBE_QUEUE_MS;
  return (
    mode === 'probing' && (queueMs > probeQueueMs || more > PROBE_LOSS || (concealed > PROBE_CONCEALED && isHeard))
  );
}

/** How fast the line is at least and at most, as the packets of pictures show it; undefined if they do not. */
export function burstOf({ bursts }: DownlinkState): { least: number; most: number } | undefined {
  if (bursts.length < BURSTS) return undefined;
  return { least: Math.min(...bursts), most: Math.max(...bursts) };
}

export function isWide(state: DownlinkState, neededBps: number, nowMs: number): boolean {
  return nowMs >= state.wideFromMs && (burstOf(state)?.least ?? 0) >= WIDE * neededBps;
}

/** A wide line has no queue: its route is longer. */
export function withLongerRoute(state: DownlinkState): DownlinkState {
  const harmlessQueueMs = state.harmlessQueueMs + state.queueMs;
  const harmlessLoss = Math.max(state.harmlessLoss, state.loss);
  return { ...state, harmlessQueueMs, harmlessLoss, queueMs: 0, queued: 0 };
}

function withJudgedLoss(state: DownlinkState): DownlinkState {
  if (state.suspectedLoss === undefined) return state;
  const { loss } = state;
  const remains = loss > state.suspectedLoss * LOSS_REMAINS && loss <= HARMLESS_LOSS_MAX;
  return { ...state, suspectedLoss: undefined, harmlessLoss: remains ? loss : state.harmlessLoss };
}

/**
 * Compares the loss, or the queue, before and after the reduction. The queue counts from the first report that was sent when the effect of the reduction was there. What is still lost then
 * is no more the doing of the rate than the delay.
 */
export function judged(before: DownlinkState, { queueMs }: Line, nowMs: number): DownlinkState {
  const state = withJudgedLoss(before);
  const { suspectedQueue, settledAtMs } = state;
  if (suspectedQueue === undefined) return state;
  // An earlier report says nothing yet.
  if (queueMs === undefined || nowMs - queueMs < settledAtMs - EFFECT_EARLIER_MS)
    return { ...state, queueMs: 0, queued: 0 };
  const { budgetBps } = suspectedQueue;
  return {
    ...state,
    mode: budgetBps === Infinity ? 'free' : 'held',
    budgetBps,
    provenBps: budgetBps,
    failures: 0,
    ceilingBps: Infinity,
    ceilingUntilMs: 0,
    nextAtMs: 0,
    suspectedQueue: undefined,
    harmlessQueueMs: queueMs,
    harmlessLoss: Math.max(state.harmlessLoss, state.loss),
    queueMs: 0,
    queued: 0,
  };
}
