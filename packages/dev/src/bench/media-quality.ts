import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  freePort,
  hostIPv4,
  startCoturn,
  startUdpShaper,
  type LineShape,
  type UdpShaper,
} from '@callplane/local-servers';
import { GRID_HEAD, measureGrid } from './media-quality-grid.js';
import { openPages, type BenchPage, type Meter } from './media-quality-pages.js';
import { openBench } from './signaling.js';
import { openStage } from './stage.js';

/** Three layers in Chromium. */
const CAMERA = { width: 960, height: 540, frameRate: 20 };
const SETTLE_MS = 8_000;
const LIMITED_MS = Number(process.env.BENCH_LIMITED_SECONDS ?? 40) * 1_000;
const FREE_MS = Number(process.env.BENCH_FREE_SECONDS ?? 30) * 1_000;
const CUT_MS = 12_000;
const SAMPLE_MS = 500;
/** A folder for the statistics of the viewer, from which the controller's tests are made. */
const TRACES = process.env.BENCH_TRACES;
/** `on` or `off` measures only with or without adaptation. */
const MODES = [false, true].filter((on) => (process.env.BENCH_ADAPTIVE ?? (on ? 'on' : 'off')) === (on ? 'on' : 'off'));
/** A picture counts as moving from here on. */
const MOVING_FPS = 10;
/** The part of the frame rate before the limit at which the quality is back. */
const BACK_FROM = 0.75;

interface Scenario {
  name: string;
  who: 'viewer' | 'publisher';
  line: LineShape;
  /** Milliseconds. */
  for: number;
  /** The figures are those of the time after the bad line, not during it. */
  isAftermath?: boolean;
}

const SCENARIOS: Scenario[] = [
  { name: '400 kbit/s', who: 'viewer', line: { kbitPerSecond: 400 }, for: LIMITED_MS },
  { name: '150 kbit/s', who: 'viewer', line: { kbitPerSecond: 150 }, for: LIMITED_MS },
  { name: '3 % loss', who: 'viewer', line: { lossPercent: 3 }, for: LIMITED_MS },
  { name: '10 % loss', who: 'viewer', line: { lossPercent: 10 }, for: LIMITED_MS },
  { name: '200 ms delay', who: 'viewer', line: { delayMs: 200 }, for: LIMITED_MS },
  {
    name: 'after an uplink of 300 kbit/s',
    who: 'publisher',
    line: { kbitPerSecond: 300 },
    for: 20_000,
    isAftermath: true,
  },
  {
    name: 'after an uplink of 180 kbit/s',
    who: 'publisher',
    line: { kbitPerSecond: 180 },
    for: 20_000,
    isAftermath: true,
  },
  { name: 'cut of 12 s (viewer)', who: 'viewer', line: { lossPercent: 100 }, for: CUT_MS },
  { name: 'cut of 12 s (publisher)', who: 'publisher', line: { lossPercent: 100 }, for: CUT_MS },
];

type Bench = Awaited<ReturnType<typeof openBench>>;
type Pages = Awaited<ReturnType<typeof openPages>>;
interface Servers {
  bench: Bench;
  pages: Pages;
  shaper: UdpShaper;
}
interface Sample {
  meter: Meter;
  other: Meter;
}

/** What a viewer sees and hears on bad lines, with `adaptive` off (before) and on (after). */
export async function run() {
  const stage = await openStage();
  try {
    const turn = { secret: 'bench-turn-secret', host: hostIPv4(), listeningPort: await freePort(hostIPv4()) };
    const coturn = await startCoturn({
      dir: join(stage.dir, 'coturn'),
      adminPort: await freePort(),
      adminPassword: 'bench-turn-admin',
      minPort: 31_000,
      maxPort: 31_999,
      ...turn,
    });
    stage.onClose(() => coturn.stop());
    const shaper = await startUdpShaper({ host: turn.host, port: turn.listeningPort });
    stage.onClose(() => shaper.close());
    const bench = await openBench(stage, {
      TURN_SECRET: turn.secret,
      TURN_URLS: `turn:${turn.host}:${turn.listeningPort}?transport=udp`,
    });
    const pages = await openPages();
    stage.onClose(() => pages.close());
    console.log(HEAD);
    const chosen = process.env.BENCH_SCENARIOS?.split(',');
    for (const scenario of SCENARIOS.filter(({ name }) => chosen?.includes(name) ?? true)) {
      for (const adaptive of MODES) await measure({ bench, pages, shaper }, scenario, adaptive);
    }
    if (chosen?.includes('grid') ?? true) {
      console.log(GRID_HEAD);
      for (const adaptive of [false, true]) await measureGrid(bench, pages, adaptive);
    }
  } finally {
    await stage.close();
  }
}

