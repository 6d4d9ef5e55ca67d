import { allocate, costOf, stepsBetween, type Competitor } from './allocate.js';
import { areSmallest, HIGHEST, PAUSED } from './ladder.js';
import type { Line } from './line.js';
import {
  audioReserve,
  EFFECT_EARLIER_MS,
  LOSS_WITH_QUEUE,
  lossBeyond,
  NO_QUEUE,
  QUEUE_MS,
  type Signs,
} from './signs.js';

/**
 * The time until the effect of a reduction, or of the end of an interruption, is there: until then the media server sends
 * again what the queue has lost.
 */
export const SETTLE_MS = 2_000;
/** The part of the measured capacity that is used, so that the queue drains. */
const USED = 0.9;
/** Without loss the queue may be jitter. Video keeps this part of its bits; if the queue stays, the next cut takes as much. */
const VIDEO_KEPT = 0.5;
/** A reduction without effect reduces again by this factor. */
const FURTHER = 0.7;
/** If a lower rate leaves more than this part of the loss, the rate was not its cause. */
const LOSS_REMAINS = 0.7;
const HARMLESS_LOSS_MAX = 0.4;
/** A delay that outlives a rate cut is a longer route: it keeps more than this part, or all but this time. */
const QUEUE_REMAINS = 0.8;
const QUEUE_DRAINS_MS = 250;
/** A mild overload shows only after the probe has passed. */
const LATE_FAILURE_MS = 5_000;
/** How long a budget that failed is not tried again: it doubles with each failure. */
const CEILING_MS = 3_000;
const CEILING_MS_MAX = 11_000;
const CEILING_MS_MIN = 5_000;
/** It leaves time for all further probes, so that everything is back within 15 s after the line is free. */
const BACK_WITHIN_MS = 13_000;
const PROBE_CYCLE_MS = 2_400;
/** A probe multiplies all bits by this, unless a budget has failed. */
export const PROBE_FACTOR = 1.8;
/** A line that seemed wide, but was not, does not count as wide for this time. */
const NOT_WIDE_MS = 10_000;

/** Limits what is received. `free`: everything is received in full. */
export interface Budget {
  readonly name: 'free' | 'held';
  /** Bits per second for video that the line has carried; Infinity if `free`. */
  readonly bps: number;
  readonly failures: number;
  /** The budget that failed: until `untilMs` no probe reaches it. Infinity once a probe has passed it. */
  readonly ceiling: { readonly bps: number; readonly untilMs: number };
  readonly reducedAtMs: number;
  readonly raisedAtMs: number;
  /** Until then bursts do not show a wide line. */
  readonly wideFromMs: number;
  /** The loss because of which it was reduced last, if no queue was seen. */
  readonly suspectedLoss: number | undefined;
  /** The queue because of which it was reduced last, with its harmless part, and the budget before. */
  readonly suspectedQueue: { readonly queueMs: number; readonly bps: number } | undefined;
}

const NO_CEILING = { bps: Infinity, untilMs: 0 };
const NO_SUSPICION = { suspectedLoss: undefined, suspectedQueue: undefined };

export const FREE: Budget = {
  name: 'free',
  bps: Infinity,
  failures: 0,
  ceiling: NO_CEILING,
  reducedAtMs: -Infinity,
  raisedAtMs: -Infinity,
  wideFromMs: 0,
  ...NO_SUSPICION,
};

/** Nothing is limited any more. */
export function freed(budget: Budget): Budget {
  return { ...withoutCeiling(budget), name: 'free', bps: Infinity, failures: 0 };
}

export function withoutCeiling(budget: Budget): Budget {
  return { ...budget, ceiling: { ...budget.ceiling, bps: Infinity } };
}

/** A probe has passed. */
export function raised(budget: Budget, bps: number, nowMs: number): Budget {
  return { ...(bps >= budget.ceiling.bps ? withoutCeiling(budget) : budget), bps, raisedAtMs: nowMs };
}

/** The connection was interrupted: the signs of the time before say nothing. */
export function unsuspected(budget: Budget): Budget {
  return { ...budget, ...NO_SUSPICION };
}

/** @param probedBps the budget that a probe tried; undefined without a probe */
export function reduced(
  budget: Budget,
  probedBps: number | undefined,
  { signs, levels }: { signs: Signs; levels: ReadonlyMap<string, number> },
  line: Line,
  competitors: readonly Competitor[],
  nowMs: number,
): { budget: Budget; levels: ReadonlyMap<string, number>; isSmall: boolean } {
  const isProbe = probedBps !== undefined;
  const presentBps = probedBps ?? budget.bps;
  const tried = Math.min(capacityOf(signs, line, isProbe), presentBps * USED);
  const isSmall = areSmallest(competitors.map(({ key }) => levels.get(key) ?? HIGHEST));
  // A probe that fails shows that its budget is too high, but nothing about the earlier one.
  const lower = lowered(
    Math.max(isSmall ? halfCostOf(competitors, levels) : 0, isProbe ? Math.max(budget.bps, tried) : tried),
    competitors,
    levels,
  );
  const isLateFailure = nowMs - budget.raisedAtMs < LATE_FAILURE_MS;
  const failures = isProbe || isLateFailure ? budget.failures + 1 : 0;
  const failed = isProbe
    ? Math.min(presentBps, costOf(competitors, levels))
    : Math.min(budget.ceiling.bps, line.bps - audioReserve(signs));
  const isQueue = signs.queueMs > QUEUE_MS;
  return {
    isSmall,
    levels: lower.levels,
    budget: {
      ...budget,
      name: 'held',
      bps: lower.bps,
      failures,
      ceiling: {
        bps: Math.max(1.05 * costOf(competitors, lower.levels), failed),
        untilMs: nowMs + ceilingMs(audioReserve(signs), competitors, lower.bps, failures),
      },
      reducedAtMs: nowMs,
      wideFromMs: isProbe ? nowMs + NOT_WIDE_MS : budget.wideFromMs,
      suspectedLoss: isQueue ? undefined : signs.loss,
      suspectedQueue: isQueue ? { queueMs: signs.queueMs + signs.harmlessQueueMs, bps: budget.bps } : undefined,
    },
  };
}

