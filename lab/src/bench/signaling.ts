import { setTimeout as delay } from 'node:timers/promises';
import { PERMISSIONS } from '@callplane/core';
import pLimit from 'p-limit';
import { MediaServers } from '../fleet/media-servers.js';
import { signalingUrlOf } from '../client.js';
import { onStage, type Stage } from '../fleet/stage.js';
import { joinedClient } from './signaling-client.js';
import { printHead, printRow } from './figures.js';

const ROOM_SIZES = [10, 100, 1_000];
/** The end of rooms. The benchmarks `first-frames` and `rooms` measure joins. */
export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    printHead('what', 'value');
    for (const count of ROOM_SIZES) await roomEnd(bench, count);
  });

export type CallBench = Awaited<ReturnType<typeof openBench>>;

/**
 * Janus, coturn, and one of each app for calls.
 * @param more settings of the apps
 */
export async function openBench(stage: Stage, januses = 1, more: Record<string, string> = {}) {
  const media = new MediaServers(stage.processes, januses);
  await media.start();
  stage.onClose(() => media.stop());
  const settings = { ...media.settingsFor(), ...more };
  const client = stage.clientOf(await stage.start('api', settings));
  await stage.start('cleanup-worker', settings);
  return {
    client,
    media,
    url: signalingUrlOf((await stage.start('signaling', settings)).origin),
    newRoom: () => client.newRoom({ maxParticipants: 1_000 }),
    token: (room: string, name: string) => client.newToken(room, name, PERMISSIONS),
  };
}

async function roomEnd({ client, newRoom, token, url }: CallBench, count: number) {
  const room = await newRoom();
  const clients = await pLimit(20).map(Array.from({ length: count }), async (_, index) =>
    joinedClient(url, await token(room, `client ${index}`)),
  );
  const began = performance.now();
  const everybodyOut = Promise.all(clients.map(({ closed }) => closed)).then(() => performance.now() - began);
  await client.call('DELETE', `/v1/rooms/${room}`);
  while ((await client.call('GET', `/v1/rooms/${room}/runtime-operation`))['status'] !== 'completed') await delay(10);
  const completed = performance.now() - began;
  printRow(
    `\`room.end\` with ${count} participants`,
    `completed after ${completed.toFixed(0)} ms, everybody disconnected after ${(await everybodyOut).toFixed(0)} ms`,
  );
}
