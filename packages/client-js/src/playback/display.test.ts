import { describe, expect, test } from '@jest/globals';
import { displayOf, type Shown } from './display.js';

const page = { isHidden: false, pixelRatio: 1, floating: null };
const shown = (width: number, height: number, more: Partial<Shown> = {}): Shown => ({
  element: { videoWidth: 1, videoHeight: 1 },
  isInView: true,
  width,
  height,
  ...more,
});
const layerOf = (width: number, height: number, before?: number) =>
  displayOf(
    [shown(width, height)],
    page,
    before === undefined ? undefined : { maxSpatial: before, isHidden: false, pixels: 0 },
  ).maxSpatial;

describe('a displayed track', () => {
  test('needs the layer of its size, in pixels of the screen', () => {
    expect([layerOf(320, 180), layerOf(440, 248), layerOf(640, 360), layerOf(1280, 720)]).toEqual([0, 0, 1, 2]);
    expect(displayOf([shown(320, 180)], { ...page, pixelRatio: 2 }, undefined)).toEqual({
      maxSpatial: 1,
      isHidden: false,
      pixels: 640 * 360,
    });
    // A portrait is as large as a landscape.
    expect(layerOf(180, 320)).toBe(0);
  });

  test('keeps its layer at sizes between two layers', () => {
    expect([layerOf(430, 242, 1), layerOf(430, 242, 0), layerOf(430, 242)]).toEqual([1, 0, 0]);
    expect([layerOf(390, 219, 1), layerOf(470, 264, 0)]).toEqual([0, 1]);
  });

  test('needs what the largest of its visible elements needs', () => {
    const elements = [shown(320, 180), shown(1280, 720, { isInView: false }), shown(640, 360)];
    expect(displayOf(elements, page, undefined)).toEqual({ maxSpatial: 1, isHidden: false, pixels: 640 * 360 });
  });

  test('is hidden off-screen, without a size, without elements, and in a hidden tab, and keeps its layer', () => {
    const hidden = { maxSpatial: 1, isHidden: true, pixels: 0 };
    const before = { maxSpatial: 1, isHidden: false, pixels: 1 };
    for (const elements of [[], [shown(640, 360, { isInView: false })], [shown(0, 0)]]) {
      expect(displayOf(elements, page, before)).toEqual(hidden);
    }
    expect(displayOf([shown(640, 360)], { ...page, isHidden: true }, before)).toEqual(hidden);
  });

  test('is received in full while it floats above other windows', () => {
    const element = { videoWidth: 1, videoHeight: 1 };
    const floating = { ...page, isHidden: true, floating: element };
    expect(displayOf([shown(100, 50, { element })], floating, undefined)).toEqual({
      maxSpatial: 2,
      isHidden: false,
      pixels: 5000,
    });
  });

  test('keeps its layer in an element that has the size of its picture', () => {
    const natural = shown(320, 180, { element: { videoWidth: 320, videoHeight: 180 } });
    expect(displayOf([natural], page, undefined).maxSpatial).toBe(2);
    expect(displayOf([natural], page, { maxSpatial: 1, isHidden: false, pixels: 0 }).maxSpatial).toBe(1);
    const empty = shown(300, 150, { element: { videoWidth: 0, videoHeight: 0 } });
    expect(displayOf([empty], page, undefined).maxSpatial).toBe(2);
  });
});
