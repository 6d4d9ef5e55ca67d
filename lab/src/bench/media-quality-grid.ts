import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Stage } from '../fleet/stage.js';
import { printHead, printRow } from './figures.js';
import { writeCamera } from './media-quality-camera.js';
import { bounded, openPages, sentBytesOf, type BenchPage, type Pages } from './media-quality-pages.js';
import type { CallBench } from './signaling.js';

const CAMERA = { width: 640, height: 360, frameRate: 15 };
/** Three columns on a page of 1280×720. */
const TILE = { width: 400, height: 225 };
/** With the one that is measured they are eight. */
const OTHERS = 7;
/** Turning off a layer takes 5 s. */
const SETTLE_MS = 10_000;
const MEASURED_MS = 10_000;

const COLUMNS = [
  '8 in a grid',
  'frames/s of a tile',
  'height of a tile',
  'received kbit/s',
  'sent kbit/s',
  'CPU of a participant',
  'CPU of another one, who only sends',
];

interface Variant {
  name: string;
  adaptive: boolean;
  camera: typeof CAMERA | undefined;
}
const VARIANTS: Variant[] = [
  { name: 'microphones alone', adaptive: true, camera: undefined },
  // For everyone, whatever is displayed, as before these features.
  { name: 'one layer', adaptive: false, camera: CAMERA },
  { name: 'adaptive, simulcast', adaptive: true, camera: CAMERA },
];

interface Sums {
  frames: number;
  bytes: number;
  sentBytes: number;
  height: number;
  atMs: number;
  cpuMs: number;
  othersCpuMs: number;
}
interface Browsers {
  own: Pages;
  others: Pages;
}

/**
 * What one of eight participants costs: it sends its camera and microphone, and shows the others in tiles. The other seven
 * send from one page of a browser of their own, and one of them receives the first: eight complete participants do not fit
 * two cores, and most of what they cost together is the processing of eight microphones.
 */
export async function measureGrids(stage: Stage, bench: CallBench): Promise<void> {
  const camera = join(stage.dir, 'camera.y4m');
  writeCamera(camera, CAMERA);
  const own = await openPages({ camera });
  stage.onClose(() => own.close());
  const others = await openPages({ camera });
  stage.onClose(() => others.close());
  printHead(...COLUMNS);
  for (const variant of VARIANTS)
    await bounded(variant.name, [own, others], () => measure(bench, { own, others }, variant));
}

async function measure(bench: CallBench, { own, others }: Browsers, variant: Variant): Promise<void> {
  const { adaptive, camera } = variant;
  const common = { url: bench.url, adaptive, tile: TILE };
  const room = await bench.newRoom();
  const tokenOf = (at: number) => bench.token(room, `participant ${at}`);
  const page = await own.open();
  const publish = { audio: true, video: camera, simulcast: adaptive };
  await page.join({ ...common, token: await tokenOf(0), publish });
  const tokens = await Promise.all(Array.from({ length: OTHERS }, (_, at) => tokenOf(at + 1)));
  const crowd = await others.open();
  await crowd.ask('enterOthers', { ...common, tokens, camera, simulcast: adaptive });
  await pause(SETTLE_MS);
  const sums = async (): Promise<Sums> => ({
    ...(await sumsOf(page)),
    cpuMs: own.cpuMs(),
    othersCpuMs: others.cpuMs(),
  });
  const before = await sums();
  await pause(MEASURED_MS);
  report(variant.name, before, await sums());
}

function report(name: string, before: Sums, after: Sums): void {
  const perMs = (field: keyof Sums) => (after[field] - before[field]) / (after.atMs - before.atMs);
  printRow(
    name,
    ((perMs('frames') * 1000) / OTHERS).toFixed(1),
    after.height.toFixed(0),
    (perMs('bytes') * 8).toFixed(0),
    (perMs('sentBytes') * 8).toFixed(0),
    `${(perMs('cpuMs') * 100).toFixed(0)} %`,
    `${((perMs('othersCpuMs') * 100) / OTHERS).toFixed(1)} %`,
  );
}

async function sumsOf(page: BenchPage): Promise<Omit<Sums, 'cpuMs' | 'othersCpuMs'>> {
  const [meter, sentBytes] = await Promise.all([page.meter(), sentBytesOf(page)]);
  const { frames, bytes, height, atMs } = meter;
  return { frames, bytes, height, atMs, sentBytes };
}
