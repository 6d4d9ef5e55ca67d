import { areSmallest } from './ladder.js';
import type { Line } from './line.js';
import { lossBeyond, QUEUE_SHORT_MS, LOSS_WITH_QUEUE, type Signs } from './signs.js';

/**
 * Tries a higher budget. `waiting`: for the time of the next probe. `entering`: the key frames of larger pictures arrive.
 * `trying`: the higher budget passes when its time is over without a sign of congestion.
 */
export type Probe = { readonly name: 'waiting'; readonly untilMs: number } | Begun;

export interface Begun {
  readonly name: 'entering' | 'trying';
  /** When it passes. */
  readonly untilMs: number;
  readonly beganAtMs: number;
  /** The budget that it tries. */
  readonly bps: number;
  /** The loss before it. */
  readonly loss: number;
}

/**
 * Another picture begins with a key frame, which makes a queue for a moment. It comes at a quarter of its frame rate until
 * a report shows that the queue is gone, or that it stays because the line carries no more. Reports come once a second.
 */
export const ENTRY_MS = { least: 400, most: 1_400 };
const ENTRY_QUEUE_MS = 100;
const ENTRY_LOSS = 0.15;
/** A probe without a sign of congestion passes after this time. */
export const PROBE_MS = 1_500;
/**
 * A probe ends at the first sign of congestion, once the key frames of its larger pictures are there. On a line that carries
 * more than the smallest pictures, some pictures in a row that need many bits are no sign.
 */
const PROBE_QUEUE_MS = 180;
const PROBE_QUEUE_SMALLEST_MS = 80;
const PROBE_LOSS = 0.04;
const PROBE_CONCEALED = 0.03;

export function waiting(untilMs: number): Probe {
  return { name: 'waiting', untilMs };
}

/** Later, if it would come earlier. */
export function postponed<T extends Probe>(probe: T, untilMs: number): T {
  return { ...probe, untilMs: Math.max(probe.untilMs, untilMs) };
}

/** @param isNew whether larger pictures come, which begin with key frames */
export function begun(bps: number, loss: number, isNew: boolean, nowMs: number): Begun {
  const untilMs = nowMs + PROBE_MS + (isNew ? ENTRY_MS.most : 0);
  return { name: isNew ? 'entering' : 'trying', untilMs, beganAtMs: nowMs, bps, loss };
}

/** A report shows that the key frames have arrived. */
export function entered(probe: Begun, nowMs: number): Begun {
  return { ...probe, name: 'trying', untilMs: nowMs + PROBE_MS };
}

/** Without a report, the key frames get the longest time. */
export function atTime(probe: Probe, nowMs: number): Probe {
  if (probe.name !== 'entering' || nowMs < probe.beganAtMs + ENTRY_MS.most) return probe;
  return { ...probe, name: 'trying' };
}

/** Whether a report is new enough to show the queue of the key frames. */
export function isEntryReported({ beganAtMs }: Begun, { queueMs }: Line, nowMs: number): boolean {
  return queueMs !== undefined && nowMs - beganAtMs >= ENTRY_MS.least;
}

export function hasEntryFailed(signs: Signs, isReported: boolean): boolean {
  return (isReported && signs.queueMs > ENTRY_QUEUE_MS) || lossBeyond(signs) > ENTRY_LOSS;
}

export function hasFailed(
  probe: Probe,
  signs: Signs,
  { concealed }: Line,
  levels: ReadonlyMap<string, number>,
): boolean {
  if (probe.name === 'waiting') return false;
  // Ignore loss from before the probe.
  const more = signs.sureLoss - Math.max(signs.harmlessLoss, probe.loss);
  const isHeard = signs.queueMs > QUEUE_SHORT_MS || more > LOSS_WITH_QUEUE;
  const queueMs = areSmallest(levels.values()) ? PROBE_QUEUE_SMALLEST_MS : PROBE_QUEUE_MS;
  return signs.queueMs > queueMs || more > PROBE_LOSS || (concealed > PROBE_CONCEALED && isHeard);
}
