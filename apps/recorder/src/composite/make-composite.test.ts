import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId, recordingFileKey } from '@callplane/core';
import { capture, participantRow, pictureCapture, sessionRow, soundCapture, vp8 } from '@callplane/testing';
import {
  agentPassed,
  beganAtMs,
  begin,
  deps,
  failingFrom,
  files,
  recordingId,
  roomId,
  row,
  ship,
  store,
  tenant,
  work,
} from '../operations/recorder.testkit.js';

describe('the composite of a recording', () => {
  const SECONDS = 8;
  let picture: Buffer;
  let sound: Buffer;
  beforeAll(async () => {
    picture = await pictureCapture(`testsrc2=s=320x180:r=25:d=${SECONDS}`);
    sound = await soundCapture(`sine=d=${SECONDS}`);
  });

  /** A call of ten seconds: somebody with a camera, which is muted for two seconds, and somebody without one. */
  async function call(layout: string | null, camera = picture): Promise<void> {
    const { prisma } = deps.database;
    const at = (ms: number) => new Date(beganAtMs + ms);
    await prisma.recording.update({
      where: { id: recordingId },
      data: { mode: 'composite', layout, audioOnly: layout === null, endedAt: at(10_000) },
    });
    const people = [newId('participant'), newId('participant')] as const;
    for (const [index, participantId] of people.entries()) {
      const person = participantRow(tenant, roomId, { id: participantId, name: `Person ${index}` });
      await prisma.participant.create({ data: person });
      const stay = { permissions: ['audio:publish'], startedAt: at(0) };
      await prisma.participantSession.create({ data: sessionRow(tenant, { roomId, participantId }, stay) });
    }
    const spans = [
      { ...{ trackId: 'cam', kind: 'video', source: 'camera', mid: '0', muted: false }, from: 500, to: 4000 },
      { ...{ trackId: 'cam', kind: 'video', source: 'camera', mid: '0', muted: true }, from: 4000, to: 6000 },
      { ...{ trackId: 'cam', kind: 'video', source: 'camera', mid: '0', muted: false }, from: 6000, to: 10_000 },
      { ...{ trackId: 'mic', kind: 'audio', source: 'microphone', mid: '0', muted: false }, from: 500, to: 10_000 },
    ];
    for (const { from, to, ...span } of spans) {
      const where = { roomId, participantId: people[0], sessionId: 's', feedId: 'feed' };
      await prisma.recordingSpan.create({ data: { ...where, ...span, startedAt: at(from), endedAt: at(to) } });
    }
    await ship('v', camera, { kind: 'video', feedId: 'feed' });
    await ship('a', sound, { feedId: 'feed' });
    await agentPassed();
  }

  const probed = async () => {
    const [file] = await files();
    const args = [
      '-v',
      'error',
      '-show_entries',
      'stream=codec_name,width,height,nb_frames:format=duration',
      '-of',
      'csv',
    ];
    return execFileSync('ffprobe', [...args, store.pathOf(recordingFileKey(recordingId, file!))], { encoding: 'utf8' });
  };

  test('is the same file if its recorder is killed after a track, after a scene, and before the end', async () => {
    await call('speaker');
    const written: string[] = [];
    expect(await work({ store: failingFrom(Infinity, written) })).toBeNull();
    expect(await row()).toMatchObject({ status: 'completed', progress: 100, gaps: [] });
    expect(await files()).toMatchObject([
      { kind: 'composite', contentType: 'video/mp4', width: 1280, durationMs: 10_000 },
    ]);
    expect(await probed()).toMatch(/h264,1280,720,250\n[^]*aac[^]*format,10\.0/);
    expect(readdirSync(store.pathOf(`recordings/${recordingId}`))).toHaveLength(1);
    const [whole] = await files();

    await begin();
    await call('speaker');
    // Two tracks, then scenes, then the composite.
    for (const from of [2, 3, written.length - 3]) expect(await work({ store: failingFrom(from) })).toBeGreaterThan(0);
    const last: string[] = [];
    expect(await work({ store: failingFrom(Infinity, last) })).toBeNull();
    expect(last).toEqual([expect.stringMatching(/\.mp4$/)]);
    expect((await files()).map(({ sha256 }) => sha256)).toEqual([whole!.sha256]);
  });

  test('shows nothing in place of a picture that cannot be decoded or is far too large', async () => {
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
      await call('grid', broken(size));
      expect(await work()).toBeNull();
      expect(await probed()).toMatch(/h264,1280,720,250\n/);
    }
  });

  test('without pictures has only sound, and WebM on request', async () => {
    await call(null);
    expect(await work({ compositeFormat: 'webm' })).toBeNull();
    expect(await files()).toMatchObject([{ kind: 'composite', contentType: 'audio/webm', width: null }]);
    expect(await probed()).toMatch(/^stream,opus[^]*format,10\.0/);
    await begin();
    await call('grid');
    expect(await work({ compositeFormat: 'webm' })).toBeNull();
    expect(await probed()).toMatch(/vp8,1280,720,[^]*opus[^]*format,10\.0/);
  });
});
