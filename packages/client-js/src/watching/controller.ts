import { allocate, costOf, nextCostOf, stepsBetween, type Competitor } from './allocate.js';
import {
  burstOf,
  isCongested,
  isWide,
  judged,
  LOSS_ALONE,
  LOSS_WITH_QUEUE,
  QUEUE_LONG_MS,
  QUEUE_MS,
  withLine,
  withLongerRoute,
} from './congestion.js';
import { PAUSE_MS, SETTLE_MS, type DownlinkState } from './state.js';
import { areSmallest, HIGHEST, isNewPicture, PAUSED } from './ladder.js';
import type { Line } from './line.js';

/** What a line carries while everything is paused and everyone is silent. */
const SILENCE: Line = { seconds: 1, bps: 0, audioBps: 0, packets: 0, loss: 0, queueMs: 0, concealed: 0 };

/** The part of the measured capacity that is used, so that the queue drains. */
const USED = 0.9;
/** Audio gets so much more than it has needed, because packets of video come in bursts. */
const AUDIO_SHARE = 1.2;
const AUDIO_EXTRA_BPS = 5_000;
/** Without loss the queue may be jitter. Video keeps this part of its bits; if the queue stays, the next cut takes as much. */
const VIDEO_KEPT = 0.5;
/** A reduction without effect reduces again by this factor. */
const FURTHER = 0.7;
/** With so much loss, or a long queue, video waits until the queue is empty: lower layers would come too late for it. */
const LOSS_TO_STOP = 0.08;
const BRAKE_MS = 800;
/**
 * Another picture begins with a key frame, which makes a queue for a moment. It comes at a quarter of its frame rate until
 * a report shows that the queue is gone, or that it stays because the line carries no more. Reports come once a second.
 */
const ENTRY_MS = { least: 400, most: 1_400 };
const ENTRY_QUEUE_MS = 100;
/** A probe without a sign of congestion passes after this time. */
const PROBE_MS = 1_500;
/**
 * After this time without any packet, the line counts as cut, and until then: a browser notices a cut earlier. Later it is
 * the sender of the expected video that sends nothing, and the paused ones must not wait for it.
 */
const CUT_MS = { from: 1_500, until: 15_000 };
/** A probe multiplies all bits by this, unless a budget has failed. */
const PROBE_FACTOR = 1.8;
/** A mild overload shows only after the probe has passed. */
const LATE_FAILURE_MS = 5_000;
/** How long a budget that failed is not tried again: it doubles with each failure. */
const CEILING_MS = 3_000;
const CEILING_MS_MAX = 11_000;
const CEILING_MS_MIN = 5_000;
/** No probe comes nearer to it, because what a level needs varies, and is only guessed for one that failed. */
const BARRED_FROM = 0.8;
/** A line that is too narrow for the next step is tried all the same after this time; and one that seemed wide, but was not. */
const NARROW_MS = 30_000;
const NOT_WIDE_MS = 10_000;
/** It leaves time for all further probes, so that everything is back within 15 s after the line is free. */
const BACK_WITHIN_MS = 13_000;
const PROBE_CYCLE_MS = 2_400;

/**
 * Decides after each sample in which level each video track is received. A pure function: see
 * docs/decisions/0012-adaptation.md.
 * @param line undefined if nothing was received
 */
export function decide(
  before: DownlinkState,
  line: Line | undefined,
  competitors: readonly Competitor[],
  nowMs: number,
): DownlinkState {
  const isExpecting = competitors.some(({ key }) => (before.levels.get(key) ?? 1) > PAUSED);
  const isMissing = line === undefined && isExpecting;
  if (isMissing && nowMs - before.heardAtMs < CUT_MS.until) return interrupted(before, nowMs);
  const present = line ?? SILENCE;
  const noted = { ...withLine(before, present, nowMs), heardAtMs: isMissing ? before.heardAtMs : nowMs };
  if (nowMs < noted.enteredAtMs) return entering(noted, present, competitors, nowMs);
  const isSettled = nowMs >= noted.settledAtMs;
  const needed = costOf(competitors, allocate(competitors, Infinity)) + audioReserve(noted);
  const isLineWide = isWide(noted, needed, nowMs);
  const isRouteLonger = isLineWide && noted.queueMs > QUEUE_MS && noted.sureLoss <= LOSS_TO_STOP;
  const judgedState = isSettled ? judged(isRouteLonger ? withLongerRoute(noted) : noted, present, nowMs) : noted;
  const isReducible = isExpecting || judgedState.sureLoss - judgedState.harmlessLoss > LOSS_WITH_QUEUE;
  const isAlarm = isSettled && isCongested(judgedState, present);
  if (isAlarm && isReducible) return reduced(judgedState, present, competitors, nowMs);
  // With all video paused, a queue is that of others or jitter: it must not delay the next probe for ever.
  const state = isAlarm ? { ...judgedState, queueMs: 0, queued: 0 } : judgedState;
  if (state.mode === 'free') return { ...state, levels: allocate(competitors, Infinity) };
  // The next report says whether the queue is one. Without any report for long, a probe finds out.
  const isJudging = state.suspectedQueue !== undefined && nowMs < state.settledAtMs + PAUSE_MS;
  const isDue = nowMs >= state.nextAtMs || (isLineWide && state.mode === 'held');
  if (!isSettled || !isDue || state.queued > 0 || isJudging) return allocated(state, competitors);
  const held = state.mode === 'probing' ? passed(state, competitors, nowMs) : allocated(state, competitors);
  return probing(isLineWide ? { ...held, ceilingBps: Infinity } : held, competitors, isLineWide, nowMs);
}

