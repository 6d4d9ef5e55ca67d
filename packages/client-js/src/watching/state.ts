/**
 * The time until the effect of a reduction, or of the end of an interruption, is there: until then the media server sends
 * again what the queue has lost.
 */
export const SETTLE_MS = 2_000;
export const PAUSE_MS = 2_500;

/**
 * `free`: everything is received in full. `held`: the budget limits what is received. `probing`: a higher budget is
 * tried.
 */
type DownlinkMode = 'free' | 'held' | 'probing';

export type Brake = 'none' | 'half' | 'slow' | 'stop';

export const INITIAL = {
  mode: 'free' as DownlinkMode,
  /** Bits per second for video; Infinity if `free`. */
  budgetBps: Infinity,
  /** The budget before the present probe, and the loss with it. */
  provenBps: 0,
  provenLoss: 0,
  failures: 0,
  /** The budget that failed: until `ceilingUntilMs` no probe reaches it. Infinity once a probe has passed it. */
  ceilingBps: Infinity,
  ceilingUntilMs: 0,
  /** Until then the key frames of a probe's larger pictures arrive. */
  enteredAtMs: 0,
  /** Until `brakedUntilMs`, when the present rate begins, video waits (`stop`) or comes at a low frame rate (`slow`), so that the queue drains. */
  brake: 'none' as Brake,
  brakedUntilMs: 0,
  passedAtMs: -Infinity,
  /** When packets arrived last, or none were expected. */
  heardAtMs: -Infinity,
  /** When the next probe begins (`held`), or the present one has passed (`probing`). */
  nextAtMs: 0,
  /** Until then the effect of a reduction is not there yet, and congestion is no news. */
  settledAtMs: 0,
  /** Of the latest samples at the present rate. */
  packets: [] as readonly { atMs: number; sent: number; lost: number }[],
  /** Their loss, from 0 to 1; and what the line loses at least, as of the last sample, if the rest is chance. */
  loss: 0,
  sureLoss: 0,
  /** Loss that lower rates have not reduced, such as that of a radio link. */
  harmlessLoss: 0,
  /** The loss because of which the budget was reduced last, if no queue was seen. */
  suspectedLoss: undefined as number | undefined,
  /** A longer delay that lower rates have not reduced, in milliseconds: the route has become longer. */
  harmlessQueueMs: 0,
  /** The queue because of which the budget was reduced last, with its harmless part, and what was held before. */
  suspectedQueue: undefined as { queueMs: number; budgetBps: number } | undefined,
  /** The queue as of the latest report, without the harmless part, in milliseconds; and the reports in a row with one. */
  queueMs: 0,
  queued: 0,
  reducedAtMs: -Infinity,
  /** The latest two of {@link Line.burstBps} since then, and until when they do not show a wide line. */
  bursts: [] as readonly number[],
  wideFromMs: 0,
  /** Samples in a row with so much loss that it shows congestion without a queue. */
  veryLossy: 0,
  /** Bits per second of all audio, which comes first. */
  audioBps: 0,
  levels: new Map<string, number>() as ReadonlyMap<string, number>,
};

export type DownlinkState = typeof INITIAL;

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
