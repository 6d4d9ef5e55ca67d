export const WIDTH = 1280;
export const HEIGHT = 720;
/** More people than these are heard only. */
export const TILES_MAX = 25;

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Between tiles, in pixels. Encoders want even sizes. */
const GAP = 4;
const STRIP_WIDTH = 320;
const STRIP_HEIGHT = 180;
/** Tiles beside the large one. */
export const STRIP_MAX = HEIGHT / STRIP_HEIGHT;

const even = (pixels: number): number => 2 * Math.floor(pixels / 2);

function tile(x: number, y: number, width: number, height: number): Rectangle {
  return { x: even(x + GAP / 2), y: even(y + GAP / 2), width: even(width - GAP), height: even(height - GAP) };
}

/** Tiles of equal size, in rows. The last row is centered. */
export function grid(count: number): Rectangle[] {
  if (count === 1) return [{ x: 0, y: 0, width: WIDTH, height: HEIGHT }];
  const columns = Math.ceil(Math.sqrt(count));
  const rows = Math.ceil(count / columns);
  const [width, height] = [WIDTH / columns, HEIGHT / rows];
  return Array.from({ length: count }, (_, index) => {
    const row = Math.floor(index / columns);
    const inRow = row === rows - 1 ? count - columns * row : columns;
    const left = ((columns - inRow) * width) / 2;
    return tile(left + (index - columns * row) * width, row * height, width, height);
  });
}

/** One large tile, and the others in a strip beside it. */
export function stage(count: number): Rectangle[] {
  if (count === 1) return grid(1);
  const top = (HEIGHT - (count - 1) * STRIP_HEIGHT) / 2;
  const strip = Array.from({ length: count - 1 }, (_, index) =>
    tile(WIDTH - STRIP_WIDTH, top + index * STRIP_HEIGHT, STRIP_WIDTH, STRIP_HEIGHT),
  );
  return [tile(0, 0, WIDTH - STRIP_WIDTH, HEIGHT), ...strip];
}
