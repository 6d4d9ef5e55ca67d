import { execFileSync } from 'node:child_process';

// Measures files whose pictures flash while their sound beeps.

const seek = (from: number): string[] => (from === 0 ? [] : ['-ss', String(from)]);

const run = (program: string, ...args: string[]): Buffer => execFileSync(program, args, { maxBuffer: 2 ** 30 });

/** Seconds at which a flash begins in a file, or in a part of its picture such as `640:720:0:0`. */
function flashesOf(path: string, crop: string, from: number): number[] {
  const filter = `crop=${crop},scale=16:9,signalstats,metadata=print:key=lavfi.signalstats.YAVG:file=-`;
  const input = [...seek(from), '-copyts', '-i', path, '-map', '0:v:0'];
  const text = run('ffmpeg', '-v', 'error', ...input, '-vf', filter, '-f', 'null', '-');
  const values = [...text.toString().matchAll(/pts_time:([\d.]+)\s+lavfi.signalstats.YAVG=([\d.]+)/g)];
  const isBright = (index: number): boolean => Number(values[index]?.[2]) > 150;
  return values.flatMap(([, seconds], index) => (isBright(index) && !isBright(index - 1) ? [Number(seconds)] : []));
}

const RATE = 48_000;
/** Two milliseconds. */
const BLOCK = 96;
const LOUD = 3000;
const QUIET_BLOCKS = 50;

/** Seconds at which a beep begins in a file. */
function beepsOf(path: string, from: number): number[] {
  const filter = 'aresample=48000:async=1:min_hard_comp=0.01:first_pts=0';
  const input = [...seek(from), '-i', path, '-map', '0:a:0'];
  const raw = run('ffmpeg', '-v', 'error', ...input, '-af', filter, '-ac', '1', '-f', 's16le', '-');
  const samples = new Int16Array(raw.buffer, raw.byteOffset, raw.length >> 1);
  const beeps: number[] = [];
  let quiet = QUIET_BLOCKS;
  for (let at = 0; at + BLOCK <= samples.length; at += BLOCK) {
    const isLoud = samples.subarray(at, at + BLOCK).some((value) => Math.abs(value) > LOUD);
    if (isLoud && quiet >= QUIET_BLOCKS) beeps.push(from + at / RATE);
    quiet = isLoud ? 0 : quiet + 1;
  }
  return beeps;
}

interface Offset {
  /** In the recording. */
  seconds: number;
  /** How much later the picture is than the sound. */
  ms: number;
}

interface Media {
  path: string;
  startMs: number;
}

/**
 * The offset of each flash from its beep.
 * @param from seconds of each file that are left out
 */
export function offsetsOf(pictures: readonly Media[], sounds: readonly Media[], crop = 'iw:ih', from = 0): Offset[] {
  const inRecording = ({ startMs }: Media, times: number[]) => times.map((seconds) => seconds + startMs / 1000);
  const flashes = pictures.flatMap((file) => inRecording(file, flashesOf(file.path, crop, from)));
  const beeps = sounds.flatMap((file) => inRecording(file, beepsOf(file.path, from)));
  return flashes.flatMap((seconds) => {
    const ms = beeps.map((beep) => (seconds - beep) * 1000).sort((a, b) => Math.abs(a) - Math.abs(b))[0];
    return ms === undefined || Math.abs(ms) > 300 ? [] : [{ seconds, ms }];
  });
}

/** The middle offset of those in a time, of at least three. */
export function medianOffset(offsets: readonly Offset[], from = 0, to = Infinity): number {
  const within = offsets.filter(({ seconds }) => seconds >= from && seconds < to).map(({ ms }) => ms);
  if (within.length < 3) throw new Error(`only ${within.length} flashes between ${from} and ${to} s`);
  return within.sort((a, b) => a - b)[within.length >> 1] ?? NaN;
}

/** The color in the middle of a rectangle, each part from 0 to 255. */
export function colorAt(path: string, seconds: number, crop: string): number[] {
  const filter = `crop=${crop},scale=1:1:flags=area,format=rgb24`;
  const args = [
    '-v',
    'error',
    '-ss',
    String(seconds),
    '-i',
    path,
    '-frames:v',
    '1',
    '-vf',
    filter,
    '-f',
    'rawvideo',
    '-',
  ];
  return [...run('ffmpeg', ...args)];
}
