import { readdirSync } from 'node:fs';
import { beforeAll, expect, test } from '@jest/globals';
import { recordingFileKey } from '@callplane/core';
import { capture, medianOffset, offsetsOf, vp8 } from '@callplane/testing';
import { begin, failingFrom, files, recordingId, row, store, work } from '../operations/recorder.testkit.js';
import { beeps, call, flashes, probed } from './composite.testkit.js';

let picture: Buffer;
let sound: Buffer;
beforeAll(async () => {
  [picture, sound] = await Promise.all([flashes(), beeps()]);
});

test('a composite is the same file if its recorder is killed after a track, after a scene, and before the end', async () => {
  await call('speaker', sound, picture);
  const written: string[] = [];
  expect(await work({ store: failingFrom(Infinity, written) })).toBeNull();
  expect(await row()).toMatchObject({ status: 'completed', progress: 100, gaps: [] });
  expect(await files()).toMatchObject([
    { kind: 'composite', contentType: 'video/mp4', width: 1280, durationMs: 10_000 },
  ]);
  expect(await probed()).toMatch(/h264,1280,720,250\n[^]*aac[^]*format,10\.0/);
  expect(readdirSync(store.pathOf(`recordings/${recordingId}`))).toHaveLength(1);
  const [whole] = await files();
  const file = [{ path: store.pathOf(recordingFileKey(recordingId, whole!)), startMs: 0 }];
  // The camera is muted between 4 and 6 seconds.
  const offsets = offsetsOf(file, file, '640:400:100:150');
  for (const [from, to] of [
    [1.5, 4],
    [6, 9],
  ] as const) {
    expect(Math.abs(medianOffset(offsets, from, to))).toBeLessThanOrEqual(40);
  }

  await begin();
  await call('speaker', sound, picture);
  // Two tracks, then scenes, then the composite.
  for (const from of [2, 3, written.length - 3]) expect(await work({ store: failingFrom(from) })).toBeGreaterThan(0);
  const last: string[] = [];
  expect(await work({ store: failingFrom(Infinity, last) })).toBeNull();
  expect(last).toEqual([expect.stringMatching(/\.mp4$/)]);
  expect((await files()).map(({ sha256 }) => sha256)).toEqual([whole!.sha256]);
});

test('a composite shows nothing in place of a picture that cannot be decoded or is far too large', async () => {
  const broken = (size: { width: number; height: number }) =>
    capture('vp8', [
      { arrivalMs: 0, sequence: 1, timestamp: 0, payload: vp8(size) },
      { arrivalMs: 5000, sequence: 2, timestamp: 450_000, payload: vp8(null) },
    ]);
  for (const size of [
    { width: 320, height: 180 },
    { width: 16_383, height: 16_383 },
  ]) {
    await begin();
    await call('grid', sound, broken(size));
    expect(await work()).toBeNull();
    expect(await probed()).toMatch(/h264,1280,720,250\n/);
  }
});

test('a composite is WebM on request', async () => {
  await call('grid', sound, picture);
  expect(await work({ compositeFormat: 'webm' })).toBeNull();
  expect(await probed()).toMatch(/vp8,1280,720,[^]*opus[^]*format,10\.0/);
});
