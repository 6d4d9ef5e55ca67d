import { randomFillSync } from 'node:crypto';
import type { nodePlatform } from '../node-platform.js';

type Media = Awaited<ReturnType<typeof nodePlatform>>['media'];

const [WIDTH, HEIGHT] = [320, 240];
const FRAME_EVERY_MS = 66;
const SAMPLE_RATE = 48_000;
const BLOCK_MS = 10;

export interface Source {
  track: MediaStreamTrack;
  stop(): void;
}

/** Pictures of noise, which no encoder makes smaller than its bit rate. */
export function startNoise({ RTCVideoSource }: Media): Source {
  const source = new RTCVideoSource();
  const data = new Uint8Array((WIDTH * HEIGHT * 3) / 2);
  return startSource(source.createTrack(), FRAME_EVERY_MS, () =>
    source.onFrame({ width: WIDTH, height: HEIGHT, data: randomFillSync(data) }),
  );
}

export function startTone({ RTCAudioSource }: Media): Source {
  const source = new RTCAudioSource();
  const numberOfFrames = (SAMPLE_RATE * BLOCK_MS) / 1000;
  const samples = Int16Array.from({ length: numberOfFrames }, (_, n) => 8000 * Math.sin((n * 2 * Math.PI) / 109));
  const block = { samples, sampleRate: SAMPLE_RATE, bitsPerSample: 16 as const, channelCount: 1, numberOfFrames };
  return startSource(source.createTrack(), BLOCK_MS, () => source.onData(block));
}

function startSource(track: unknown, everyMs: number, produce: () => void): Source {
  const timer = setInterval(produce, everyMs);
  const own = track as MediaStreamTrack;
  return {
    track: own,
    stop: () => {
      clearInterval(timer);
      own.stop();
    },
  };
}
