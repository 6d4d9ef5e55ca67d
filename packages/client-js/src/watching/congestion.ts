import { SETTLE_MS, type DownlinkState, type SuspectedQueue } from './state.js';
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
/** Invented audio shows congestion if there is a queue or loss that may be its cause. */
const CONCEALED = 0.08;
const QUEUE_SHORT_MS = 40;
/** How fast the memory of harmless loss fades with each sample that has less. */
const FADES = 0.97;
/** If a lower rate leaves more than this part of the loss, the rate was not its cause. */
const LOSS_REMAINS = 0.7;
const HARMLESS_LOSS_MAX = 0.4;
/** If a lower rate leaves more than this part of a queue, and no loss, there is no queue: the route is longer. */
const QUEUE_REMAINS = 0.8;
/** A report shows the effect of a reduction if it was sent at most this much before the reduction counts as settled. */
const EFFECT_EARLIER_MS = 300;
/** A probe ends at the first sign of congestion, once the key frames of its larger pictures are there. */
const PROBE_QUEUE_MS = 80;
const PROBE_LOSS = 0.04;
const PROBE_CONCEALED = 0.03;

/** Notes the signs of a sample. */
export function withLine(
  state: DownlinkState,
  { queueMs: delayMs, audioBps, loss }: Line,
  nowMs: number,
): DownlinkState {
  const sent = audioBps / Math.max(0.8, 1 - loss);
  const { harmlessLoss } = state;
  const harmlessQueueMs = Math.min(state.harmlessQueueMs, delayMs ?? Infinity);
  const queueMs = delayMs === undefined ? undefined : delayMs - harmlessQueueMs;
  const queued = queueMs !== undefined && queueMs > QUEUE_MS ? state.queued + 1 : 0;
  return {
    ...state,
    harmlessQueueMs,
    suspectedQueue: delayMs === undefined ? state.suspectedQueue : stillSuspected(state, delayMs, nowMs),
    queueMs: queueMs ?? state.queueMs,
    queued: queueMs === undefined ? state.queued : queued,
    lossy: loss - harmlessLoss > LOSS_WITH_QUEUE ? state.lossy + 1 : 0,
    veryLossy: loss - harmlessLoss > LOSS_ALONE ? state.veryLossy + 1 : 0,
    harmlessLoss: loss < harmlessLoss ? FADES * harmlessLoss : harmlessLoss,
    // Rises at once, and falls slowly: a pause of the speakers is short.
    audioBps: Math.max(sent, 0.95 * state.audioBps),
  };
}

/** A report that was sent before the reduction shows how long the queue became until then: it may be seconds long. */
function stillSuspected(
  { suspectedQueue, settledAtMs }: DownlinkState,
  delayMs: number,
  nowMs: number,
): SuspectedQueue | undefined {
  if (suspectedQueue === undefined || delayMs < QUEUE_REMAINS * suspectedQueue.queueMs) return undefined;
  const isOlder = nowMs - delayMs < settledAtMs - SETTLE_MS;
  return isOlder ? { ...suspectedQueue, queueMs: Math.max(suspectedQueue.queueMs, delayMs) } : suspectedQueue;
}

export function isCongested(state: DownlinkState, { loss, concealed }: Line): boolean {
  const { mode, queued, queueMs, harmlessLoss, lossy, veryLossy } = state;
  const excess = loss - harmlessLoss;
  if (queueMs > QUEUE_LONG_MS || queued >= QUEUED_IN_A_ROW) return true;
  if (queueMs > QUEUE_MS && excess > LOSS_WITH_QUEUE) return true;
  if (concealed > CONCEALED && queueMs > QUEUE_SHORT_MS) return true;
  if (veryLossy >= LOSSY_IN_A_ROW) return true;
  if (concealed > CONCEALED && lossy >= LOSSY_IN_A_ROW) return true;
  const isHeard = queueMs > QUEUE_SHORT_MS || excess > LOSS_WITH_QUEUE;
  return (
    mode === 'probing' && (queueMs > PROBE_QUEUE_MS || excess > PROBE_LOSS || (concealed > PROBE_CONCEALED && isHeard))
  );
}

/** Compares the loss, or the queue, before and after the reduction. */
export function judged(state: DownlinkState, line: Line, nowMs: number): DownlinkState {
  return withJudgedQueue(withJudgedLoss(state, line), line, nowMs);
}

function withJudgedLoss(state: DownlinkState, { loss }: Line): DownlinkState {
  if (state.suspectedLoss === undefined) return state;
  const remains = loss > state.suspectedLoss * LOSS_REMAINS && loss <= HARMLESS_LOSS_MAX;
  return { ...state, suspectedLoss: undefined, harmlessLoss: remains ? loss : state.harmlessLoss };
}

/** The queue counts from the first report that was sent when the effect of the reduction was there. */
function withJudgedQueue(state: DownlinkState, { loss, queueMs }: Line, nowMs: number): DownlinkState {
  const { suspectedQueue, harmlessLoss, settledAtMs } = state;
  if (suspectedQueue === undefined) return state;
  if (loss - harmlessLoss > LOSS_WITH_QUEUE) return { ...state, suspectedQueue: undefined };
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
    queueMs: 0,
    queued: 0,
  };
}
