import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { setNodeDraining, startRecording } from '@callplane/db';
import {
  createTestDatabase,
  eventually,
  spawnApp,
  startMediaAgent,
  startTestJanus,
  temporaryDirectory,
  workerServers,
  type TestJanus,
} from '@callplane/testing';
import { CAM, flows, MIC, startCall } from './call.testkit.js';
import { startTestSignaling } from './signaling.testkit.js';

/** As in places.ts: for this time a gateway uses the loads of media servers that it has read. */
const LOADS_FRESH_MS = 1000;
/** Janus keeps the last 4 KiB of a file in memory. */
const RECORDED_BYTES = 8000;

/** Whether each file of the room on a media server is of a feed from another one, if it has some seconds of media. */
function recordedAt(janus: TestJanus, roomId: string): boolean[] {
  const folder = join(janus.captureFolder, roomId);
  const files = existsSync(folder) ? readdirSync(folder) : [];
  const sizes = files.map((file) => ({ file, size: statSync(join(folder, file)).size }));
  return sizes.filter(({ size }) => size > RECORDED_BYTES).map(({ file }) => /\+[0-9a-f]{8}-/.test(file));
}

test("a track is recorded once, on its publisher's server, although viewers receive it on another one", async () => {
  const { url: databaseUrl } = await createTestDatabase();
  const { redis } = await workerServers();
  const [a, b] = await Promise.all([startTestJanus(), startTestJanus()]);
  const januses: Record<string, TestJanus> = { a, b };
  const kit = await startTestSignaling({ databaseUrl });
  const { prisma } = kit.database;
  const recordingsFolder = temporaryDirectory('recordings');
  for (const [id, janus] of Object.entries(januses)) startMediaAgent(janus, id, { databaseUrl, recordingsFolder });
  const [gateway] = await Promise.all([
    kit.start({
      MEDIA_API_SECRET: a.apiSecret,
      MEDIA_ADMIN_KEY: a.adminKey,
      MEDIA_NODES_PER_ROOM: '2',
      MEDIA_FORWARD_PORTS: '32400-32499',
    }),
    spawnApp({
      name: 'recorder',
      env: {
        ...{ DATABASE_URL: databaseUrl, REDIS_URL: redis.url, RECORDINGS_FOLDER: recordingsFolder },
        ...{ RECORDER_SCRATCH_FOLDER: join(recordingsFolder, 'scratch'), RECORDER_SWEEP_INTERVAL_MS: '1000' },
      },
    }),
  ]);
  for (const id of Object.keys(januses)) {
    await eventually(async () => (await gateway.valueOf(`callplane_media_node_up{node="${id}"`)) === 1);
  }

  const roomId = await kit.newRoom();
  const ada = startCall(kit, await kit.enter(gateway.url, roomId));
  await ada.publishAnew([MIC, CAM]);
  const { mediaNodeId: home } = await prisma.room.findUniqueOrThrow({ where: { id: roomId } });
  await setNodeDraining(prisma, home!, true);
  await new Promise((resolve) => setTimeout(resolve, LOADS_FRESH_MS));
  const bob = startCall(kit, await kit.enter(gateway.url, roomId));
  await flows(bob.subscriber, 'video');
  const further = home === 'a' ? 'b' : 'a';
  expect(await prisma.mediaForward.findMany({ where: { roomId } })).toMatchObject([
    { fromNodeId: home, toNodeId: further, state: 'up' },
  ]);

  const id = newId('recording');
  const options = { mode: 'tracks', audioOnly: false, layout: null, maxDurationSeconds: 3600 } as const;
  const recording = { id, participantId: null, metadata: {}, ...options };
  // The agents and the recorder may have just started.
  await eventually(async () => {
    const started = await kit.database.transaction((tx) => startRecording(tx, kit.tenant, roomId, recording));
    return typeof started !== 'string';
  });
  // Janus itself also records what it receives from the other one.
  await eventually(() => String(recordedAt(januses[home!]!, roomId)) === 'false,false');
  await eventually(() => String(recordedAt(januses[further]!, roomId)) === 'true,true');
  const captures = () => prisma.recordingCapture.findMany({ where: { roomId } });
  await eventually(async () => (await captures()).length > 1);
  expect((await captures()).map(({ nodeId, kind }) => `${nodeId} ${kind}`).sort()).toEqual([
    `${home} audio`,
    `${home} video`,
  ]);

  await kit.stopRecordings(roomId);
  const row = () => prisma.recording.findUniqueOrThrow({ where: { id } });
  await eventually(async () => ['completed', 'failed'].includes((await row()).status));
  const { status, gaps, files } = await row();
  expect([status, gaps]).toEqual(['completed', []]);
  const tracks = (files as { participantId: string; source: string }[]).map((file) => [
    file.participantId,
    file.source,
  ]);
  expect(tracks.sort()).toEqual([
    [ada.participantId, 'camera'],
    [ada.participantId, 'microphone'],
  ]);
  // No file stays behind on either server.
  await eventually(() => Object.values(januses).every((janus) => !existsSync(join(janus.captureFolder, roomId))));
  await Promise.all([ada.end(), bob.end()]);
});
