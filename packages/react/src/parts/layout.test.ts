import { describe, expect, test } from '@jest/globals';
import { layOut, type Rect } from './layout.js';

const GAP = 10;
/** Rounding. */
const EPSILON = 0.001;
const SPACES = [
  { width: 1280, height: 720, gap: GAP },
  { width: 1000, height: 400, gap: GAP },
  { width: 700, height: 900, gap: GAP },
  { width: 390, height: 700, gap: GAP },
  { width: 360, height: 520, gap: GAP },
];
const COUNTS = [0, 1, 2, 3, 5, 6, 7, 9, 10, 100];
const CASES = SPACES.flatMap((space) =>
  COUNTS.flatMap((count) => [true, false].map((hasStage) => ({ count, hasStage, space }))),
);

const isInside = (rect: Rect, { width, height }: { width: number; height: number }) =>
  rect.left >= -EPSILON &&
  rect.top >= -EPSILON &&
  rect.left + rect.width <= width + EPSILON &&
  rect.top + rect.height <= height + EPSILON;
const doOverlap = (a: Rect, b: Rect) =>
  a.left + a.width > b.left + EPSILON &&
  b.left + b.width > a.left + EPSILON &&
  a.top + a.height > b.top + EPSILON &&
  b.top + b.height > a.top + EPSILON;

describe('the layout of a page', () => {
  test.each(CASES)('places tiles inside the space and beside each other: %j', ({ count, hasStage, space }) => {
    const { stage, tiles } = layOut(count, hasStage, space);
    const all = stage === undefined ? tiles : [stage, ...tiles];
    expect(all.filter((rect) => !isInside(rect, space))).toEqual([]);
    const overlaps = all.flatMap((a, at) => all.slice(at + 1).filter((b) => doOverlap(a, b)));
    expect(overlaps).toEqual([]);
    // No tile is too small to be seen.
    expect(all.filter(({ width, height }) => width < 50 || height < 30)).toEqual([]);
    // The shape of a camera: no picture is cropped.
    if (!hasStage) for (const { width, height } of tiles) expect(width / height).toBeCloseTo(16 / 9);
  });

  test.each(CASES)('holds as many tiles as its pages are counted with: %j', ({ count, hasStage, space }) => {
    const { tiles, perPage } = layOut(count, hasStage, space);
    expect(perPage).toBeGreaterThan(0);
    expect(tiles).toHaveLength(Math.min(count, perPage));
    const pages = Math.ceil(count / perPage);
    const placed = Array.from({ length: pages }, (_, page) => layOut(count - page * perPage, hasStage, space).tiles);
    expect(placed.flat()).toHaveLength(count);
  });
});