/**
 * During a cut nothing can be learnt, and the line may be as good as before afterwards. Between the few pictures of a
 * screen that stands still nothing arrives, either.
 */
function interrupted(state: DownlinkState, nowMs: number): DownlinkState {
  if (nowMs - state.heardAtMs < CUT_MS.from) return state;
  return { ...state, nextAtMs: Math.max(state.nextAtMs, nowMs + PROBE_MS) };
}

/** Until the full frame rate is tried. A queue that the key frames have made is no news afterwards. */
function entering(state: DownlinkState, line: Line, competitors: readonly Competitor[], nowMs: number): DownlinkState {
  const sinceMs = nowMs - (state.enteredAtMs - ENTRY_MS.most);
  const isReported = line.queueMs !== undefined && sinceMs >= ENTRY_MS.least;
  const isQueued = isReported && state.queueMs > ENTRY_QUEUE_MS;
  if (isQueued || state.sureLoss - state.harmlessLoss > LOSS_ALONE) return reduced(state, line, competitors, nowMs);
  const next = { ...allocated(state, competitors), queueMs: 0, queued: 0 };
  return isReported ? { ...next, enteredAtMs: 0, brakedUntilMs: nowMs, nextAtMs: nowMs + PROBE_MS } : next;
}

function reduced(state: DownlinkState, line: Line, competitors: readonly Competitor[], nowMs: number): DownlinkState {
  const isProbe = state.mode === 'probing';
  const tried = Math.min(capacityOf(state, line, isProbe), state.budgetBps * USED);
  // A probe that fails shows that its budget is too high, but nothing about the earlier one.
  const isSmall = areSmallest(competitors.map(({ key }) => state.levels.get(key) ?? HIGHEST));
  let budgetBps = Math.max(
    isSmall ? halfCostOf(competitors, state.levels) : 0,
    isProbe ? Math.max(state.provenBps, tried) : tried,
  );
  let levels = allocate(competitors, budgetBps);
  const isLower = competitors.some(({ key }) => (levels.get(key) ?? PAUSED) < (state.levels.get(key) ?? PAUSED));
  if (!isLower) {
    budgetBps = Math.min(budgetBps, costOf(competitors, state.levels) * FURTHER);
    levels = allocate(competitors, budgetBps);
  }
  const isLateFailure = nowMs - state.passedAtMs < LATE_FAILURE_MS;
  const failures = isProbe || isLateFailure ? state.failures + 1 : 0;
  const isHard = state.queueMs > QUEUE_LONG_MS || state.sureLoss - state.harmlessLoss > LOSS_TO_STOP;
  // Some of the smallest pictures are so few bits that the queue drains beside them.
  // A delay without much loss may be that of a longer route.
  const mildly = state.mode === 'free' ? 'half' : 'slow';
  const failed = isProbe
    ? Math.min(state.budgetBps, costOf(competitors, state.levels))
    : Math.min(state.ceilingBps, line.bps - audioReserve(state));
  return {
    ...state,
    mode: 'held',
    budgetBps,
    provenBps: budgetBps,
    levels,
    failures,
    enteredAtMs: 0,
    ceilingBps: Math.max(1.05 * costOf(competitors, levels), failed),
    ceilingUntilMs: nowMs + ceilingMs(state, competitors, budgetBps, failures),
    brake: isHard && !isSmall ? 'stop' : mildly,
    brakedUntilMs: nowMs + BRAKE_MS,
    bursts: [],
    wideFromMs: isProbe ? nowMs + NOT_WIDE_MS : state.wideFromMs,
    reducedAtMs: nowMs,
    settledAtMs: nowMs + SETTLE_MS,
    nextAtMs: nowMs + PAUSE_MS,
    suspectedLoss: state.queueMs > QUEUE_MS ? undefined : state.loss,
    suspectedQueue: suspectedQueueOf(state, isProbe),
    queueMs: 0,
    queued: 0,
  };
}

/** Small pictures lose half of their frames before any is paused; 0 if they have. */
function halfCostOf(competitors: readonly Competitor[], levels: ReadonlyMap<string, number>): number {
  const halves = new Map([...levels].map(([key, level]) => [key, Math.min(level, 1)]));
  return [...levels.values()].some((level) => level > 1) ? costOf(competitors, halves) : 0;
}

function suspectedQueueOf(state: DownlinkState, isProbe: boolean) {
  if (state.queueMs <= QUEUE_MS) return undefined;
  const budgetBps = isProbe ? state.provenBps : state.budgetBps;
  return { queueMs: state.queueMs + state.harmlessQueueMs, budgetBps };
}

