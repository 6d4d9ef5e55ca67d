import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { eventually, startMediaAgent, startTcpProxy, startTestJanus, type TestJanus } from '@callplane/testing';
import { recordingsOf } from '../ends/recordings.testkit.js';
import { openCall } from './call.testkit.js';
import { mediaFlows, type ParticipantPage } from './pages.testkit.js';
import { signalingUrl } from './stage.testkit.js';

/** Files of a room on a media server that have some seconds of media. */
function filledOf(janus: TestJanus, roomId: string): string[] {
  const folder = join(janus.captureFolder, roomId);
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((file) => statSync(join(folder, file)).size > 20_000);
}

test('a recording goes on over another gateway, in a room made again, and on another media server', async () => {
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
  await recordings.isRecorded(roomId, 4);
  const times: number[] = [];
  const isNow = () => times.push(Date.now() - new Date(startedAt).getTime());

  await Promise.all(pages.map(handedOver));
  await gateways[0]!.stop();
  isNow();
  await mediaFlows(pages);

  const earlier = filledOf(stage.janus, roomId);
  stage.janus.kill('SIGKILL');
  await eventually(async () => (await pages[0]!.ask('mediaState')) === 'down');
  await stage.janus.start();
  await mediaFlows(pages);
  await eventually(() => filledOf(stage.janus, roomId).filter((file) => !earlier.includes(file)).length >= 4);
  isNow();

  await other.start();
  stage.janus.kill('SIGKILL');
  await eventually(() => filledOf(other, roomId).length >= 4);
  await mediaFlows(pages);
  isNow();

  await stage.call('DELETE', `/v1/rooms/${roomId}`);
  const recording = await recordings.finished(id);
  expect(recording).toMatchObject({ status: 'completed', gaps: [] });
  for (const at of times) {
    const running = recording.files.filter((file: any) => file.startMs < at && at < file.startMs + file.durationMs);
    expect([at, new Set(running.map((file: any) => `${file.participantId} ${file.source}`)).size]).toEqual([at, 4]);
  }
});
