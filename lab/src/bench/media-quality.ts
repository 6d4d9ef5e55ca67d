import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostIPv4 } from '@callplane/local-servers';
import { startUdpShaper, type UdpShaper } from '@callplane/testing';
import { onStage } from '../fleet/stage.js';
import { printHead } from './figures.js';
import { measureGrids } from './media-quality-grid.js';
import { bounded, openPages, type Pages } from './media-quality-pages.js';
import { COLUMNS, report, type Pauses, type Sample, type Scenario } from './media-quality-report.js';
import { openBench, type CallBench } from './signaling.js';

/** Three layers in Chromium. */
const CAMERA = { width: 960, height: 540, frameRate: 20 };
const SETTLE_MS = 8_000;
const LIMITED_MS = Number(process.env.BENCH_LIMITED_SECONDS ?? 40) * 1_000;
const FREE_MS = Number(process.env.BENCH_FREE_SECONDS ?? 20) * 1_000;
const UPLINK_MS = 20_000;
const CUT_MS = 12_000;
const CUT = { lossPercent: 100 };
const SAMPLE_MS = 500;
/** A folder for the statistics of the viewer, from which the controller's tests are made. */
const TRACES = process.env.BENCH_TRACES;
/** `on` or `off` measures only with or without adaptation. */
const MODES = [false, true].filter((on) => (process.env.BENCH_ADAPTIVE ?? (on ? 'on' : 'off')) === (on ? 'on' : 'off'));

const SCENARIOS: Scenario[] = [
  { name: '400 kbit/s', who: 'viewer', line: { kbitPerSecond: 400 }, for: LIMITED_MS },
  { name: '150 kbit/s', who: 'viewer', line: { kbitPerSecond: 150 }, for: LIMITED_MS },
  { name: '3 % loss', who: 'viewer', line: { lossPercent: 3 }, for: LIMITED_MS },
  { name: '10 % loss', who: 'viewer', line: { lossPercent: 10 }, for: LIMITED_MS },
  { name: '200 ms delay', who: 'viewer', line: { delayMs: 200 }, for: LIMITED_MS },
  { name: 'uplink of 300 kbit/s', who: 'publisher', line: { kbitPerSecond: 300 }, for: UPLINK_MS, isUplink: true },
  { name: 'uplink of 180 kbit/s', who: 'publisher', line: { kbitPerSecond: 180 }, for: UPLINK_MS, isUplink: true },
  { name: 'cut of 12 s (viewer)', who: 'viewer', line: CUT, for: CUT_MS },
  { name: 'cut of 12 s (publisher)', who: 'publisher', line: CUT, for: CUT_MS },
];

interface Servers {
  bench: CallBench;
  pages: Pages;
  shaper: UdpShaper;
}
/** What a viewer sees and hears on bad lines, with `adaptive` off (before) and on (after). */
export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    const shaper = await startUdpShaper({ host: hostIPv4(), port: bench.media.relayPort });
    stage.onClose(() => shaper.close());
    const pages = await openPages();
    stage.onClose(() => pages.close());
    printHead(...COLUMNS);
    const chosen = process.env.BENCH_SCENARIOS?.split(',');
    for (const scenario of SCENARIOS.filter(({ name }) => chosen?.includes(name) ?? true)) {
      for (const adaptive of MODES)
        await bounded(scenario.name, [pages], () => measure({ bench, pages, shaper }, scenario, adaptive));
    }
    if (chosen?.includes('grid') ?? true) await measureGrids(stage, bench, MODES);
  });

async function measure({ bench, pages, shaper }: Servers, scenario: Scenario, adaptive: boolean) {
  shaper.shape({ down: {}, up: {} });
  const room = await bench.newRoom();
  const enter = async (name: string, options: object = {}) => {
    const page = await pages.open();
    const relay = name === scenario.who ? { iceTransportPolicy: 'relay', relayThrough: shaper.port } : {};
    await page.join({ url: bench.url, token: await bench.token(room, name), adaptive, ...relay, ...options });
    return page;
  };
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
  await viewer.ask('measurePauses');
  shaper.shape(scenario.who === 'viewer' ? { down: scenario.line, up: back } : { up: scenario.line, down: back });
  const during = await forMs(scenario.for, sample);
  const cpuPercent = ((pages.cpuMs() - cpuBefore) / scenario.for) * 100;
  shaper.shape({ down: {}, up: {} });
  const after = await forMs(FREE_MS, sample);
  const pauses = await viewer.ask<Pauses>('pauses');
  report(scenario, adaptive, { before, during, after, pauses, cpuPercent });
  if (TRACES !== undefined) {
    const marks = [during, after].map((samples) => samples[0]?.meter.atMs);
    const asked = (await viewer.ask<any[]>('frames')).filter(({ message }) =>
      ['subscribe', 'slowLink'].includes(message.type),
    );
    const file = `${scenario.name.replace(/[^a-z0-9]+/g, '-')}-${adaptive ? 'on' : 'off'}.json`;
    writeFileSync(join(TRACES, file), JSON.stringify({ marks, trace, asked }));
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