function capacityOf(state: DownlinkState, line: Line, isProbe: boolean): number {
  const capacity = USED * line.bps - audioReserve(state);
  if (isProbe || state.sureLoss - state.harmlessLoss > LOSS_WITH_QUEUE) return capacity;
  return Math.max(capacity, VIDEO_KEPT * (line.bps - line.audioBps));
}

function ceilingMs(
  state: DownlinkState,
  competitors: readonly Competitor[],
  budgetBps: number,
  failures: number,
): number {
  const audio = audioReserve(state);
  const highest = allocate(competitors, Infinity);
  const growth = Math.log((costOf(competitors, highest) + audio) / (budgetBps + audio)) / Math.log(PROBE_FACTOR);
  const steps = stepsBetween(competitors, allocate(competitors, budgetBps), highest);
  const probes = Math.max(1, Math.min(steps, Math.ceil(growth)));
  const longest = Math.min(CEILING_MS_MAX, BACK_WITHIN_MS - probes * PROBE_CYCLE_MS);
  return Math.max(CEILING_MS_MIN, Math.min(longest, CEILING_MS * 2 ** failures));
}

/** Tracks may have come, gone or changed their size. */
function allocated(state: DownlinkState, competitors: readonly Competitor[]): DownlinkState {
  const levels = allocate(competitors, state.budgetBps);
  // What a level needs varies with the picture: that alone is no reason to switch.
  const same = competitors.every(({ key }) => state.levels.has(key));
  if (same && state.levels.size === competitors.length && costOf(competitors, state.levels) <= 1.3 * state.budgetBps) {
    const kept = new Map(
      competitors.map(({ key, highest }) => [key, Math.min(highest, state.levels.get(key) ?? PAUSED)]),
    );
    return { ...state, levels: kept };
  }
  return { ...state, levels };
}

function probing(
  state: DownlinkState,
  competitors: readonly Competitor[],
  isLineWide: boolean,
  nowMs: number,
): DownlinkState {
  const next = nextCostOf(competitors, state.levels);
  if (next === undefined) return { ...state, mode: 'free', budgetBps: Infinity, failures: 0, ceilingBps: Infinity };
  const burst = burstOf(state);
  const isNarrow = burst !== undefined && next + state.audioBps > burst.most;
  if (isNarrow && nowMs < state.reducedAtMs + NARROW_MS) return { ...state, nextAtMs: nowMs + PAUSE_MS };
  // After a reduction the bursts tell what fits, and after a probe that failed the ceiling does.
  const fits = burst !== undefined && state.failures === 0 && next + state.audioBps < burst.least;
  const isBarred = nowMs < state.ceilingUntilMs && !isLineWide && !fits;
  const barredBps = BARRED_FROM * state.ceilingBps;
  if (isBarred && next > barredBps) return { ...state, nextAtMs: state.ceilingUntilMs };
  const audio = audioReserve(state);
  // Below a budget that has failed, each probe is one step.
  const whole = isLineWide ? costOf(competitors, allocate(competitors, Infinity)) : 0;
  const grown = state.ceilingBps < Infinity ? 0 : Math.max(whole, (state.budgetBps + audio) * PROBE_FACTOR - audio);
  const allowed = isBarred ? Math.min(grown, barredBps) : grown;
  let budgetBps = Math.max(next, allowed);
  let levels = allocate(competitors, budgetBps);
  const isHigher = competitors.some(({ key }) => (levels.get(key) ?? PAUSED) > (state.levels.get(key) ?? PAUSED));
  // What a level needs may have grown: without a step up there is nothing to try.
  if (!isHigher && isBarred) return { ...state, nextAtMs: state.ceilingUntilMs };
  if (!isHigher) {
    // The cheapest step may belong to a track that comes later.
    budgetBps = Math.max(budgetBps, (state.budgetBps + audio) * PROBE_FACTOR - audio);
    levels = allocate(competitors, budgetBps);
  }
  const isNew = competitors.some(({ key }) => isNewPicture(levels.get(key), state.levels.get(key)));
  const enteredAtMs = isNew ? nowMs + ENTRY_MS.most : 0;
  return {
    ...state,
    mode: 'probing',
    budgetBps,
    // What is held now may need more than its budget, and was carried all the same.
    provenBps: Math.max(state.budgetBps, costOf(competitors, state.levels)),
    provenLoss: state.loss,
    levels,
    enteredAtMs,
    brake: isNew ? 'slow' : 'none',
    brakedUntilMs: isNew ? enteredAtMs : nowMs,
    nextAtMs: nowMs + PROBE_MS + (isNew ? ENTRY_MS.most : 0),
  };
}

function passed(state: DownlinkState, competitors: readonly Competitor[], nowMs: number): DownlinkState {
  const { budgetBps } = state;
  const ceilingBps = budgetBps >= state.ceilingBps ? Infinity : state.ceilingBps;
  const times = { passedAtMs: nowMs, nextAtMs: nowMs };
  return allocated({ ...state, mode: 'held', provenBps: budgetBps, ceilingBps, ...times }, competitors);
}

function audioReserve({ audioBps }: DownlinkState): number {
  return AUDIO_SHARE * audioBps + AUDIO_EXTRA_BPS;
}
