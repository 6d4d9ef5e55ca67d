import type { DownlinkState } from './downlink-state.js';
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
/** A probe ends at the first sign of congestion, once the key frames of its larger pictures are there. */
const PROBE_QUEUE_MS = 80;
const PROBE_LOSS = 0.04;
const PROBE_CONCEALED = 0.03;

/** Notes the signs of a sample. */
export function withLine(state: DownlinkState, { queueMs: delayMs, audioBps, loss }: Line): DownlinkState {
  const sent = audioBps / Math.max(0.8, 1 - loss);
  const { harmlessLoss, suspectedQueue } = state;
  const harmlessQueueMs = Math.min(state.harmlessQueueMs, delayMs ?? Infinity);
  const queueMs = delayMs === undefined ? undefined : delayMs - harmlessQueueMs;
  const hasDrained = delayMs !== undefined && delayMs < QUEUE_REMAINS * (suspectedQueue?.queueMs ?? 0);
  const queued = queueMs !== undefined && queueMs > QUEUE_MS ? state.queued + 1 : 0;
  return {
    ...state,
    harmlessQueueMs,
    suspectedQueue: hasDrained ? undefined : suspectedQueue,
    queueMs: queueMs ?? state.queueMs,
    queued: queueMs === undefined ? state.queued : queued,
    lossy: loss - harmlessLoss > LOSS_WITH_QUEUE ? state.lossy + 1 : 0,
    veryLossy: loss - harmlessLoss > LOSS_ALONE ? state.veryLossy + 1 : 0,
    harmlessLoss: loss < harmlessLoss ? FADES * harmlessLoss : harmlessLoss,
    // Rises at once, and falls slowly: a pause of the speakers is short.
    audioBps: Math.max(sent, 0.95 * state.audioBps),
  };
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
export function judged(state: DownlinkState, line: Line): DownlinkState {
  return withJudgedQueue(withJudgedLoss(state, line), line);
}

function withJudgedLoss(state: DownlinkState, { loss }: Line): DownlinkState {
  if (state.suspectedLoss === undefined) return state;
  const remains = loss > state.suspectedLoss * LOSS_REMAINS && loss <= HARMLESS_LOSS_MAX;
  return { ...state, suspectedLoss: undefined, harmlessLoss: remains ? loss : state.harmlessLoss };
}

/** The queue counts from the first report after the effect of the reduction is there. */
function withJudgedQueue(state: DownlinkState, { loss, queueMs }: Line): DownlinkState {
  const { suspectedQueue, harmlessLoss } = state;
  if (suspectedQueue === undefined) return state;
  if (loss - harmlessLoss > LOSS_WITH_QUEUE) return { ...state, suspectedQueue: undefined };
  // An earlier report says nothing yet.
  if (queueMs === undefined) return { ...state, queueMs: 0, queued: 0 };
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
