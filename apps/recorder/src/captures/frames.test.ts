import { describe, expect, test } from '@jest/globals';
import { vp8 } from '@callplane/testing';
import { Reorder, vp8Frames } from './frames.js';
import type { Packet } from './packets.js';

const packet = (sequence: number, more: Partial<Packet> = {}): Packet => ({
  arrivalMs: 0,
  sequence,
  timestamp: sequence * 10,
  isLastOfFrame: true,
  payload: Buffer.from('x'),
  ...more,
});

test('packets come out in their order, each once, although some were sent again', () => {
  const reorder = new Reorder();
  const out = [...reorder.add([1, 3, 2, 2, 5].map((n) => packet(n))), ...reorder.add([4, 3].map((n) => packet(n)))];
  expect([...out, ...reorder.rest()].map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
});

test('a packet that comes after its place has passed is left out', () => {
  const reorder = new Reorder();
  const first = reorder.add(Array.from({ length: 600 }, (_, n) => packet(n + 1)));
  expect(first.at(-1)?.sequence).toBe(88);
  expect([...reorder.add([packet(50)]), ...reorder.rest()].map(({ sequence }) => sequence)).not.toContain(50);
});

describe('a frame of VP8', () => {
  const SIZE = { width: 640, height: 360 };

  test('has its size if it needs no other frame', () => {
    const next = vp8Frames();
    expect(next(packet(1, { payload: vp8(SIZE) }))).toMatchObject({ timestamp: 10, keySize: SIZE });
    expect(next(packet(2, { payload: vp8(null) }))).toMatchObject({ timestamp: 20, keySize: null });
  });

  test('is joined from its packets, whatever their descriptors carry', () => {
    const next = vp8Frames();
    // With a picture id of two bytes, a layer index and a key index.
    const extended = Buffer.from([0x90, 0xf0, 0x80, 0x01, 0x00, 0x00]);
    const frame = vp8(SIZE).subarray(1);
    const same = { timestamp: 90 };
    const first = { ...same, isLastOfFrame: false, payload: Buffer.concat([extended, frame.subarray(0, 12)]) };
    expect(next(packet(7, first))).toBeNull();
    const continued = Buffer.concat([Buffer.from([0x80, 0x80, 0x01]), frame.subarray(12)]);
    expect(next(packet(8, { ...same, payload: continued }))?.data).toEqual(frame);
  });

  test('with a lost packet is left out', () => {
    const next = vp8Frames();
    const frame = { timestamp: 90, payload: vp8(SIZE), isLastOfFrame: false };
    expect(next(packet(1, frame))).toBeNull();
    expect(next(packet(3, { timestamp: 90, payload: Buffer.from([0, 1, 2]) }))).toBeNull();
    expect(next(packet(4, { payload: vp8(null) }))).not.toBeNull();
  });

  test('of an impossible size is left out', () => {
    const next = vp8Frames();
    const sizes = [
      [16_383, 16_383],
      [0, 90],
      [8, 4000],
    ] as const;
    for (const [width, height] of sizes) {
      expect(next(packet(1, { payload: vp8({ width, height }) }))).toBeNull();
    }
    expect(next(packet(2, { payload: vp8({ width: 3840, height: 2160 }) }))).not.toBeNull();
  });
});
