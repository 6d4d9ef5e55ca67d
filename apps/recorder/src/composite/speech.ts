import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ffmpeg } from '../captures/ffmpeg.js';
import { without, type Interval } from './speakers.js';

/** Shorter pauses belong to speech. */
const SILENCE = 'silencedetect=noise=-40dB:d=0.7';
const SILENCES_FILE = 'silences.txt';

/** When a file of a track has sound. Writes a file beside it. */
export async function findSpeech(path: string, durationMs: number, signal: AbortSignal): Promise<Interval[]> {
  const folder = dirname(path);
  const filter = `${SILENCE},ametadata=mode=print:file=${SILENCES_FILE}`;
  await ffmpeg(['-threads', '1', '-i', path, '-af', filter, '-f', 'null', '-'], { signal, cwd: folder });
  const silences: Interval[] = [];
  const found = await readFile(join(folder, SILENCES_FILE), 'utf8');
  for (const [, what, seconds] of found.matchAll(/silence_(start|end)=([\d.]+)/g)) {
    const [last, ms] = [silences.at(-1), Number(seconds) * 1000];
    if (what === 'start') silences.push({ fromMs: ms, toMs: durationMs });
    else if (last !== undefined) last.toMs = ms;
  }
  return without({ fromMs: 0, toMs: durationMs }, silences);
}
