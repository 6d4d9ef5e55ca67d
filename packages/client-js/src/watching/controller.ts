import { allocate, costOf, nextCostOf, type Competitor } from './allocate.js';
import { braked, released } from './brake.js';
import * as budgets from './budget.js';
import { isNewPicture, PAUSED } from './ladder.js';
import type { Line } from './line.js';
import {
  atTime,
  begun,
  ENTRY_MS,
  entered,
  hasEntryFailed,
  hasFailed,
  isEntryReported,
  postponed,
  PROBE_MS,
  waiting,
  type Begun,
} from './probe.js';
import {
  afterSample,
  areBurstsWide,
  audioReserve,
  burstOf,
  isCongested,
  LOSS_WITH_QUEUE,
  lossBeyond,
  NO_QUEUE,
  QUEUE_LONG_MS,
  QUEUE_MS,
  withLongerRoute,
} from './signs.js';
import { PAUSE_MS, type DownlinkState } from './state.js';

/** A line that carries nothing because everything is paused and everyone is silent. */
const SILENCE: Line = {
  seconds: 1,
  bps: 0,
  audioBps: 0,
  packets: 0,
  loss: 0,
  lossAtFirst: 0,
  queueMs: 0,
  concealed: 0,
};

/** With this loss, or a long queue, video waits until the queue is empty: lower layers would come too late for it. */
const LOSS_TO_STOP = 0.08;
const BRAKE_MS = 800;
/**
 * After this time without any packet, the line counts as cut, and until then: a browser notices a cut earlier. Later it is
 * the sender of the expected video that sends nothing, and the paused ones must not wait for it.
 */
const CUT_MS = { from: 1_500, until: 15_000 };
/** No probe comes nearer to a ceiling: the need of a level varies, and is only guessed for one that failed. */
const BARRED_FROM = 0.8;
/** A line that is too narrow for the next step is tried all the same after this time. */
const NARROW_MS = 30_000;

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
  if (isMissing && nowMs - before.signs.heardAtMs < CUT_MS.until) return interrupted(before, nowMs);
  const present = line ?? SILENCE;
  const noted = observed(before, present, nowMs, isMissing ? before.signs.heardAtMs : nowMs);
  if (noted.probe.name === 'entering') return entering(noted, noted.probe, present, competitors, nowMs);
  const needed = costOf(competitors, allocate(competitors, Infinity)) + audioReserve(noted.signs);
  const isWide = nowMs >= noted.budget.wideFromMs && areBurstsWide(noted.signs, needed);
  if (nowMs < noted.settledAtMs) return held(noted, competitors);
  const judged = judge(noted, present, isWide, nowMs);
  const isAlarm = isCongested(judged.signs, present) || hasFailed(judged.probe, judged.signs, present, judged.levels);
  if (isAlarm && (isExpecting || lossBeyond(judged.signs) > LOSS_WITH_QUEUE))
    return reduced(judged, present, competitors, nowMs);
  // With all video paused, a queue is that of others or jitter: it must not delay the next probe for ever.
  const state = isAlarm ? { ...judged, signs: { ...judged.signs, ...NO_QUEUE } } : judged;
  if (state.budget.name === 'free') return held(state, competitors);
  // The next sender report shows whether the delay is a queue. Without any report for long, a probe finds out.
  const isJudging = state.budget.suspectedQueue !== undefined && nowMs < state.settledAtMs + PAUSE_MS;
  const isDue = nowMs >= state.probe.untilMs || (isWide && state.probe.name === 'waiting');
  if (!isDue || state.signs.queued > 0 || isJudging) return held(state, competitors);
  return probing(passed(state, competitors, nowMs), competitors, isWide, nowMs);
}

function observed(state: DownlinkState, line: Line, nowMs: number, heardAtMs: number): DownlinkState {
  return {
    ...state,
    budget: budgets.suspecting(state.budget, line, state.settledAtMs, nowMs),
    probe: atTime(state.probe, nowMs),
    signs: { ...afterSample(state.signs, line, state, nowMs), heardAtMs },
  };
}

/**
 * During a cut nothing can be learnt, and the line may be as good as before afterwards. Between the few pictures of a
 * screen that stands still nothing arrives, either.
 */
function interrupted(state: DownlinkState, nowMs: number): DownlinkState {
  if (nowMs - state.signs.heardAtMs < CUT_MS.from) return state;
  return { ...state, probe: postponed(state.probe, nowMs + PROBE_MS) };
}

/** Until the full frame rate is tried. A queue that the key frames have made is no news afterwards. */
function entering(
  state: DownlinkState,
  probe: Begun,
  line: Line,
  competitors: readonly Competitor[],
  nowMs: number,
): DownlinkState {
  const { signs } = state;
  const isReported = isEntryReported(probe, line, nowMs);
  if (hasEntryFailed(signs, isReported)) return reduced(state, line, competitors, nowMs);
  const next = { ...held(state, competitors), signs: { ...signs, ...NO_QUEUE } };
  return isReported ? { ...next, probe: entered(probe, nowMs), brake: released(nowMs) } : next;
}

