import type { LineShape } from '@callplane/testing';
import { printRow } from './figures.js';
import type { Meter } from './media-quality-pages.js';

export interface Scenario {
  name: string;
  who: 'viewer' | 'publisher';
  line: LineShape;
  /** Milliseconds. */
  for: number;
  /** A second row has the figures of the time after the bad line. */
  isUplink?: boolean;
}

export interface Sample {
  meter: Meter;
  other: Meter;
}

/** The longest of one received video and one received audio track, in milliseconds. */
export interface Pauses {
  video: number;
  audio: number;
}

export interface Measured {
  before: Sample[];
  during: Sample[];
  after: Sample[];
  pauses: Pauses;
  cpuPercent: number;
}

/** The queue of a line that has just become slow is full before a sample can show it. */
const FULL_QUEUE_MS = 3_000;
/** A picture counts as moving from here on. */
const MOVING_FPS = 10;
/** The part of the frame rate before the limit at which the quality is back. */
const BACK_FROM = 0.75;

export const COLUMNS = [
  'scenario',
  'adaptive',
  'frames/s',
  'moving after',
  'freezes',
  'frozen',
  'concealed',
  'after 3 s',
  'kbit/s',
  'full again after',
  'longest pause: picture, sound',
  'other viewer',
  'CPU',
];

export function report(scenario: Scenario, adaptive: boolean, measured: Measured): void {
  const { during, after } = measured;
  row(scenario.name, adaptive, during, measured);
  if (scenario.isUplink === true) row(`after it`, adaptive, after, measured);
}

function row(name: string, adaptive: boolean, samples: Sample[], { before, after, pauses, cpuPercent }: Measured) {
  const first = (of: Sample[]) => of[0]!.meter;
  const last = (of: Sample[]) => of.at(-1)!.meter;
  const whole = differenceOf(first(samples), last(samples));
  const settled =
    samples.find(({ meter }) => meter.atMs - first(samples).atMs >= FULL_QUEUE_MS)?.meter ?? last(samples);
  const full = { fps: differenceOf(first(before), last(before)).fps, height: last(before).height };
  const fullAfter = secondsUntil(after, ({ fps }, { height }) => height >= full.height && fps >= BACK_FROM * full.fps);
  const others = differenceOf(samples[0]!.other, samples.at(-1)!.other);
  const inSeconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  printRow(
    name,
    adaptive ? 'on' : 'off',
    whole.fps.toFixed(1),
    secondsUntil(samples, ({ fps }) => fps >= MOVING_FPS),
    whole.freezes,
    `${whole.frozenSeconds.toFixed(1)} s`,
    `${whole.concealedPercent.toFixed(1)} %`,
    `${differenceOf(settled, last(samples)).concealedPercent.toFixed(1)} %`,
    whole.kbps.toFixed(0),
    fullAfter,
    `${inSeconds(pauses.video)}, ${inSeconds(pauses.audio)}`,
    `${others.fps.toFixed(1)} frames/s`,
    `${cpuPercent.toFixed(0)} %`,
  );
}

/** Counters start again at zero with a new connection. */
function differenceOf(from: Meter, to: Meter) {
  const seconds = (to.atMs - from.atMs) / 1000;
  const grown = (field: keyof Meter) => (to[field] >= from[field] ? to[field] - from[field] : to[field]);
  const samples = grown('samples');
  return {
    fps: grown('frames') / seconds,
    freezes: grown('freezes'),
    frozenSeconds: grown('frozenSeconds'),
    concealedPercent: samples === 0 ? 100 : (100 * grown('concealed')) / samples,
    kbps: (8 * grown('bytes')) / 1000 / seconds,
  };
}

/** Since when the condition has held for a second. */
function secondsUntil(
  samples: Sample[],
  holds: (line: ReturnType<typeof differenceOf>, now: Meter) => boolean,
): string {
  const began = samples[0]!.meter.atMs;
  for (let at = 2; at < samples.length; at++) {
    const [from, to] = [samples[at - 2]!.meter, samples[at]!.meter];
    if (holds(differenceOf(from, to), to)) return `${Math.max(0, (from.atMs - began) / 1000).toFixed(1)} s`;
  }
  return 'never';
}
