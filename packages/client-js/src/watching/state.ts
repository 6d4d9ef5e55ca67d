/** The time until the effect of a reduction, or of the end of an interruption, is there. */
export const SETTLE_MS = 1_600;
export const PAUSE_MS = 2_500;

/**
 * `free`: everything is received in full. `held`: the budget limits what is received. `probing`: a higher budget is
 * tried.
 */
type DownlinkMode = 'free' | 'held' | 'probing';

export type Brake = 'none' | 'half' | 'slow' | 'stop';

export interface SuspectedQueue {
  /** With the part that is harmless. */
  queueMs: number;
  budgetBps: number;
}

export interface Packets {
  atMs: number;
  sent: number;
  lost: number;
}

export interface DownlinkState {
  mode: DownlinkMode;
  /** Bits per second for video; Infinity if `free`. */
  budgetBps: number;
  /** The budget before the present probe, and the loss with it. */
  provenBps: number;
  provenLoss: number;
  failures: number;
  /** The budget that failed: until `ceilingUntilMs` no probe reaches it. Infinity once a probe has passed it. */
  ceilingBps: number;
  ceilingUntilMs: number;
  /** Until then the key frames of a probe's larger pictures arrive. */
  enteredAtMs: number;
  /** Until `brakedUntilMs`, when the present rate begins, video waits (`stop`) or comes at a low frame rate (`slow`), so that the queue drains. */
  brake: Brake;
  brakedUntilMs: number;
  passedAtMs: number;
  /** When packets arrived last, or none were expected. */
  heardAtMs: number;
  /** When the next probe begins (`held`), or the present one has passed (`probing`). */
  nextAtMs: number;
  /** Until then the effect of a reduction is not there yet, and congestion is no news. */
  settledAtMs: number;
  /** Of the latest samples at the present rate. */
  packets: readonly Packets[];
  /** Their loss, from 0 to 1; and what the line loses at least, as of the last sample, if the rest is chance. */
  loss: number;
  sureLoss: number;
  /** Loss that lower rates have not reduced, such as that of a radio link. */
  harmlessLoss: number;
  /** The loss because of which the budget was reduced last, if no queue was seen. */
  suspectedLoss: number | undefined;
  /** A longer delay that lower rates have not reduced, in milliseconds: the route has become longer. */
  harmlessQueueMs: number;
  /** The queue because of which the budget was reduced last, and what was held before. */
  suspectedQueue: SuspectedQueue | undefined;
  /** The queue as of the latest report, without the harmless part, in milliseconds; and the reports in a row with one. */
  queueMs: number;
  queued: number;
  reducedAtMs: number;
  /** The latest two of {@link Line.burstBps} since then, and until when they do not show a wide line. */
  bursts: readonly number[];
  wideFromMs: number;
  /** Samples in a row with more loss than what is harmless, and with so much that it shows congestion without a queue. */
  lossy: number;
  veryLossy: number;
  /** Bits per second of all audio, which comes first. */
  audioBps: number;
  levels: ReadonlyMap<string, number>;
}

export const INITIAL: DownlinkState = {
  mode: 'free',
  budgetBps: Infinity,
  provenBps: 0,
  provenLoss: 0,
  failures: 0,
  ceilingBps: Infinity,
  ceilingUntilMs: 0,
  enteredAtMs: 0,
  brake: 'none',
  brakedUntilMs: 0,
  passedAtMs: -Infinity,
  heardAtMs: -Infinity,
  nextAtMs: 0,
  reducedAtMs: -Infinity,
  settledAtMs: 0,
  packets: [],
  loss: 0,
  sureLoss: 0,
  harmlessLoss: 0,
  suspectedLoss: undefined,
  harmlessQueueMs: 0,
  suspectedQueue: undefined,
  queueMs: 0,
  queued: 0,
  bursts: [],
  wideFromMs: 0,
  lossy: 0,
  veryLossy: 0,
  audioBps: 0,
  levels: new Map(),
};

/**
 * The connection is up again after an interruption, perhaps over another path. What was held before is the best guess;
 * what was tried, and the signs of that time, say nothing.
 */
export function resumed(state: DownlinkState, nowMs: number): DownlinkState {
  const isProbe = state.mode === 'probing';
  return {
    ...state,
    mode: isProbe ? 'held' : state.mode,
    budgetBps: isProbe ? state.provenBps : state.budgetBps,
    enteredAtMs: 0,
    brake: 'none',
    brakedUntilMs: 0,
    packets: [],
    suspectedLoss: undefined,
    harmlessQueueMs: 0,
    suspectedQueue: undefined,
    queueMs: 0,
    queued: 0,
    bursts: [],
    lossy: 0,
    veryLossy: 0,
    // The key frames of all tracks come at once.
    settledAtMs: nowMs + SETTLE_MS,
    nextAtMs: nowMs + PAUSE_MS,
  };
}

/**
 * The brake at this moment. A video that was stopped comes with half its frame rate at first: the media server sends the old layer until a
 * key frame of the lower one arrives, and a paused video gets none.
 */
export function brakeAt({ brake, brakedUntilMs, settledAtMs }: DownlinkState, nowMs: number): Brake {
  if (nowMs < brakedUntilMs) return brake;
  return brake === 'stop' && nowMs < settledAtMs ? 'half' : 'none';
}
