import wrtc from '@roamhq/wrtc';
import { WebSocket } from 'ws';
import { connect, type Call } from '@callplane/client-js';
import { cpuMs } from './rooms-fleet.js';
import { percentile } from './signaling-client.js';
import { openBench } from './signaling.js';
import { openStage } from './stage.js';

const PUBLISHERS = Number(process.env.BENCH_PUBLISHERS ?? 100);
const VIEWERS = 3;
const PAGE = 25;
const TURNS = 12;
const SPEECHES = 20;
const [WIDTH, HEIGHT] = [32, 32];
/** Two pictures a second from each camera and screen: a page needs a key frame of each. */
const PICTURE_EVERY_MS = 500;
const AUDIO_EVERY_MS = 10;
const WITHIN_MS = 20_000;

type Bench = Awaited<ReturnType<typeof openBench>>;
interface Publisher {
  call: Call;
  shade: number;
  speak(isSpeaking: boolean): void;
}

const { RTCAudioSource, RTCVideoSink, RTCVideoSource } = wrtc.nonstandard;
const platform = { WebSocket, RTCPeerConnection: wrtc.RTCPeerConnection } as any;
const timers: NodeJS.Timeout[] = [];

/** A room of publishers with camera, microphone and screen: turning pages, and who is heard. */
export async function run() {
  const stage = await openStage();
  try {
    const bench = await openBench(stage);
    const room = await bench.newRoom();
    const publishers: Publisher[] = [];
    for (let at = 0; at < PUBLISHERS; at += 1) publishers.push(await startPublisher(bench, room, at));
    console.log('| what | value |\n| --- | --- |');
    const viewers = [];
    for (let at = 0; at < VIEWERS; at += 1) {
      viewers.push(await connect({ url: bench.url, token: await bench.token(room, `viewer ${at}`), platform }));
    }
    await turnPages(bench, publishers, viewers);
    await speak(bench, publishers, viewers);
    for (const { call } of publishers) await call.leave();
  } finally {
    for (const timer of timers) clearInterval(timer);
    await stage.close();
  }
}

async function startPublisher(bench: Bench, room: string, at: number): Promise<Publisher> {
  const call = await connect({
    url: bench.url,
    token: await bench.token(room, `publisher ${at}`),
    autoSubscribe: false,
    platform,
  });
  const shade = 32 + ((2 * at) % 200);
  const picture = (brightness: number) => {
    const source = new RTCVideoSource();
    const data = new Uint8Array((WIDTH * HEIGHT * 3) / 2).fill(brightness);
    timers.push(setInterval(() => source.onFrame({ width: WIDTH, height: HEIGHT, data }), PICTURE_EVERY_MS));
    return source.createTrack();
  };
  const audio = new RTCAudioSource();
  let tone: NodeJS.Timeout | undefined;
  let amplitude = 0;
  const blockOf = (peak: number) =>
    Int16Array.from({ length: 480 }, (_, n) => peak * 32_767 * Math.sin((n * 2 * Math.PI) / 109));
  const send = () =>
    audio.onData({
      samples: blockOf(amplitude),
      sampleRate: 48_000,
      bitsPerSample: 16,
      channelCount: 1,
      numberOfFrames: 480,
    });
  await call.publish(picture(shade), { source: 'camera' });
  await call.publish(picture(255), { source: 'screen' });
  await call.publish(audio.createTrack(), { source: 'microphone' });
  return {
    call,
    shade,
    speak: (isSpeaking) => {
      amplitude = isSpeaking ? 0.25 : 0;
      if (tone !== undefined) return;
      tone = setInterval(send, AUDIO_EVERY_MS);
      timers.push(tone);
    },
  };
}

/** How long until each camera of a page shows its own picture to a viewer. */
async function turnPages({ pid }: Bench, publishers: Publisher[], viewers: Call[]) {
  const took: number[] = [];
  const cpuBefore = cpuMs(pid);
  const pages = Math.floor(PUBLISHERS / PAGE);
  for (let turn = 0; turn < TURNS; turn += 1) {
    const page = publishers.slice((turn % pages) * PAGE, ((turn % pages) + 1) * PAGE);
    const before = publishers.filter((one) => !page.includes(one)).map(cameraOf);
    await Promise.all(
      viewers.map(async (viewer) => {
        const began = performance.now();
        await viewer.unsubscribe(...before);
        await viewer.subscribe(...page.map(cameraOf));
        await Promise.all(page.map((one) => untilShown(viewer, one)));
        took.push(performance.now() - began);
      }),
    );
  }
  row(`page of ${PAGE} shown, ${PUBLISHERS} publishers`, spread(took));
  row('gateway CPU for each page and viewer', `${((cpuMs(pid) - cpuBefore) / took.length).toFixed(1)} ms`);
}

function cameraOf({ call }: Publisher) {
  return { participantId: call.participant.participantId, trackId: 'camera' };
}

async function untilShown(viewer: Call, { call, shade }: Publisher): Promise<void> {
  const deadline = performance.now() + WITHIN_MS;
  while (performance.now() < deadline) {
    const track = viewer.participants.get(call.participant.participantId)?.tracks.get('camera')?.mediaStreamTrack;
    if (track !== undefined) {
      const seen = await new Promise<number>((resolve) => {
        const sink = new RTCVideoSink(track);
        const timer = setTimeout(() => end(-1), 2 * PICTURE_EVERY_MS);
        const end = (brightness: number) => {
          clearTimeout(timer);
          sink.stop();
          resolve(brightness);
        };
        sink.onframe = ({ frame }: any) => end(frame.data[(frame.width * (frame.height + 1)) >> 1] ?? -1);
      });
      if (Math.abs(seen - shade) <= 1) return;
    } else await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('a camera of the page is not shown');
}

/** How long until a participant who begins to talk is heard, and the CPU that the changes cost. */
async function speak({ pid, janusPid }: Bench, publishers: Publisher[], viewers: Call[]) {
  const heard: number[] = [];
  const [gatewayBefore, janusBefore] = [cpuMs(pid), cpuMs(janusPid)];
  const began = performance.now();
  for (let turn = 0; turn < SPEECHES; turn += 1) {
    const speaker = publishers[(turn * 7) % publishers.length]!;
    const from = performance.now();
    speaker.speak(true);
    const { participantId } = speaker.call.participant;
    await Promise.all(
      viewers.map(async (viewer) => {
        while (viewer.participants.get(participantId)?.tracks.get('microphone')?.mediaStreamTrack === undefined) {
          if (performance.now() - from > WITHIN_MS) throw new Error('a speaker is not heard');
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        heard.push(performance.now() - from);
      }),
    );
    speaker.speak(false);
  }
  row('speaker heard', spread(heard));
  const share = (cpu: number) => `${((100 * cpu) / (performance.now() - began)).toFixed(1)} % of a core`;
  row('CPU meanwhile: gateway, Janus', `${share(cpuMs(pid) - gatewayBefore)}, ${share(cpuMs(janusPid) - janusBefore)}`);
}

function spread(values: number[]) {
  return `median ${percentile(values, 0.5).toFixed(0)} ms, p95 ${percentile(values, 0.95).toFixed(0)} ms`;
}

function row(what: string, value: string) {
  console.log(`| ${what} | ${value} |`);
}
