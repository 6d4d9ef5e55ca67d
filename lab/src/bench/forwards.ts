/**
 * One room on three media servers against the same room on one. Needs iptables and root for the bytes between servers.
 * Environment: `BENCH_VIEWERS` (default 60), `BENCH_ROUNDS` (default 20), the timed joins on each server, and
 * `BENCH_ONLY=kill`, which only kills a server.
 */
import { execFileSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import wrtc from '@roamhq/wrtc';
import { PERMISSIONS } from '@callplane/core';
import { connect, type Call } from '@callplane/client-js';
import { WebSocket } from 'ws';
import { cpuMsOf, onStage } from '../fleet/stage.js';
import { percentile, printHead, printRow } from './figures.js';
import { openBench, type CallBench } from './signaling.js';

const VIEWERS = Number(process.env.BENCH_VIEWERS ?? 60);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 20);
const ONLY_KILL = process.env.BENCH_ONLY === 'kill';
const REGIONS = ['r1', 'r2', 'r3'];
/** Of the feeds that one Janus receives from another. */
const FORWARD_PORTS = { first: 29_000, last: 29_399 };
const PUBLISHERS = 2;
/** Pictures of noise, which no encoder makes smaller than its bitrate. */
const PICTURE = { width: 160, height: 120, everyMs: 200, bitsPerSecond: 200_000 };
const SETTLE_MS = 10_000;
const MEASURED_MS = 20_000;
/** Publishers are asked for at most one key frame a second. */
const KEY_FRAME_PAUSE_MS = 1_100;
const FRAME_WITHIN_MS = 30_000;

export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage, REGIONS.length, {
      MEDIA_NODES_PER_ROOM: String(REGIONS.length),
      MEDIA_FORWARD_PORTS: `${FORWARD_PORTS.first}-${FORWARD_PORTS.last}`,
    });
    for (const [at, region] of REGIONS.entries()) {
      const url = `ws://127.0.0.1:${bench.media.ports[at]}`;
      await stage.operator.rtc('media', 'register', `m${at + 1}`, url, '--region', region);
    }
    if (ONLY_KILL) {
      await lose(bench, await meet(bench, REGIONS));
      return;
    }
    printHead(
      `${PUBLISHERS} publishers, ${VIEWERS} viewers`,
      'cores of each Janus',
      'to other servers',
      'of one stream',
    );
    await measured(bench, 'on one server', ['r1']);
    const call = await measured(bench, 'over three', REGIONS);
    printHead('join to first picture', 'p50', 'p95');
    const own = await joins(bench, call.room, 'r1');
    const other = await joins(bench, call.room, 'r2');
    for (const [name, tookMs] of [["on the publishers' server", own] as const, ['on another', other] as const]) {
      printRow(name, `${percentile(tookMs, 0.5).toFixed(0)} ms`, `${percentile(tookMs, 0.95).toFixed(0)} ms`);
    }
    await lose(bench, call);
  });

interface Viewer {
  region: string;
  call: Call;
  /** Pictures of all its tracks. */
  pictures: number;
}

interface Meeting {
  room: string;
  viewers: Viewer[];
  end(): Promise<void>;
}

/** Fills a room, and prints what it costs. The meeting stays, if it is the last one. */
async function measured(bench: CallBench, name: string, regions: readonly string[]): Promise<Meeting> {
  const meeting = await meet(bench, regions);
  await delay(SETTLE_MS);
  const [first, last] = [FORWARD_PORTS.first, FORWARD_PORTS.last];
  const rule = ['INPUT', '-p', 'udp', '--dport', `${first}:${last}`];
  const usedMs = () => bench.media.januses.map(({ pid }) => cpuMsOf([{ pid: pid ?? 0 }]));
  execFileSync('iptables', ['-I', ...rule]);
  try {
    const [before, bytesBefore, beganMs] = [usedMs(), await bytesReceived(), performance.now()];
    await delay(MEASURED_MS);
    const seconds = (performance.now() - beganMs) / 1000;
    const cores = usedMs().map((ms, at) => ((ms - (before[at] ?? 0)) / 1000 / seconds).toFixed(3));
    const counted = execFileSync('iptables', ['-nvxL', 'INPUT'], { encoding: 'utf8' });
    const line = counted.split('\n').find((each) => each.includes(`dpts:${first}:${last}`)) ?? '';
    const between = Number(line.trim().split(/\s+/)[1]) / seconds;
    const stream = ((await bytesReceived()) - bytesBefore) / VIEWERS / PUBLISHERS / seconds;
    printRow(name, cores.join(', '), `${(between / 1000).toFixed(1)} kB/s`, `${(stream / 1000).toFixed(1)} kB/s`);
  } finally {
    execFileSync('iptables', ['-D', ...rule]);
  }
  if (regions.length < REGIONS.length) await meeting.end();
  return meeting;
}

const connections: RTCPeerConnection[] = [];
const platform = {
  WebSocket,
  RTCPeerConnection: function (configuration: RTCConfiguration) {
    const connection = new wrtc.RTCPeerConnection(configuration);
    connections.push(connection);
    return connection;
  },
} as any;

