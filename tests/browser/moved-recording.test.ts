import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { eventually, startMediaAgent, startTcpProxy, startTestJanus, type TestJanus } from '@callplane/testing';
import { recordingsOf } from './recordings.testkit.js';
import { openCall } from './call.testkit.js';
import { mediaFlows, type ParticipantPage } from './pages.testkit.js';
import { signalingUrl } from './stage.testkit.js';

/** Sizes of the files of a room on a media server. A file that is closed has another name. */
function sizesOf(janus: TestJanus, roomId: string): Map<string, number> {
  const folder = join(janus.captureFolder, roomId);
  const files = existsSync(folder) ? readdirSync(folder) : [];
  return new Map(files.map((file) => [file.replace(/\.part$/, ''), statSync(join(folder, file)).size]));
}

/** Waits for some seconds of media in four files. Janus keeps the last 4 KiB of each in memory. */
async function fourGrow(janus: TestJanus, roomId: string): Promise<void> {
  const before = sizesOf(janus, roomId);
  await eventually(() => {
    const grown = [...sizesOf(janus, roomId)].filter(([file, size]) => size > (before.get(file) ?? 0) + 10_000);
    return grown.length >= 4;
  });
}

test('a recording continues over another gateway, in a room made again, and on another media server', async () => {
  const [{ stage, enter, handedOver }, other] = await Promise.all([openCall({ recordings: true }), startTestJanus()]);
  // The room begins on the first media server, and moves to this one.
  other.kill('SIGKILL');
  startMediaAgent(other, 'two', { databaseUrl: stage.databaseUrl, recordingsFolder: stage.recordingsFolder });
  const MEDIA_NODES = `one=${stage.janus.url},two=${other.url}`;
  const gateways = await Promise.all([1, 2].map(() => stage.spawnSignaling({ MEDIA_NODES })));
  const targets = gateways.map(({ url }) => ({ host: '127.0.0.1', port: Number(new URL(url).port) }));
  const url = signalingUrl((await startTcpProxy(targets)).port);
  const roomId = await stage.newRoom();
  const pages: ParticipantPage[] = [];
  // One after the other, so that they are on different gateways.
  for (const name of ['Ada', 'Bob']) pages.push(await enter(roomId, name, { url }));
  await mediaFlows(pages);
  const recordings = recordingsOf(stage);
  const { id, startedAt } = await recordings.record(roomId, { mode: 'tracks' });
  const times: number[] = [];
  const continues = async (janus: TestJanus): Promise<void> => {
    await mediaFlows(pages);
    await fourGrow(janus, roomId);
    times.push(Date.now() - new Date(startedAt).getTime());
    await fourGrow(janus, roomId);
  };
  await continues(stage.janus);
  await Promise.all(pages.map(handedOver));
  await gateways[0]!.stop();
  await continues(stage.janus);

  stage.janus.kill('SIGKILL');
  await eventually(async () => (await pages[0]!.ask('mediaState')) === 'down');
  await stage.janus.start();
  await continues(stage.janus);

  await other.start();
  stage.janus.kill('SIGKILL');
  await continues(other);
  // Its agent ships the rest once it answers again.
  await stage.janus.start();

  await stage.call('DELETE', `/v1/rooms/${roomId}`);
  const recording = await recordings.finished(id);
  expect(recording).toMatchObject({ status: 'completed', gaps: [] });
  const files = recording.files.map(({ participantId, source, startMs, durationMs }: any) => {
    return { track: `${participantId} ${source}`, startMs, endMs: startMs + durationMs };
  });
  for (const at of times) {
    const running = files.filter(({ startMs, endMs }: any) => startMs < at && at < endMs);
    const tracks = new Set(running.map(({ track }: any) => track));
    // With all files, so that a failure shows their times.
    expect({ at, tracks: tracks.size, files }).toEqual({ at, tracks: 4, files });
  }
});
