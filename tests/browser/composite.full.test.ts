import { createHash } from 'node:crypto';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { colorAt, eventually, medianOffset, offsetsOf } from '@callplane/testing';
import { mediaFlows, openBrowser, type Browsers, type ParticipantPage } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';
import { installFlashes } from './flashes.testkit.js';
import { playedIn, probe, recordingsOf } from './recordings.testkit.js';

/** A composite of a call of two browsers in which tracks are muted and somebody comes back; its recorder is killed. */

let stage: Stage;
let browsers: Browsers;
let recordings: ReturnType<typeof recordingsOf>;
let ada: ParticipantPage;
let bob: ParticipantPage;
beforeAll(async () => {
  [stage, browsers] = await Promise.all([openStage({ recordings: true }), openBrowser()]);
  recordings = recordingsOf(stage);
  [ada, bob] = await Promise.all([browsers.newParticipant(), browsers.newParticipant()]);
  await installFlashes(ada.page, { color: '#00f', flashes: true });
  await installFlashes(bob.page, { color: '#0f0', flashes: false });
});
afterAll(() => Promise.all([ada.close(), bob.close()]));

const enter = (page: ParticipantPage, token: string) =>
  page.join({ url: stage.url, token, publish: { audio: true, video: {}, simulcast: false } });

/** Waits until the pattern of the page has flashed some more times. */
async function flash(times: number): Promise<void> {
  const count = () => ada.page.evaluate(() => (globalThis as unknown as { flashes: number }).flashes);
  const before = await count();
  await eventually(async () => (await count()) >= before + times);
}

const trackIds = async (page: ParticipantPage, name: string): Promise<string[]> =>
  (await page.ask<Record<string, string[]>>('others'))[name]!;
const mute = async (page: ParticipantPage, ids: string[], how: 'mute' | 'unmute') => {
  for (const id of ids) await page.ask(how, id);
};

const LEFT = '600:300:20:200';
const RIGHT = '600:300:660:200';
const MIDDLE = '60:60:610:100';
const BLUE = [0, 0, 254];
const GREEN = [0, 254, 0];
/** The tile of somebody without a camera. */
const SLATE = [48, 56, 72];