/** The levels of the budget, or of a lower one, so that at least one of them is lower than now. */
function lowered(bps: number, competitors: readonly Competitor[], present: ReadonlyMap<string, number>) {
  const levels = allocate(competitors, bps);
  if (competitors.some(({ key }) => (levels.get(key) ?? PAUSED) < (present.get(key) ?? PAUSED))) return { bps, levels };
  const lower = Math.min(bps, costOf(competitors, present) * FURTHER);
  return { bps: lower, levels: allocate(competitors, lower) };
}

/** Small pictures lose half of their frames before any is paused; 0 if they have. */
function halfCostOf(competitors: readonly Competitor[], levels: ReadonlyMap<string, number>): number {
  const halves = new Map([...levels].map(([key, level]) => [key, Math.min(level, 1)]));
  return [...levels.values()].some((level) => level > 1) ? costOf(competitors, halves) : 0;
}

function capacityOf(signs: Signs, line: Line, isProbe: boolean): number {
  const capacity = USED * line.bps - audioReserve(signs);
  if (isProbe || lossBeyond(signs) > LOSS_WITH_QUEUE) return capacity;
  return Math.max(capacity, VIDEO_KEPT * (line.bps - line.audioBps));
}

function ceilingMs(audioBps: number, competitors: readonly Competitor[], bps: number, failures: number): number {
  const highest = allocate(competitors, Infinity);
  const growth = Math.log((costOf(competitors, highest) + audioBps) / (bps + audioBps)) / Math.log(PROBE_FACTOR);
  const steps = stepsBetween(competitors, allocate(competitors, bps), highest);
  const probes = Math.max(1, Math.min(steps, Math.ceil(growth)));
  const longest = Math.min(CEILING_MS_MAX, BACK_WITHIN_MS - probes * PROBE_CYCLE_MS);
  return Math.max(CEILING_MS_MIN, Math.min(longest, CEILING_MS * 2 ** failures));
}

/** A report that was sent before the reduction shows how long the queue became until then: it may be seconds long. */
export function suspecting(budget: Budget, { queueMs: delayMs }: Line, settledAtMs: number, nowMs: number): Budget {
  const { suspectedQueue } = budget;
  if (suspectedQueue === undefined || delayMs === undefined) return budget;
  const { queueMs } = suspectedQueue;
  if (delayMs < Math.max(QUEUE_REMAINS * queueMs, queueMs - QUEUE_DRAINS_MS))
    return { ...budget, suspectedQueue: undefined };
  const isOlder = nowMs - delayMs < settledAtMs - SETTLE_MS;
  return isOlder ? { ...budget, suspectedQueue: { ...suspectedQueue, queueMs: Math.max(queueMs, delayMs) } } : budget;
}

/**
 * Compares the loss, or the queue, before and after the reduction. The queue counts from the first report that was sent when
 * the effect of the reduction was there. Neither a delay nor a loss that is left then comes from the rate.
 * @returns isRestored: the queue was none, and the budget is the one before the reduction
 */
export function judged(
  before: Budget,
  signs: Signs,
  { queueMs }: Line,
  settledAtMs: number,
  nowMs: number,
): { budget: Budget; signs: Signs; isRestored: boolean } {
  const { suspectedLoss, suspectedQueue } = before;
  const { loss } = signs;
  const isLossLeft = suspectedLoss !== undefined && loss > suspectedLoss * LOSS_REMAINS && loss <= HARMLESS_LOSS_MAX;
  const harmlessLoss = isLossLeft ? loss : signs.harmlessLoss;
  const budget = { ...before, suspectedLoss: undefined };
  if (suspectedQueue === undefined) return { budget, signs: { ...signs, harmlessLoss }, isRestored: false };
  // An earlier report says nothing yet.
  if (queueMs === undefined || nowMs - queueMs < settledAtMs - EFFECT_EARLIER_MS)
    return { budget, signs: { ...signs, harmlessLoss, ...NO_QUEUE }, isRestored: false };
  const { bps } = suspectedQueue;
  const harmless = { harmlessQueueMs: queueMs, harmlessLoss: Math.max(harmlessLoss, loss) };
  return {
    budget: {
      ...budget,
      name: bps === Infinity ? 'free' : 'held',
      bps,
      failures: 0,
      ceiling: NO_CEILING,
      suspectedQueue: undefined,
    },
    signs: { ...signs, ...harmless, ...NO_QUEUE },
    isRestored: true,
  };
}
