import { join } from 'node:path';
import { hostIPv4 } from '@callplane/local-servers';
import { startUdpShaper, type UdpShaper } from '@callplane/testing';
import { onStage } from '../fleet/stage.js';
import { writeCamera } from './media-quality-camera.js';
import { bounded, openPages, sentBytesOf, type Pages } from './media-quality-pages.js';
import { CAMERA, printTitles, report, type Measured, type Sample } from './media-quality-report.js';
import { openBench, type CallBench } from './signaling.js';

const SETTLE_MS = 8_000;
const LIMITED_MS = Number(process.env.BENCH_LIMITED_SECONDS ?? 30) * 1_000;
const FREE_MS = Number(process.env.BENCH_FREE_SECONDS ?? 20) * 1_000;
/** The row of a scenario has the median of each figure. */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 1);
const CUT_MS = 12_000;
const SAMPLE_MS = 500;
const IS_ADAPTIVE = process.env.BENCH_ADAPTIVE !== 'off';

interface Scenario {
  name: string;
  /** Whose line it is. */
  who: 'viewer' | 'publisher';
  /** Both ways; the queue of each holds 300 ms. */
  line: { kbitPerSecond?: number; lossPercent?: number; delayMs?: number };
  ms?: number;
  /** The line is bad when the viewer joins. */
  isFromStart?: boolean;
}

const ROUTE = { delayMs: 20 };
const FAR = { lossPercent: 3, delayMs: 150 };
const CUT = { lossPercent: 100 };
const SCENARIOS: Scenario[] = [
  { name: 'good line', who: 'viewer', line: ROUTE },
  { name: '400 kbit/s', who: 'viewer', line: { ...ROUTE, kbitPerSecond: 400 } },
  { name: '150 kbit/s', who: 'viewer', line: { ...ROUTE, kbitPerSecond: 150 } },
  { name: 'uplink of 300 kbit/s', who: 'publisher', line: { ...ROUTE, kbitPerSecond: 300 } },
  { name: '10 % loss', who: 'viewer', line: { ...ROUTE, lossPercent: 10 } },
  { name: '3 % loss at 300 ms', who: 'viewer', line: FAR },
  { name: '3 % loss at 300 ms from the start', who: 'viewer', line: FAR, isFromStart: true },
  { name: '200 ms delay', who: 'viewer', line: { delayMs: 100 } },
  { name: 'cut of 12 s (viewer)', who: 'viewer', line: CUT, ms: CUT_MS },
  { name: 'cut of 12 s (publisher)', who: 'publisher', line: CUT, ms: CUT_MS },
];

interface Servers {
  bench: CallBench;
  pages: Pages;
  shaper: UdpShaper;
}

/** A viewer's picture and sound on bad lines, from a camera that moves and has noise. */
export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    const shaper = await startUdpShaper({ host: hostIPv4(), port: bench.media.relayPort });
    stage.onClose(() => shaper.close());
    const camera = join(stage.dir, 'moving.y4m');
    writeCamera(camera, CAMERA);
    const pages = await openPages(camera);
    stage.onClose(() => pages.close());
    const chosen = process.env.BENCH_SCENARIOS?.split(',');
    printTitles();
    for (const scenario of SCENARIOS.filter(({ name }) => chosen?.includes(name) ?? true)) {
      const rounds: Measured[] = [];
      const measureOne = async () => {
        rounds.push(await measure({ bench, pages, shaper }, scenario));
      };
      for (let round = 0; round < ROUNDS; round++) await bounded(scenario.name, pages, measureOne);
      if (rounds.length > 0) report(scenario.name, rounds);
    }
  });

async function measure({ bench, pages, shaper }: Servers, scenario: Scenario): Promise<Measured> {
  const { who, line, ms = LIMITED_MS, isFromStart = false } = scenario;
  const room = await bench.newRoom();
  const enter = async (participant: string, options: object = {}) => {
    const page = await pages.open();
    const relay = participant === who ? { iceTransportPolicy: 'relay', relayThrough: shaper.port } : {};
    const token = await bench.token(room, participant);
    await page.join({ url: bench.url, token, adaptive: IS_ADAPTIVE, ...relay, ...options });
    return page;
  };
  const begin = () => shaper.shape({ down: line, up: line });
  shaper.shape({ down: ROUTE, up: ROUTE });
  const publisher = await enter('publisher', { publish: { audio: true, video: CAMERA, simulcast: true } });
  const other = await enter('other');
  if (isFromStart) {
    await waitFor(SETTLE_MS);
    begin();
  }
  const viewer = await enter('viewer');
  const sample = async (): Promise<Sample> => {
    const [meter, others, sentBytes] = await Promise.all([viewer.meter(), other.meter(), sentBytesOf(publisher)]);
    return { meter, other: others, sentBytes };
  };
  if (!isFromStart) {
    await forMs(SETTLE_MS, sample);
    begin();
  }
  const cpuBefore = pages.cpuMs();
  const during = await forMs(ms, sample);
  const cpuPercent = ((pages.cpuMs() - cpuBefore) / ms) * 100;
  shaper.shape({ down: ROUTE, up: ROUTE });
  const after = await forMs(FREE_MS, sample);
  return { during, after, cpuPercent };
}

async function forMs(ms: number, sample: () => Promise<Sample>): Promise<Sample[]> {
  const began = performance.now();
  const samples = [await sample()];
  while (performance.now() - began < ms) {
    await waitFor(SAMPLE_MS);
    samples.push(await sample());
  }
  return samples;
}

const waitFor = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