describe('a composite', () => {
  let recording: any;
  let tracks: any;
  let path: string;
  let adaId: string;
  /** Seconds in the recording. */
  const at: Record<string, number> = {};
  beforeAll(async () => {
    const roomId = await stage.newRoom();
    const { token, participantId } = await stage.token(roomId, 'Ada');
    adaId = participantId;
    await enter(ada, token);
    await enter(bob, (await stage.token(roomId, 'Bob 名前')).token);
    await mediaFlows([ada, bob], { kinds: ['packets'] });
    const composite = await recordings.record(roomId, { mode: 'composite' });
    const [{ id }, adaIds, bobIds] = [
      await recordings.record(roomId, { mode: 'tracks' }),
      await trackIds(bob, 'Ada'),
      await trackIds(ada, 'Bob 名前'),
    ];
    const mark = (name: string) => (at[name] = (Date.now() - Date.parse(composite.startedAt)) / 1000);
    await recordings.isRecorded(roomId, 4, 2000);
    await flash(6);
    mark('muting');
    await Promise.all([mute(ada, adaIds, 'mute'), mute(bob, bobIds, 'mute')]);
    mark('muted');
    await flash(4);
    mark('unmuting');
    await Promise.all([mute(ada, adaIds, 'unmute'), mute(bob, bobIds, 'unmute')]);
    mark('unmuted');
    await flash(6);
    mark('leaving');
    await ada.ask('leave');
    mark('left');
    await flash(3);
    mark('returning');
    await enter(ada, token);
    await mediaFlows([bob, ada], { kinds: ['packets'] });
    mark('returned');
    await flash(7);
    mark('end');
    await stage.call('DELETE', `/v1/rooms/${roomId}`);

    const parts = join(stage.recordingsFolder, 'recordings', composite.id, 'parts');
    const scenes = () => (existsSync(parts) ? readdirSync(parts).filter((name) => name.endsWith('.mkv')) : []);
    await eventually(() => scenes().length > 0, { intervalMs: 20 });
    stage.recorder!.kill('SIGKILL');
    await stage.recorder!.exited;
    const [scene] = scenes();
    const { mtimeMs } = statSync(join(parts, scene!));
    await stage.spawnRecorder();
    // The next recorder continues after the scenes that are there.
    await eventually(() => scenes().length > 2, { intervalMs: 20 });
    expect(statSync(join(parts, scene!)).mtimeMs).toBe(mtimeMs);
    [recording, tracks] = [await recordings.finished(composite.id), await recordings.finished(id)];
    path = await download(composite.id, recording.files[0]);
    expect(existsSync(parts)).toBe(false);
  });

  async function download(id: string, file: any): Promise<string> {
    const to = join(stage.recordingsFolder, file.id);
    const response = await fetch(await recordings.linkOf(id, file));
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(response.headers.get('content-type')).toBe(file.contentType);
    expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([file.bytes, file.sha256]);
    writeFileSync(to, bytes);
    return to;
  }

  test('is one file, whose index comes first', async () => {
    expect(recording).toMatchObject({ status: 'completed', progress: 100, layout: 'grid', gaps: [] });
    expect(recording.files).toMatchObject([
      { kind: 'composite', participantId: null, contentType: 'video/mp4', startMs: 0, width: 1280, height: 720 },
    ]);
    const { streams, format } = probe(path);
    expect(streams).toMatchObject([
      { codec_name: 'h264', width: 1280, height: 720, r_frame_rate: '25/1' },
      { codec_name: 'aac' },
    ]);
    expect(Math.abs(Number(format.duration) * 1000 - recording.durationMs)).toBeLessThan(100);
    const head = await (await fetch(await recordings.linkOf(recording.id, recording.files[0]))).arrayBuffer();
    expect(Buffer.from(head).indexOf('moov')).toBeLessThan(Buffer.from(head).indexOf('mdat'));
  });

  test('plays and seeks in Chromium', async () => {
    const { page, close } = await browsers.newParticipant();
    const played = await playedIn(page, await recordings.linkOf(recording.id, recording.files[0]));
    expect(Math.abs(played.seconds * 1000 - recording.durationMs)).toBeLessThan(100);
    expect(played.at).toBeCloseTo(played.seconds, 1);
    await close();
  });

  /** The colors between flashes: the darkest of some pictures. */
  const colorOf = (crop: string, from: number, to: number): number[] =>
    [0.3, 0.4, 0.5, 0.6, 0.7]
      .map((share) => colorAt(path, from + share * (to - from), crop))
      .sort((a, b) => a.reduce((x, y) => x + y) - b.reduce((x, y) => x + y))[0]!;
  const expectColor = (found: number[], expected: number[]) => {
    const distance = Math.max(...found.map((value, part) => Math.abs(value - expected[part]!)));
    if (distance > 40) throw new Error(`${found.join(',')} instead of ${expected.join(',')}`);
  };

  test('shows who is there, with and without a camera', () => {
    const spans = [
      [2, at['muting']!],
      [at['unmuted']! + 1, at['leaving']!],
    ] as const;
    for (const [from, to] of spans) {
      expectColor(colorOf(LEFT, from, to), BLUE);
      expectColor(colorOf(RIGHT, from, to), GREEN);
    }
    for (const crop of [LEFT, RIGHT]) expectColor(colorOf(crop, at['muted']! + 1, at['unmuting']!), SLATE);
    expectColor(colorOf(MIDDLE, at['left']! + 1, at['returning']!), GREEN);
    const [first, second] = [LEFT, RIGHT].map((crop) => colorOf(crop, at['returned']! + 1, at['end']!));
    // She comes back to her place.
    expectColor(first!, BLUE);
    expectColor(second!, GREEN);
  });

  test('has sound and picture as its tracks have them at its start, after mutes and after a return', async () => {
    const filesOf = (source: string) =>
      Promise.all(
        tracks.files
          .filter((file: any) => file.participantId === adaId && file.source === source)
          .map(async (file: any) => ({ path: await download(tracks.id, file), startMs: file.startMs })),
      );
    const parts = [
      [0, at['muting']!],
      [at['unmuted']!, at['leaving']!],
      [at['returned']!, at['end']!],
    ] as const;
    const whole = [{ path, startMs: 0 }];
    const offsets = offsetsOf(whole, whole, LEFT);
    const ofTracks = offsetsOf(await filesOf('camera'), await filesOf('microphone'));
    const found = parts.map(([from, to]) => ({
      composite: medianOffset(offsets, from, to),
      tracks: medianOffset(ofTracks, from, to),
    }));
    process.stderr.write(`    measured: sound before picture in ms: ${JSON.stringify(found)}\n`);
    // A busy browser sends them apart. The tracks have what it has sent, and the composite must not add to it.
    expect(found.filter(({ composite, tracks }) => Math.abs(composite - tracks) <= 40)).toEqual(found);
  });
});
