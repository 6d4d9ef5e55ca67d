import { median, printHead, printRow } from './figures.js';
import type { Meter } from './media-quality-pages.js';

/** Three layers in Chromium. */
export const CAMERA = { width: 960, height: 540, frameRate: 20 };

export interface Sample {
  meter: Meter;
  other: Meter;
  /** By the publisher so far. */
  sentBytes: number;
}

export interface Measured {
  /** The time of the bad line, and that after it. */
  during: Sample[];
  after: Sample[];
  cpuPercent: number;
}

/** The queue of a line that has just become slow is full before a sample can show it. */
const FULL_QUEUE_MS = 3_000;
/** The part of the frame rate at which the quality is back. */
const BACK_FROM = 0.75;

const isFull: Condition = ({ fps }, { height }) => height >= CAMERA.height && fps >= BACK_FROM * CAMERA.frameRate;

/** The figures of one round, by column. */
const COLUMNS: { title: string; digits?: number; unit?: string; of: (one: Measured) => number }[] = [
  { title: 'frames/s', digits: 1, of: ({ during }) => whole(during).fps },
  { title: 'lines', of: ({ during }) => median(during.map(({ meter }) => meter.height)) },
  { title: 'received kbit/s', of: ({ during }) => whole(during).kbps },
  { title: 'sent kbit/s', of: ({ during }) => sentKbps(during) },
  { title: 'freezes', of: ({ during }) => whole(during).freezes },
  { title: 'frozen', digits: 1, unit: ' s', of: ({ during }) => whole(during).frozenSeconds },
  { title: 'concealed', digits: 1, unit: ' %', of: ({ during }) => whole(during).concealedPercent },
  { title: 'after 3 s', digits: 1, unit: ' %', of: ({ during }) => whole(settled(during)).concealedPercent },
  { title: 'full again after', digits: 1, unit: ' s', of: ({ after }) => secondsUntil(after, isFull) },
  { title: 'other viewer, frames/s', digits: 1, of: ({ during }) => others(during).fps },
  { title: 'CPU', unit: ' %', of: ({ cpuPercent }) => cpuPercent },
];

export function printTitles(): void {
  printHead('line', ...COLUMNS.map(({ title }) => title));
}

export function report(name: string, rounds: Measured[]): void {
  const cells = COLUMNS.map(({ digits = 0, unit = '', of }) => {
    const value = median(rounds.map(of));
    return value === Infinity ? 'never' : `${value.toFixed(digits)}${unit}`;
  });
  printRow(name, ...cells);
}

const whole = (samples: Sample[]) => differenceOf(samples[0]!.meter, samples.at(-1)!.meter);
const others = (samples: Sample[]) => differenceOf(samples[0]!.other, samples.at(-1)!.other);
const settled = (samples: Sample[]) =>
  samples.filter(({ meter }) => meter.atMs - samples[0]!.meter.atMs >= FULL_QUEUE_MS);

function sentKbps(samples: Sample[]): number {
  const [first, last] = [samples[0]!, samples.at(-1)!];
  return (8 * (last.sentBytes - first.sentBytes)) / (last.meter.atMs - first.meter.atMs);
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

type Condition = (line: ReturnType<typeof differenceOf>, now: Meter) => boolean;

/** Since when the condition has held for a second; Infinity if it never did. */
function secondsUntil(samples: Sample[], holds: Condition): number {
  const began = samples[0]!.meter.atMs;
  for (let at = 2; at < samples.length; at++) {
    const [from, to] = [samples[at - 2]!.meter, samples[at]!.meter];
    if (holds(differenceOf(from, to), to)) return Math.max(0, (from.atMs - began) / 1000);
  }
  return Infinity;
}
