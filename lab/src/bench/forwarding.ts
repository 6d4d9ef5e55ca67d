import { randomFillSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import wrtc from '@roamhq/wrtc';
import { WebSocket } from 'ws';
import { connect, type TrackOptions } from '@callplane/client-js';
import { cpuMs, onStage, treeOf } from '../fleet/stage.js';
import { printHead, printRow } from './figures.js';
import { openBench, type CallBench } from './signaling.js';

const RECEIVERS = 50;
const FRAME_EVERY_MS = 50;
const [WIDTH, HEIGHT] = [320, 240];
const SETTLE_MS = 10_000;
const MEASURED_MS = 20_000;
const BITRATE = 1_000_000;

type Encodings = NonNullable<TrackOptions['encodings']>;
const VARIANTS: [name: string, encodings: Encodings, goal: string][] = [
  ['one layer', [{ maxBitrate: BITRATE }], '28 µs'],
  [
    'three layers',
    [
      { rid: 'h', maxBitrate: BITRATE },
      { rid: 'm', maxBitrate: BITRATE / 3, scaleResolutionDownBy: 2 },
      { rid: 'l', maxBitrate: BITRATE / 8, scaleResolutionDownBy: 4 },
    ],
    '33 µs',
  ],
];

/** The processor time of Janus for each RTP packet that it forwards, with one publisher of noise. */
export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    printHead(`one publisher, ${RECEIVERS} receivers`, 'packets/s', 'CPU of Janus a packet', 'goal');
    for (const [name, encodings, goal] of VARIANTS) await measure(bench, name, encodings, goal);
  });

async function measure({ media, newRoom, token, url }: CallBench, name: string, encodings: Encodings, goal: string) {
  const connections: RTCPeerConnection[] = [];
  const RTCPeerConnection = function (configuration: RTCConfiguration) {
    const connection = new wrtc.RTCPeerConnection(configuration);
    connections.push(connection);
    return connection;
  };
  const platform = { WebSocket, RTCPeerConnection } as any;
  const room = await newRoom();
  const { source, stop } = film();
  const publisher = await connect({ url, token: await token(room, 'publisher'), platform });
  const track = source.createTrack();
  await publisher.publish(track, { source: 'camera', encodings });
  const viewers = [];
  for (let index = 0; index < RECEIVERS; index++) {
    viewers.push(await connect({ url, token: await token(room, `viewer ${index}`), platform, adaptive: false }));
  }
  await delay(SETTLE_MS);
  const usedMs = () => treeOf(media.januses[0]!.pid!).reduce((sum, pid) => sum + cpuMs(pid), 0);
  const began = { packets: await packetsOf(connections), usedMs: usedMs(), atMs: performance.now() };
  await delay(MEASURED_MS);
  const packets = (await packetsOf(connections)) - began.packets;
  const usedUs = (usedMs() - began.usedMs) * 1000;
  const seconds = (performance.now() - began.atMs) / 1000;
  printRow(name, (packets / seconds).toFixed(0), `${(usedUs / packets).toFixed(1)} µs`, goal);
  stop();
  track.stop();
  await Promise.all([publisher, ...viewers].map((each) => each.leave()));
}

/** Pictures of noise, which no encoder makes smaller than its bitrate. */
function film() {
  const source = new wrtc.nonstandard.RTCVideoSource();
  const data = new Uint8Array((WIDTH * HEIGHT * 3) / 2);
  const timer = setInterval(
    () => source.onFrame({ width: WIDTH, height: HEIGHT, data: randomFillSync(data) as any }),
    FRAME_EVERY_MS,
  );
  return { source, stop: () => clearInterval(timer) };
}

async function packetsOf(connections: readonly RTCPeerConnection[]): Promise<number> {
  const reports = await Promise.all(connections.map((each) => each.getStats()));
  return reports
    .flatMap((report) => [...report.values()])
    .reduce((sum, { type, packetsReceived = 0 }) => sum + (type === 'inbound-rtp' ? packetsReceived : 0), 0);
}
