import { execFileSync } from 'node:child_process';
import type { Page } from 'playwright-core';

/**
 * Replaces the camera and the microphone of a page: the picture has a color, and flashes white while the sound beeps, at
 * irregular times. A regular pattern would hide whole seconds.
 * @param color null: no flashes, and no sound
 */
export async function installFlashes(page: Page, { color, flashes }: { color: string; flashes: boolean }) {
  await page.evaluate(
    ([color, flashes]) => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 });
      const picture = canvas.getContext('2d')!;
      const sound = new AudioContext({ sampleRate: 48_000, latencyHint: 'interactive' });
      const [out, gain, tone] = [sound.createMediaStreamDestination(), sound.createGain(), sound.createOscillator()];
      gain.gain.value = 0;
      tone.frequency.value = 1000;
      tone.connect(gain).connect(out);
      tone.start();
      let [isOn, nextMs, seed, count] = [false, 0, 7, 0];
      const draw = () => {
        const now = performance.now();
        if (flashes && now >= nextMs) {
          isOn = !isOn;
          if (isOn) Object.assign(globalThis, { flashes: ++count });
          seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
          nextMs = now + (isOn ? 160 : 500 + (seed % 7) * 130);
          gain.gain.setValueAtTime(isOn ? 0.5 : 0, sound.currentTime);
        }
        picture.fillStyle = isOn ? '#fff' : color;
        picture.fillRect(0, 0, 320, 180);
        // A canvas that does not change sends no picture.
        picture.fillStyle = `hsl(0,0%,${Math.round(now / 40) % 20}%)`;
        picture.fillRect(0, 0, 8, 8);
      };
      // Timers of a worker keep their pace in a page that is not shown.
      const timer = URL.createObjectURL(new Blob(['setInterval(() => postMessage(0), 40)']));
      new Worker(timer).onmessage = draw;
      const [video] = canvas.captureStream(25).getVideoTracks();
      const [audio] = out.stream.getAudioTracks();
      navigator.mediaDevices.getUserMedia = async (wanted = {}) =>
        new MediaStream([...(wanted.video ? [video!.clone()] : []), ...(wanted.audio ? [audio!.clone()] : [])]);
    },
    [color, flashes] as const,
  );
}

const run = (program: string, ...args: string[]): Buffer => execFileSync(program, args, { maxBuffer: 2 ** 30 });

/** Seconds at which a flash begins in a file, or in a part of its picture such as `640:720:0:0`. */
function flashesOf(path: string, crop: string): number[] {
  const filter = `crop=${crop},scale=16:9,signalstats,metadata=print:key=lavfi.signalstats.YAVG:file=-`;
  const text = run('ffmpeg', '-v', 'error', '-copyts', '-i', path, '-map', '0:v:0', '-vf', filter, '-f', 'null', '-');
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
function beepsOf(path: string): number[] {
  const filter = 'aresample=48000:async=1:min_hard_comp=0.01:first_pts=0';
  const raw = run('ffmpeg', '-v', 'error', '-i', path, '-map', '0:a:0', '-af', filter, '-ac', '1', '-f', 's16le', '-');
  const samples = new Int16Array(raw.buffer, raw.byteOffset, raw.length >> 1);
  const beeps: number[] = [];
  let quiet = QUIET_BLOCKS;
  for (let at = 0; at + BLOCK <= samples.length; at += BLOCK) {
    const isLoud = samples.subarray(at, at + BLOCK).some((value) => Math.abs(value) > LOUD);
    if (isLoud && quiet >= QUIET_BLOCKS) beeps.push(at / RATE);
    quiet = isLoud ? 0 : quiet + 1;
  }
  return beeps;
}

export interface Offset {
  /** In the recording. */
  seconds: number;
  /** How much later the picture is than the sound. */
  ms: number;
}

interface Media {
  path: string;
  startMs: number;
}

/** The offset of each flash from its beep. */
export function offsetsOf(pictures: readonly Media[], sounds: readonly Media[], crop = 'iw:ih'): Offset[] {
  const inRecording = ({ startMs }: Media, times: number[]) => times.map((seconds) => seconds + startMs / 1000);
  const flashes = pictures.flatMap((file) => inRecording(file, flashesOf(file.path, crop)));
  const beeps = sounds.flatMap((file) => inRecording(file, beepsOf(file.path)));
  return flashes.flatMap((seconds) => {
    const ms = beeps.map((beep) => (seconds - beep) * 1000).sort((a, b) => Math.abs(a) - Math.abs(b))[0];
    return ms === undefined || Math.abs(ms) > 300 ? [] : [{ seconds, ms }];
  });
}

/** The middle offset of those in a time, of at least three. */
export function medianOffset(offsets: readonly Offset[], from = 0, to = Infinity): number {
  const within = offsets.filter(({ seconds }) => seconds >= from && seconds < to).map(({ ms }) => ms);
  if (within.length < 3) throw new Error(`only ${within.length} flashes between ${from} and ${to} s`);
  return within.sort((a, b) => a - b)[within.length >> 1]!;
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