async function measure({ bench, pages, shaper }: Servers, scenario: Scenario, adaptive: boolean) {
  shaper.shape({ down: {}, up: {} });
  const room = await bench.newRoom();
  const opened: BenchPage[] = [];
  const enter = async (name: string, options: object = {}) => {
    const page = await pages.open();
    opened.push(page);
    const relay = name === scenario.who ? { iceTransportPolicy: 'relay', relayThrough: shaper.port } : {};
    await page.join({ url: bench.url, token: await bench.token(room, name), adaptive, ...relay, ...options });
    return page;
  };
  try {
    await enter('publisher', { publish: { audio: true, video: CAMERA, simulcast: true } });
    const viewer = await enter('viewer');
    const other = await enter('other');
    const trace: object[] = [];
    const sample = async (): Promise<Sample> => {
      if (TRACES !== undefined) trace.push(await viewer.ask<object>('trace'));
      return { meter: await viewer.meter(), other: await other.meter() };
    };
    await forMs(SETTLE_MS, sample);
    const before = await forMs(SETTLE_MS / 2, sample);
    const cpuBefore = pages.cpuMs();
    // The rate limits the way of the media; loss and delay concern both ways.
    const back = { ...scenario.line, kbitPerSecond: undefined };
    shaper.shape(scenario.who === 'viewer' ? { down: scenario.line, up: back } : { up: scenario.line, down: back });
    const during = await forMs(scenario.for, sample);
    const cpuPercent = ((pages.cpuMs() - cpuBefore) / scenario.for) * 100;
    shaper.shape({ down: {}, up: {} });
    const after = await forMs(FREE_MS, sample);
    report(scenario, adaptive, { before, during, after, cpuPercent });
    if (TRACES !== undefined) {
      const marks = [during, after].map((samples) => samples[0]?.meter.atMs);
      const asked = (await viewer.ask<any[]>('frames')).filter(({ message }) =>
        ['subscribe', 'slowLink'].includes(message.type),
      );
      const file = `${scenario.name.replace(/[^a-z0-9]+/g, '-')}-${adaptive ? 'on' : 'off'}.json`;
      writeFileSync(join(TRACES, file), JSON.stringify({ marks, trace, asked }));
    }
  } finally {
    for (const page of opened) await page.close();
  }
}

async function forMs(ms: number, sample: () => Promise<Sample>): Promise<Sample[]> {
  const began = performance.now();
  const samples = [await sample()];
  while (performance.now() - began < ms) {
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
    samples.push(await sample());
  }
  return samples;
}

const HEAD = [
  '| scenario | adaptive | frames/s | moving after | freezes | frozen | concealed | kbit/s | full again after | other viewer | CPU |',
  '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
].join('\n');

interface Measured {
  before: Sample[];
  during: Sample[];
  after: Sample[];
  cpuPercent: number;
}

function report(
  { name, isAftermath = false }: Scenario,
  adaptive: boolean,
  { before, during, after, cpuPercent }: Measured,
) {
  const first = (samples: Sample[]) => samples[0]!.meter;
  const last = (samples: Sample[]) => samples.at(-1)!.meter;
  const measured = isAftermath ? after : during;
  const whole = differenceOf(first(measured), last(measured));
  const full = { fps: differenceOf(first(before), last(before)).fps, height: last(before).height };
  const movingAfter = secondsUntil(measured, ({ fps }) => fps >= MOVING_FPS);
  const fullAfter = secondsUntil(after, ({ fps }, { height }) => height >= full.height && fps >= BACK_FROM * full.fps);
  const others = differenceOf(measured[0]!.other, measured.at(-1)!.other);
  const cells = [
    name,
    adaptive ? 'on' : 'off',
    whole.fps.toFixed(1),
    movingAfter,
    whole.freezes,
    `${whole.frozenSeconds.toFixed(1)} s`,
    `${whole.concealedPercent.toFixed(1)} %`,
    whole.kbps.toFixed(0),
    fullAfter,
    `${others.fps.toFixed(1)} frames/s`,
    `${cpuPercent.toFixed(0)} %`,
  ];
  console.log(`| ${cells.join(' | ')} |`);
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
