import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { closeSync, openSync, writeSync } from 'node:fs';
import { hostIPv4 } from '@callplane/local-servers';
import { startUdpShaper, type UdpShaper } from '@callplane/testing';
import { onStage } from '../fleet/stage.js';
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
/** `both` measures each scenario without and with encryption, one after the other in each round. */
const ENCRYPTED = process.env.BENCH_ENCRYPTION === 'both' ? [false, true] : [false];

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
      const rows = ENCRYPTED.map((isEncrypted) => ({
        isEncrypted,
        name: `${scenario.name}${isEncrypted ? ', encrypted' : ''}`,
        rounds: [] as Measured[],
      }));
      for (let round = 0; round < ROUNDS; round++)
        for (const { name, isEncrypted, rounds } of rows)
          await bounded(name, pages, async () => {
            rounds.push(await measure({ bench, pages, shaper }, scenario, isEncrypted));
          });
      for (const { name, rounds } of rows) if (rounds.length > 0) report(name, rounds);
    }
  });

async function measure({ bench, pages, shaper }: Servers, scenario: Scenario, isEncrypted: boolean): Promise<Measured> {
  const { who, line, ms = LIMITED_MS, isFromStart = false } = scenario;
  const room = await bench.client.newRoom({ encryption: isEncrypted ? 'required' : 'none' });
  const secret = isEncrypted ? { encryption: { key: randomBytes(32).toString('base64url') } } : {};
  const enter = async (participant: string, options: object = {}) => {
    const page = await pages.open();
    const relay = participant === who ? { iceTransportPolicy: 'relay', relayThrough: shaper.port } : {};
    const token = await bench.token(room, participant);
    await page.join({ url: bench.url, token, adaptive: IS_ADAPTIVE, ...secret, ...relay, ...options });
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

/** The pictures come back after 2 s without a jump. */
const SECONDS = 2;
/** Noise of the brightness, of 255, as of a small sensor. An encoder cannot predict it. */
const NOISE = 3;

interface Camera {
  width: number;
  height: number;
  frameRate: number;
}

/**
 * Writes a Y4M file: a head that moves in front of a room, with the noise of a sensor. Chromium's own pictures hardly
 * move, and cost neither bits nor processor time.
 */
export function writeCamera(path: string, { width, height, frameRate }: Camera): void {
  const file = openSync(path, 'w');
  try {
    writeSync(file, `YUV4MPEG2 W${width} H${height} F${frameRate}:1 Ip A1:1 C420jpeg\n`);
    const colors = Buffer.alloc((width * height) / 2, 128);
    const noise = noiseOf(width * height);
    for (let at = 0; at < SECONDS * frameRate; at++) {
      const turn = (2 * Math.PI * at) / (SECONDS * frameRate);
      const frame = pictureOf(width, height, turn, noise.subarray((at * 7_919) % width));
      writeSync(file, 'FRAME\n');
      writeSync(file, frame);
      writeSync(file, colors);
    }
  } finally {
    closeSync(file);
  }
}

function pictureOf(width: number, height: number, turn: number, noise: Int8Array): Buffer {
  const picture = Buffer.alloc(width * height);
  const head = { x: width / 2 + (width / 12) * Math.sin(turn), y: height / 2 + (height / 20) * Math.sin(2 * turn) };
  const [wide, high] = [width / 7, height / 3.5];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [fromX, fromY] = [x - head.x, y - head.y];
      const isHead = (fromX / wide) ** 2 + (fromY / high) ** 2 < 1;
      const shade = isHead ? 150 + 30 * Math.sin(fromX / 9) * Math.sin(fromY / 7) : 90 + 40 * Math.sin(x / 31 + y / 53);
      picture[y * width + x] = shade + (noise[y * width + x] ?? 0);
    }
  }
  return picture;
}

/** The same in each run, and longer by a line, so that each picture begins elsewhere. */
function noiseOf(pixels: number): Int8Array {
  let seed = 1;
  return Int8Array.from({ length: pixels + 10_000 }, () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return ((seed >>> 24) / 255 - 0.5) * 2 * NOISE;
  });
}
