/**
 * The way to the first picture, in Node and in Chromium. Environment: `BENCH_ROUNDS` (default 10), the joins of each row
 * in Chromium, and `BENCH_CASE` (default all), the only row, or `Node`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import wrtc from '@roamhq/wrtc';
import { connect } from '@callplane/client-js';
import { WebSocket } from 'ws';
import { onStage } from '../fleet/stage.js';
import { openBench, type CallBench } from './signaling.js';
import { openPages, sentOf, type BenchPage, type Pages } from './media-quality-pages.js';
import { median, percentile, printHead, printRow, spread } from './figures.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 10);
const CASE = process.env.BENCH_CASE;
const NODE_ROUNDS = 20;
/** Until the publishers' layers flow. */
const SETTLED_MS = 3_000;
/** Publishers are asked for at most one key frame a second by Janus itself. */
const KEY_FRAME_PAUSE_MS = 1_100;
/** Key frames that are asked for late count as well. */
const KEY_FRAMES_UNTIL_MS = 2_000;
const PUBLISHED = { audio: true, video: { width: 640, height: 360, frameRate: 25 }, simulcast: true };
const PICTURE_EVERY_MS = 40;
const [WIDTH, HEIGHT] = [320, 240];

interface Case {
  /** Publishers and joining participants together. */
  people: number;
  /** The time between each join and the previous one; the last join is measured. */
  joinsMs: number[];
  options?: object;
}

const TILED = { isTiled: true };
const CASES: Record<string, Case> = {
  '2 people': { people: 2, joinsMs: [0], options: TILED },
  '4 people': { people: 4, joinsMs: [0], options: TILED },
  '4 people, who joins publishes': { people: 4, joinsMs: [0], options: { ...TILED, publish: PUBLISHED } },
  '2 people, no size known': { people: 2, joinsMs: [0] },
  '4 people, no size known': { people: 4, joinsMs: [0] },
  '300 ms after somebody else': { people: 3, joinsMs: [0, 300], options: TILED },
};

export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    if ((CASE ?? 'Node') === 'Node') {
      printHead('a Node client, 320×240', 'value');
      printRow('token to first frame', await inNode(bench, 0));
      printRow(`the same, ${KEY_FRAME_PAUSE_MS} ms later`, await inNode(bench, KEY_FRAME_PAUSE_MS));
      console.log('');
    }
    const pages = await openPages();
    stage.onClose(() => pages.close());
    const steps = ['welcome', 'offer', 'answer', 'candidate', 'ICE', 'DTLS', 'last first picture', 'p95'];
    printHead('Chromium, 640×360, ms after the join', ...steps, 'ICE after the answer', 'key frames asked for, made');
    for (const [name, one] of Object.entries(CASES)) {
      if ((CASE ?? name) === name) await inChromium(name, one, bench, pages);
    }
  });

async function inNode({ newRoom, token, url }: CallBench, pauseMs: number) {
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
  for (let index = 0; index < NODE_ROUNDS; index++) {
    await delay(pauseMs);
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
  return spread(took);
}

/** `joinParts` of page.mjs. */
interface Parts {
  welcome: number;
  offer: number;
  answer: number;
  candidate: number;
  ice: number;
  dtls: number;
  pictures: number[];
}

async function inChromium(name: string, { people, joinsMs, options }: Case, bench: CallBench, pages: Pages) {
  const joins: Parts[] = [];
  const [asked, made]: [number[], number[]] = [[], []];
  const publishers = people - joinsMs.length;
  for (let round = 0; round < ROUNDS; round++) {
    const room = await bench.newRoom();
    const enter = async (participant: string, more: object) => {
      const [page, token] = [await pages.open(), await bench.token(room, participant)];
      return { page, join: () => page.join({ url: bench.url, token, ...more }) };
    };
    const sending: BenchPage[] = [];
    for (let index = 0; index < publishers; index++) {
      const { page, join } = await enter(`publisher ${index}`, { publish: PUBLISHED });
      await join();
      sending.push(page);
    }
    const joining = [];
    for (const ms of joinsMs)
      joining.push({ ms, ...(await enter(`joins after ${ms} ms`, { ...options, isTimed: true })) });
    await delay(SETTLED_MS);
    const before = await keyFramesOf(sending);
    for (const { ms, join } of joining) {
      await delay(ms);
      void join();
    }
    let parts: Parts | undefined;
    while (parts === undefined || parts.pictures.length < publishers) {
      await delay(10);
      parts = await joining.at(-1)?.page.ask<Parts>('joinParts');
    }
    joins.push(parts);
    await delay(KEY_FRAMES_UNTIL_MS);
    const after = await keyFramesOf(sending);
    asked.push((after.asked - before.asked) / publishers);
    made.push((after.made - before.made) / publishers);
    await pages.closeAll();
  }
  const middle = (of: (parts: Parts) => number) => median(joins.map(of)).toFixed(0);
  const last = joins.map(({ pictures }) => Math.max(...pictures));
  printRow(
    name,
    middle(({ welcome }) => welcome),
    middle(({ offer }) => offer),
    middle(({ answer }) => answer),
    middle(({ candidate }) => candidate),
    middle(({ ice }) => ice),
    middle(({ dtls }) => dtls),
    median(last).toFixed(0),
    percentile(last, 0.95).toFixed(0),
    middle(({ ice, answer }) => ice - answer),
    `${median(asked).toFixed(1)}, ${median(made).toFixed(1)}`,
  );
}

/** How often the pages were asked for a key frame of their video, and how many they have made. */
async function keyFramesOf(pages: BenchPage[]) {
  const sent = (await Promise.all(pages.map(sentOf))).flat();
  const sum = (of: (one: (typeof sent)[number]) => number | undefined) =>
    sent.reduce((total, one) => total + (of(one) ?? 0), 0);
  return { asked: sum(({ pliCount }) => pliCount), made: sum(({ keyFramesEncoded }) => keyFramesEncoded) };
}
