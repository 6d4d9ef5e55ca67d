import { closeSync, openSync, writeSync } from 'node:fs';

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