function judge(state: DownlinkState, line: Line, isWide: boolean, nowMs: number): DownlinkState {
  const { signs: noted, settledAtMs } = state;
  const isRouteLonger = isWide && noted.queueMs > QUEUE_MS && noted.sureLoss <= LOSS_TO_STOP;
  const before = isRouteLonger ? withLongerRoute(noted) : noted;
  const { budget, signs, isRestored } = budgets.judged(state.budget, before, line, settledAtMs, nowMs);
  return { ...state, budget, signs, probe: isRestored ? waiting(0) : state.probe };
}

function reduced(before: DownlinkState, line: Line, competitors: readonly Competitor[], nowMs: number): DownlinkState {
  const { probe, signs } = before;
  const probedBps = probe.name === 'waiting' ? undefined : probe.bps;
  const { budget, levels, isSmall } = budgets.reduced(before.budget, probedBps, before, line, competitors, nowMs);
  const isHard = signs.queueMs > QUEUE_LONG_MS || lossBeyond(signs) > LOSS_TO_STOP;
  // Some of the smallest pictures are so few bits that the queue drains beside them.
  // A delay without much loss may be that of a longer route.
  const mildly = before.budget.name === 'free' ? 'half' : 'slow';
  const settledAtMs = nowMs + budgets.SETTLE_MS;
  return {
    budget,
    levels,
    probe: waiting(nowMs + PAUSE_MS),
    brake: braked(isHard && !isSmall ? 'stop' : mildly, nowMs + BRAKE_MS, settledAtMs),
    signs: { ...signs, bursts: [], ...NO_QUEUE },
    settledAtMs,
  };
}

/** Tracks may have come, gone or changed their size. */
function held(state: DownlinkState, competitors: readonly Competitor[]): DownlinkState {
  const { budget, probe, levels: present } = state;
  if (budget.name === 'free') return { ...state, levels: allocate(competitors, Infinity) };
  const bps = probe.name === 'waiting' ? budget.bps : probe.bps;
  // Bit rates vary with content; that alone must not switch levels.
  const isSame = present.size === competitors.length && competitors.every(({ key }) => present.has(key));
  if (!isSame || costOf(competitors, present) > 1.3 * bps) return { ...state, levels: allocate(competitors, bps) };
  const kept = competitors.map(({ key, highest }) => [key, Math.min(highest, present.get(key) ?? PAUSED)] as const);
  return { ...state, levels: new Map(kept) };
}

/** Takes the next step up, if there is one that the line may carry. */
function probing(
  before: DownlinkState,
  competitors: readonly Competitor[],
  isWide: boolean,
  nowMs: number,
): DownlinkState {
  const state = isWide ? { ...before, budget: budgets.withoutCeiling(before.budget) } : before;
  const { signs, budget, levels: present } = state;
  const next = nextCostOf(competitors, present);
  if (next === undefined) return { ...state, budget: budgets.freed(budget) };
  const burst = burstOf(signs);
  const isNarrow = burst !== undefined && next + signs.audioBps > burst.most;
  if (isNarrow && nowMs < budget.reducedAtMs + NARROW_MS) return { ...state, probe: waiting(nowMs + PAUSE_MS) };
  // After a reduction the bursts tell what fits, and after a probe that failed the ceiling does.
  const fits = burst !== undefined && budget.failures === 0 && next + signs.audioBps < burst.least;
  const isBarred = nowMs < budget.ceiling.untilMs && !isWide && !fits;
  const barredBps = BARRED_FROM * budget.ceiling.bps;
  const barred = { ...state, probe: waiting(budget.ceiling.untilMs) };
  if (isBarred && next > barredBps) return barred;
  const audio = audioReserve(signs);
  // Below a budget that has failed, each probe is one step.
  const whole = isWide ? costOf(competitors, allocate(competitors, Infinity)) : 0;
  const factored = (budget.bps + audio) * budgets.PROBE_FACTOR - audio;
  const grown = budget.ceiling.bps < Infinity ? 0 : Math.max(whole, factored);
  let bps = Math.max(next, isBarred ? Math.min(grown, barredBps) : grown);
  let levels = allocate(competitors, bps);
  const isHigher = competitors.some(({ key }) => (levels.get(key) ?? PAUSED) > (present.get(key) ?? PAUSED));
  // The need of a level may have grown: without a step up there is nothing to try.
  if (!isHigher && isBarred) return barred;
  if (!isHigher) {
    // The cheapest step may belong to a track that comes later.
    bps = Math.max(bps, factored);
    levels = allocate(competitors, bps);
  }
  const isNew = competitors.some(({ key }) => isNewPicture(levels.get(key), present.get(key)));
  return {
    ...state,
    levels,
    // Current levels may exceed the budget; the line carried them, so their cost is proven.
    budget: { ...budget, bps: Math.max(budget.bps, costOf(competitors, present)) },
    probe: begun(bps, signs.loss, isNew, nowMs),
    brake: isNew ? braked('slow', nowMs + ENTRY_MS.most) : released(nowMs),
  };
}

/** The probe has shown no sign of congestion, if there was one. */
function passed(state: DownlinkState, competitors: readonly Competitor[], nowMs: number): DownlinkState {
  const { budget, probe } = state;
  if (probe.name === 'waiting') return held(state, competitors);
  return held({ ...state, budget: budgets.raised(budget, probe.bps, nowMs), probe: waiting(nowMs) }, competitors);
}
