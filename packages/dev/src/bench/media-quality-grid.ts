import { setTimeout as pause } from 'node:timers/promises';
import type { BenchPage, openPages } from './media-quality-pages.js';
import type { openBench } from './signaling.js';

/**
 * Eight cameras with 20 moving pictures a second do not fit two cores, and the figures would be those of a machine that is
 * too slow. Still ones with a moving bar leave time for all, and only the ratio of the rows counts.
 */
const CAMERA = { width: 640, height: 360, frameRate: 5 };
const LAYERS = [{ maxBitrate: 500_000 }, { maxBitrate: 120_000, scaleResolutionDownBy: 2 }];
const ONE_LAYER = [{ maxBitrate: 1_200_000 }];
/** Seven of them fit on a page of 1280×720. */
const TILE = { width: 300, height: 169 };
const PARTICIPANTS = 8;
/** Turning off a layer takes 5 s. */
const SETTLE_MS = 10_000;
const MEASURED_MS = 10_000;

export const GRID_HEAD = [
  `| ${PARTICIPANTS} in a grid | frames/s of a tile | height of a tile | received kbit/s | sent kbit/s | Chromium CPU |`,
  '| --- | --- | --- | --- | --- | --- |',
].join('\n');

interface SentStats {
  type: string;
  bytesSent: number;
  headerBytesSent?: number;
}
interface Sums {
  frames: number;
  bytes: number;
  sentBytes: number;
  height: number;
  atMs: number;
}

/**
 * Participants with a still camera and a microphone each, who see one another in small tiles.
 * @param adaptive false: one layer for everyone, whatever is displayed, as before these features
 */
export async function measureGrid(
  bench: Awaited<ReturnType<typeof openBench>>,
  pages: Awaited<ReturnType<typeof openPages>>,
  adaptive: boolean,
): Promise<void> {
  const room = await bench.newRoom();
  const enter = async (at: number): Promise<BenchPage> => {
    const page = await pages.open();
    const token = await bench.token(room, `participant ${at}`);
    await page.join({ url: bench.url, token, adaptive, tile: TILE, publish: { audio: true } });
    const code = await page.ask<string | null>('publishStill', { ...CAMERA, encodings: adaptive ? LAYERS : ONE_LAYER });
    if (code !== null) throw new Error(`participant ${at} cannot publish: ${code}`);
    return page;
  };
  const opened = await Promise.all(Array.from({ length: PARTICIPANTS }, (_, at) => enter(at)));
  await pause(SETTLE_MS);
  const cpuBefore = pages.cpuMs();
  const before = await Promise.all(opened.map(sumsOf));
  await pause(MEASURED_MS);
  const after = await Promise.all(opened.map(sumsOf));
  const cpuPercent = ((pages.cpuMs() - cpuBefore) / MEASURED_MS) * 100;
  const mean = (of: (from: Sums, to: Sums) => number) =>
    after.reduce((sum, to, at) => sum + of(before[at] ?? to, to) / ((to.atMs - (before[at]?.atMs ?? 0)) / 1000), 0) /
    PARTICIPANTS;
  const cells = [
    adaptive ? 'adaptive, simulcast' : 'one layer',
    (mean((from, to) => to.frames - from.frames) / (PARTICIPANTS - 1)).toFixed(1),
    Math.max(...after.map(({ height }) => height)).toFixed(0),
    mean((from, to) => ((to.bytes - from.bytes) * 8) / 1000).toFixed(0),
    mean((from, to) => ((to.sentBytes - from.sentBytes) * 8) / 1000).toFixed(0),
    `${cpuPercent.toFixed(0)} %`,
  ];
  console.log(`| ${cells.join(' | ')} |`);
}

async function sumsOf(page: BenchPage): Promise<Sums> {
  const [meter, sent] = await Promise.all([
    page.meter(),
    page.page.evaluate<SentStats[]>(`participant.statsOf('publisher')`),
  ]);
  const sentBytes = sent
    .filter(({ type }) => type === 'outbound-rtp')
    .reduce((sum, { bytesSent, headerBytesSent = 0 }) => sum + bytesSent + headerBytesSent, 0);
  return { frames: meter.frames, bytes: meter.bytes, height: meter.height, atMs: meter.atMs, sentBytes };
}
