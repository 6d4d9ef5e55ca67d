import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { mediaFlows, openBrowser, type Browsers, type ParticipantPage } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';
import { playedIn, probe, recordingsOf } from './recordings.testkit.js';

/** Recordings of a call of two browsers, from the request to the files: Janus, its agent, a recorder and ffmpeg. */

let stage: Stage;
let browsers: Browsers;
let recordings: ReturnType<typeof recordingsOf>;
const pages: ParticipantPage[] = [];
beforeAll(async () => {
  [stage, browsers] = await Promise.all([openStage({ recordings: true }), openBrowser()]);
  recordings = recordingsOf(stage);
});
afterAll(() => Promise.all(pages.map((page) => page.close())));

async function enter(roomId: string, name: string): Promise<{ page: ParticipantPage; participantId: string }> {
  const { token, participantId } = await stage.token(roomId, name);
  const page = await browsers.newParticipant();
  pages.push(page);
  await page.join({ url: stage.url, token, publish: true });
  return { page, participantId };
}

describe('a recorded call that ends with its room', () => {
  let id: string;
  let recording: any;
  let roomId: string;
  const participants: Record<string, string> = {};
  beforeAll(async () => {
    roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    Object.assign(participants, { Ada: ada.participantId, Bob: bob.participantId });
    await mediaFlows([ada.page, bob.page]);
    ({ id } = await recordings.record(roomId, { mode: 'tracks', metadata: { lesson: 7 } }));
    await recordings.isRecorded(roomId, 4);
    await stage.call('DELETE', `/v1/rooms/${roomId}`);
    recording = await recordings.finished(id);
  });

  test('has a file for each track', () => {
    expect(recording).toMatchObject({ status: 'completed', progress: 100, gaps: [], lastError: null });
    expect(recording.metadata).toEqual({ lesson: 7 });
    const { Ada, Bob } = participants;
    const tracks = recording.files.map(({ participantId, source }: any) => `${participantId} ${source}`);
    expect(tracks.sort()).toEqual([`${Ada} camera`, `${Ada} microphone`, `${Bob} camera`, `${Bob} microphone`].sort());
    for (const { startMs, durationMs } of recording.files) {
      expect(startMs).toBeGreaterThanOrEqual(0);
      expect(startMs + durationMs).toBeLessThanOrEqual(recording.durationMs + 100);
    }
  });

  test('writes its events in the sequence of the room', async () => {
    const types = await eventually(async () => {
      const all = await stage.eventTypes(roomId);
      return all.includes('recording.completed') && all.includes('room.ended') ? all : null;
    });
    const own = types.filter((type) => /^recording|^room.ended/.test(type));
    expect(own.filter((type) => type !== 'room.ended')).toEqual([
      'recording.started',
      'recording.stopped',
      'recording.completed',
    ]);
    expect(own.indexOf('recording.stopped')).toBeLessThan(own.indexOf('room.ended'));
  });

  test('has files that ffprobe and the link agree on', async () => {
    for (const file of recording.files) {
      const response = await fetch(await recordings.linkOf(id, file));
      const bytes = Buffer.from(await response.arrayBuffer());
      expect(response.headers.get('content-type')).toBe(file.contentType);
      expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([file.bytes, file.sha256]);
      const path = join(stage.recordingsFolder, file.id);
      writeFileSync(path, bytes);
      const { streams, format } = probe(path);
      expect(format.format_name).toContain('webm');
      expect(streams.map(({ codec_name }) => codec_name)).toEqual([file.contentType === 'audio/webm' ? 'opus' : 'vp8']);
      expect(Math.abs(Number(format.duration) * 1000 - file.durationMs)).toBeLessThan(100);
      if (file.width !== null) expect(streams[0]).toMatchObject({ width: file.width, height: file.height });
    }
  });

  test('has files that Chromium plays and seeks', async () => {
    // A page of another site.
    const { page, close } = await browsers.newParticipant();
    for (const file of recording.files) {
      const played = await playedIn(page, await recordings.linkOf(id, file));
      expect(Math.abs(played.seconds * 1000 - file.durationMs)).toBeLessThan(100);
      expect(played.at).toBeCloseTo(played.seconds, 1);
    }
    await close();
  });

  test('has links for one file, one time and one signature', async () => {
    const [file, other] = recording.files;
    const url = new URL(await recordings.linkOf(id, file));
    const ranged = await fetch(url, { headers: { range: 'bytes=0-3' } });
    expect([ranged.status, ranged.headers.get('content-range')]).toEqual([206, `bytes 0-3/${file.bytes}`]);
    expect(Buffer.from(await ranged.arrayBuffer()).toString('hex')).toBe('1a45dfa3');
    const spoiled = async (change: (changed: URL) => void) => {
      const changed = new URL(url);
      change(changed);
      return (await fetch(changed)).status;
    };
    expect(await spoiled((u) => (u.pathname = u.pathname.replace(file.id, other.id)))).toBe(404);
    expect(await spoiled((u) => u.searchParams.set('expires', String(Number(u.searchParams.get('expires')) + 1)))).toBe(
      404,
    );
    expect(await spoiled((u) => u.searchParams.set('signature', 'AAAA'))).toBe(404);
    expect(await spoiled((u) => u.searchParams.delete('signature'))).toBe(404);
    const { body } = await stage.call('POST', `/v1/recordings/${id}/files/${file.id}/url`, { expiresInSeconds: 1 });
    expect((await fetch(body.url)).status).toBe(200);
    await eventually(async () => (await fetch(body.url)).status === 404);
  });

  test('leaves none of the files that Janus wrote', async () => {
    await eventually(() => !existsSync(recordings.captured(roomId)));
    expect(existsSync(join(stage.recordingsFolder, 'captures', roomId))).toBe(false);
  });

  test('can be deleted with its files', async () => {
    const url = await recordings.linkOf(id, recording.files[0]);
    const { status } = await stage.call('DELETE', `/v1/recordings/${id}`);
    expect([202, 204]).toContain(status);
    await eventually(async () => (await fetch(url)).status === 404);
    expect((await stage.call('GET', `/v1/recordings/${id}`)).status).toBe(404);
    await eventually(() => !existsSync(join(stage.recordingsFolder, 'recordings', id)));
  });
});

describe('a recording of the sound of one participant', () => {
  test('stops at a request while the call continues, and Janus records nobody any more', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await mediaFlows([ada.page, bob.page]);
    const { participantId } = ada;
    const { id } = await recordings.record(roomId, { mode: 'tracks', audioOnly: true, participantId });
    await recordings.isRecorded(roomId, 4);
    const stopped = await stage.call('POST', `/v1/recordings/${id}/stop`);
    expect(stopped).toMatchObject({ status: 202, body: { status: 'processing' } });
    const { files, endedAt } = await recordings.finished(id);
    expect(files).toMatchObject([{ participantId: ada.participantId, source: 'microphone' }]);
    await mediaFlows([ada.page, bob.page]);
    await eventually(() => !existsSync(recordings.captured(roomId)));
    // A repeated request changes nothing.
    const again = await stage.call('POST', `/v1/recordings/${id}/stop`);
    expect(again).toMatchObject({ status: 202, body: { status: 'completed', endedAt } });
    await stage.call('DELETE', `/v1/rooms/${roomId}`);
  });
});
