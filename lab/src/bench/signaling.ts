import { setTimeout as delay } from 'node:timers/promises';
import wrtc from '@roamhq/wrtc';
import { WebSocket } from 'ws';
import { connect } from '@callplane/client-js';
import { PERMISSIONS } from '@callplane/core';
import pLimit from 'p-limit';
import { MediaServers } from '../fleet/media-servers.js';
import { signalingUrlOf } from '../client.js';
import { onStage, type Stage } from '../fleet/stage.js';
import { joinedClient } from './signaling-client.js';
import { openPages, type Pages } from './media-quality-pages.js';
import { printHead, printRow, spread } from './figures.js';

const FIRST_FRAMES = 20;
const BROWSER_ROUNDS = 10;
/** Until the publishers' layers flow. */
const SETTLED_MS = 3_000;
const PUBLISHED = { audio: true, video: { width: 640, height: 360, frameRate: 25 }, simulcast: true };
const PICTURE_EVERY_MS = 40;
const [WIDTH, HEIGHT] = [320, 240];
const ROOM_SIZES = [10, 100, 1_000];
/**
 * The way to the first picture, and the end of rooms. The benchmark `rooms` measures joins, memory and messages.
 */
export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    printHead('what', 'value');
    await firstFrames(bench);
    const pages = await openPages();
    stage.onClose(() => pages.close());
    const inBrowsers = async (what: string, people: number, joinsMs: number[]) =>
      printRow(`token to first frame (Chromium, ${what})`, await browserFirstFrames(bench, pages, people, joinsMs));
    await inBrowsers('2 people', 2, [0]);
    await inBrowsers('4 people, all frames', 4, [0]);
    await inBrowsers('300 ms after somebody else has joined', 3, [0, 300]);
    for (const count of ROOM_SIZES) await roomEnd(bench, count);
  });

export type CallBench = Awaited<ReturnType<typeof openBench>>;

/** A Janus, coturn, and one of each app for calls. */
export async function openBench(stage: Stage) {
  const media = new MediaServers(stage.processes, 1);
  await media.start();
  stage.onClose(() => media.stop());
  const settings = media.settingsFor();
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

async function firstFrames({ newRoom, token, url }: CallBench) {
  const room = await newRoom();
  const platform = { WebSocket, RTCPeerConnection: wrtc.RTCPeerConnection } as any;
  const { RTCVideoSink, RTCVideoSource } = wrtc.nonstandard;
  const source = new RTCVideoSource();
  const data = new Uint8Array((WIDTH * HEIGHT * 3) / 2);
  let shade = 0;
  const film = () => source.onFrame({ width: WIDTH, height: HEIGHT, data: data.fill((shade = (shade + 16) % 256)) });
  const filming = setInterval(film, PICTURE_EVERY_MS);
  const publisher = await connect({ url, token: await token(room, 'publisher'), platform });
  const track = source.createTrack();
  await publisher.publish(track, { source: 'camera' });
  const took = [];
  for (let index = 0; index < FIRST_FRAMES; index++) {
    const ticket = await token(room, `viewer ${index}`);
    const began = performance.now();
    const viewer = await connect({ url, token: ticket, platform });
    await new Promise((resolve) => {
      const watch = ({ mediaStreamTrack }: any) => {
        const sink = new RTCVideoSink(mediaStreamTrack);
        sink.onframe = () => {
          sink.stop();
          resolve(undefined);
        };
      };
      viewer.on('trackSubscribed', watch);
    });
    took.push(performance.now() - began);
    await viewer.leave();
  }
  clearInterval(filming);
  track.stop();
  await publisher.leave();
  printRow('token to first frame (Node, 320×240)', spread(took));
}

/** All people publish but the last ones, who join `joinsMs` after one another. */
async function browserFirstFrames({ newRoom, token, url }: CallBench, pages: Pages, people: number, joinsMs: number[]) {
  const took: number[] = [];
  const publishers = people - joinsMs.length;
  for (let round = 0; round < BROWSER_ROUNDS; round++) {
    const room = await newRoom();
    const enter = async (name: string, options: object) => {
      const [page, ticket] = [await pages.open(), await token(room, name)];
      return { page, join: () => page.join({ url, token: ticket, ...options }) };
    };
    for (let index = 0; index < publishers; index++) {
      await (await enter(`publisher ${index}`, { publish: PUBLISHED })).join();
    }
    const joining = [];
    for (const ms of joinsMs) joining.push({ ms, ...(await enter(`joins after ${ms} ms`, { firstPictures: true })) });
    await delay(SETTLED_MS);
    for (const { ms, join } of joining) {
      await delay(ms);
      void join();
    }
    let pictures: number[] = [];
    while (pictures.length < publishers) {
      await delay(10);
      pictures = (await joining.at(-1)?.page.ask<number[]>('firstPictures')) ?? [];
    }
    took.push(Math.max(...pictures));
    await pages.closeAll();
  }
  return spread(took);
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