/** @param regions of the viewers. The publishers are in the first one. */
async function meet(bench: CallBench, regions: readonly string[]): Promise<Meeting> {
  connections.length = 0;
  const room = await bench.newRoom();
  const { source, stop } = film();
  const calls: Call[] = [];
  for (let n = 0; n < PUBLISHERS; n += 1) {
    const publisher = await connect({ url: bench.url, token: await tokenFor(bench, room, regions[0] ?? ''), platform });
    const encodings = [{ maxBitrate: PICTURE.bitsPerSecond }];
    await publisher.publish(source.createTrack(), { source: 'camera', encodings });
    calls.push(publisher);
  }
  const viewers: Viewer[] = [];
  for (let n = 0; n < VIEWERS; n += 1) viewers.push(await view(bench, room, regions[n % regions.length] ?? ''));
  await until(() => viewers.every(({ pictures }) => pictures > 0));
  const end = async () => {
    stop();
    await Promise.all([...calls, ...viewers.map(({ call }) => call)].map((call) => call.leave()));
  };
  return { room, viewers, end };
}

async function tokenFor({ client }: CallBench, room: string, region: string): Promise<string> {
  const body = { participantName: region, permissions: PERMISSIONS, region };
  return String((await client.call('POST', `/v1/rooms/${room}/tokens`, body))['token']);
}

async function view(bench: CallBench, room: string, region: string): Promise<Viewer> {
  const token = await tokenFor(bench, room, region);
  const call = await connect({ url: bench.url, token, platform, adaptive: false });
  const viewer = { region, call, pictures: 0 };
  call.on('trackSubscribed', ({ mediaStreamTrack }) => {
    if (mediaStreamTrack === undefined) return;
    const sink = new wrtc.nonstandard.RTCVideoSink(mediaStreamTrack);
    sink.onframe = () => (viewer.pictures += 1);
  });
  return viewer;
}

/** Times from the connection to the first picture of each publisher, one viewer after the other. */
async function joins(bench: CallBench, room: string, region: string): Promise<number[]> {
  const tookMs = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await delay(KEY_FRAME_PAUSE_MS);
    const beganMs = performance.now();
    const viewer = await view(bench, room, region);
    await until(() => viewer.pictures > 0, 1);
    tookMs.push(performance.now() - beganMs);
    await viewer.call.leave();
  }
  return tookMs;
}

/** Kills the last server: its viewers move to the others. */
async function lose({ media }: CallBench, { viewers }: Meeting): Promise<void> {
  const lost = viewers.filter(({ region }) => region === REGIONS.at(-1));
  const others = viewers.filter(({ region }) => region !== REGIONS.at(-1));
  const beganMs = performance.now();
  media.januses.at(-1)?.kill();
  const before = new Map(viewers.map((viewer) => [viewer, viewer.pictures]));
  const atMs = new Map<Viewer, number>();
  let stood = 0;
  await delay(KEY_FRAME_PAUSE_MS);
  for (const viewer of others) if (viewer.pictures === before.get(viewer)) stood += 1;
  // Pictures that were on their way have arrived by now.
  for (const viewer of lost) before.set(viewer, viewer.pictures);
  await until(() => {
    for (const viewer of lost) {
      if (viewer.pictures > (before.get(viewer) ?? 0) && !atMs.has(viewer))
        atMs.set(viewer, performance.now() - beganMs);
    }
    return atMs.size === lost.length;
  });
  printHead('a server is killed', 'value');
  const times = [...atMs.values()];
  const [p50, last] = [0.5, 1].map((share) => (percentile(times, share) / 1000).toFixed(1));
  printRow(`its ${lost.length} viewers have a picture again`, `median ${p50} s, last ${last} s`);
  printRow(`of ${others.length} others, without a picture for ${KEY_FRAME_PAUSE_MS} ms`, String(stood));
}

async function until(isReached: () => boolean, everyMs = 20): Promise<void> {
  const untilMs = performance.now() + FRAME_WITHIN_MS;
  while (!isReached()) {
    if (performance.now() > untilMs) throw new Error(`a viewer has no picture within ${FRAME_WITHIN_MS} ms`);
    await delay(everyMs);
  }
}

function film() {
  const source = new wrtc.nonstandard.RTCVideoSource();
  const { width, height, everyMs } = PICTURE;
  const data = new Uint8Array((width * height * 3) / 2);
  const timer = setInterval(() => source.onFrame({ width, height, data: randomFillSync(data) as any }), everyMs);
  return { source, stop: () => clearInterval(timer) };
}

/** Of all media that the viewers have received. */
async function bytesReceived(): Promise<number> {
  const reports = await Promise.all(connections.map((each) => each.getStats()));
  return reports
    .flatMap((report) => [...report.values()])
    .reduce((sum, { type, bytesReceived = 0 }) => sum + (type === 'inbound-rtp' ? bytesReceived : 0), 0);
}
