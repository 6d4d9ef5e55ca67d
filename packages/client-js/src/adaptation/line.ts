import type { DownlinkSample } from './downlink-sample.js';

/** What the line did between two samples. */
export interface Line {
  seconds: number;
  /** Received, in bits per second. */
  bps: number;
  audioBps: number;
  /** Lost packets of all sent ones, from 0 to 1. */
  loss: number;
  /** How long packets wait in queues on the way, in milliseconds; undefined if nothing new is known of it. */
  queueMs: number | undefined;
  /** Invented audio samples of all played ones, from 0 to 1. */
  concealed: number;
}

/** The shortest delays seen so far, which packets take without a queue. */
export interface Baseline {
  transitMs: number | undefined;
  bufferMs: number | undefined;
}

/**
 * A baseline rises so fast, in milliseconds for each second: a route that became longer counts as a queue only for a
 * while, and clocks may drift.
 */
const BASELINE_RISES_MS = 10;
/** A jitter buffer grows also without a queue, with the jitter. */
const BUFFER_TOLERANCE_MS = 100;

/** @returns undefined if nothing can be said: no time has passed, or nothing arrives at all, as during a cut. */
export function lineBetween(
  before: DownlinkSample,
  now: DownlinkSample,
  base: Baseline,
): { line: Line | undefined; base: Baseline } {
  const seconds = (now.atMs - before.atMs) / 1000;
  const received = now.packets - before.packets;
  if (seconds <= 0 || received <= 0) return { line: undefined, base };
  const isReported = now.reportAtMs !== undefined && now.reportAtMs !== before.reportAtMs;
  const transit = queueOf(isReported ? now.transitMs : undefined, base.transitMs, seconds);
  const buffered = now.buffered - before.buffered;
  const bufferMs = buffered <= 0 ? undefined : (1000 * (now.bufferSeconds - before.bufferSeconds)) / buffered;
  const buffer = queueOf(bufferMs, base.bufferMs, seconds);
  const lost = Math.max(0, now.lost - before.lost);
  const perSecond = (bytes: number) => Math.max(0, (8 * bytes) / seconds);
  const samples = now.samples - before.samples;
  const line = {
    seconds,
    bps: perSecond(now.bytes - before.bytes),
    audioBps: perSecond(now.audioBytes - before.audioBytes),
    loss: lost / (lost + received),
    // The sender reports are exact. The jitter buffer stands in for them.
    queueMs: now.transitMs === undefined ? Math.max(0, (buffer.queueMs ?? 0) - BUFFER_TOLERANCE_MS) : transit.queueMs,
    concealed: samples <= 0 ? 0 : Math.min(1, Math.max(0, (now.concealed - before.concealed) / samples)),
  };
  return { line, base: { transitMs: transit.baseMs, bufferMs: buffer.baseMs } };
}

function queueOf(delayMs: number | undefined, baseMs: number | undefined, seconds: number) {
  const risen = baseMs === undefined ? undefined : baseMs + BASELINE_RISES_MS * seconds;
  if (delayMs === undefined) return { queueMs: undefined, baseMs: risen };
  const lowest = Math.min(delayMs, risen ?? delayMs);
  return { queueMs: delayMs - lowest, baseMs: lowest };
}
