import { availableParallelism } from 'node:os';
import type { Call } from '@callplane/client-js';
import { pause } from '@callplane/runtime';
import type { Callplane } from '@callplane/server';
import { nodePlatform } from '../node-platform.js';
import { NOTHING, processorSeconds, ratesBetween, spreadOf, type Received, type Spread } from './figures.js';
import { startNoise, startTone, type Source } from './sources.js';
import { Viewer, type Ticket } from './viewer.js';

/** The room ends by itself this long after the command was killed. */
const ROOM_EMPTY_TIMEOUT_SECONDS = 60;
const METRICS_WITHIN_MS = 5000;
const METRICS_BYTES_MAX = 4 * 1024 * 1024;
/** Pictures that are under way when the last viewer has joined. */
const SETTLE_MS = 3000;

export interface LoadSettings {
  publishers: number;
  viewers: number;
  /** After the last join. */
  seconds: number;
  joinsPerSecond: number;
  /** Bit rate of each picture. */
  kbps: number;
  /** A room with publishers of its own; null: a new one. */
  roomId: string | null;
  /** Pages of Prometheus. */
  metricsUrls: readonly string[];
}

export interface LoadReport {
  roomId: string;
  publishers: number;
  viewers: number;
  seconds: number;
  joinedMs: Spread;
  firstPictureMs: Spread;
  allPicturesMs: Spread;
  kbps: Spread;
  framesPerSecond: Spread;
  lossPercent: Spread;
  /** Calls that had to connect again, and did. */
  reconnections: number;
  failures: string[];
  /** In percent of a core; null: not seen. */
  processors: { source: string; app: string | null; percent: number | null }[];
  here: { percent: number; cores: number };
}

interface Service {
  api: Callplane;
  signalingUrl: string;
}

/** Runs a call with publishers and viewers against a service, and measures what the viewers receive. */
export async function runLoad(
  { api, signalingUrl }: Service,
  settings: LoadSettings,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<LoadReport> {
  const node = await nodePlatform();
  const { publishers, viewers: count, joinsPerSecond } = settings;
  const roomId = settings.roomId ?? (await newRoom(api, publishers + count));
  const ticket = async (participantName: string, permissions: Permissions): Promise<Ticket> => {
    const { token } = await api.issueToken({ roomId, participantName, permissions });
    return { url: signalingUrl, token };
  };
  const sources: Source[] = [];
  const calls: Call[] = [];
  const viewers: Viewer[] = [];
  try {
    for (let n = 1; n <= publishers && !signal.aborted; n++) {
      const [noise, tone] = [startNoise(node.media), startTone(node.media)];
      sources.push(noise, tone);
      calls.push(await publish(node, await ticket(`Publisher ${n}`, PUBLISHES), settings.kbps, noise, tone));
    }
    note(`${publishers} publishers send. ${count} viewers join.\n`);
    const joins: Promise<void>[] = [];
    for (let n = 1; n <= count && !signal.aborted; n++) {
      const viewer = new Viewer(node, publishers);
      viewers.push(viewer);
      joins.push(viewer.join(() => ticket(`Viewer ${n}`, ['room:join'])));
      await pause(1000 / joinsPerSecond, signal);
    }
    await Promise.all(joins);
    await pause(SETTLE_MS, signal);
    const measured = await measure(viewers, settings, note, signal);
    return { roomId, publishers, viewers: viewers.length, ...measured, ...timesOf(viewers) };
  } finally {
    for (const source of sources) source.stop();
    await Promise.allSettled([...calls, ...viewers].map((each) => each.leave()));
    if (settings.roomId === null) await api.endRoom({ roomId });
  }
}

type Permissions = NonNullable<Parameters<Callplane['issueToken']>[0]['permissions']>;
const PUBLISHES: Permissions = ['room:join', 'audio:publish', 'video:publish'];

async function newRoom(api: Callplane, participants: number): Promise<string> {
  const { id } = await api.createRoom({
    name: 'rtc load',
    maxParticipants: participants,
    emptyTimeoutSeconds: ROOM_EMPTY_TIMEOUT_SECONDS,
  });
  return id;
}

async function publish(
  { RTCPeerConnection, WebSocket }: Awaited<ReturnType<typeof nodePlatform>>,
  { url, token }: Ticket,
  kbps: number,
  noise: Source,
  tone: Source,
): Promise<Call> {
  const { connect } = await import('@callplane/client-js');
  const call = await connect({ url, token, platform: { RTCPeerConnection, WebSocket }, autoSubscribe: false });
  await call.publish(tone.track, { source: 'microphone' });
  await call.publish(noise.track, { source: 'camera', encodings: [{ maxBitrate: kbps * 1000 }] });
  return call;
}

async function measure(
  viewers: readonly Viewer[],
  { seconds, metricsUrls }: LoadSettings,
  note: (text: string) => void,
  signal: AbortSignal,
) {
  note(`Measuring for ${Math.round(seconds)} s.\n`);
  const [before, processorsBefore] = await Promise.all([
    totalsOf(viewers),
    Promise.all(metricsUrls.map(readProcessor)),
  ]);
  const [beganMs, usedBefore] = [performance.now(), process.cpuUsage()];
  await pause(seconds * 1000, signal);
  const used = process.cpuUsage(usedBefore);
  const tookSeconds = (performance.now() - beganMs) / 1000;
  const [after, processorsAfter] = await Promise.all([totalsOf(viewers), Promise.all(metricsUrls.map(readProcessor))]);
  const rates = viewers
    .filter(({ failure }) => failure === null)
    .map((viewer) => ratesBetween(before.get(viewer) ?? NOTHING, after.get(viewer) ?? NOTHING, tookSeconds));
  return {
    seconds: tookSeconds,
    kbps: spreadOf(
      rates.map(({ kbps }) => kbps),
      'lowest',
    ),
    framesPerSecond: spreadOf(
      rates.flatMap(({ framesPerSecond }) => framesPerSecond ?? []),
      'lowest',
    ),
    lossPercent: spreadOf(rates.map(({ lossPercent }) => lossPercent)),
    processors: metricsUrls.map((source, index) => {
      const [from, to] = [processorsBefore[index] ?? null, processorsAfter[index] ?? null];
      const percent = from === null || to === null ? null : ((to.seconds - from.seconds) / tookSeconds) * 100;
      // A process that has started anew counts from zero.
      return { source, app: to?.app ?? null, percent: percent !== null && percent >= 0 ? percent : null };
    }),
    here: { percent: (used.user + used.system) / 10_000 / tookSeconds, cores: availableParallelism() },
  };
}

async function totalsOf(viewers: readonly Viewer[]): Promise<Map<Viewer, Received>> {
  return new Map(await Promise.all(viewers.map(async (viewer) => [viewer, await viewer.received()] as const)));
}

function timesOf(viewers: readonly Viewer[]) {
  const spread = (name: 'joinedMs' | 'firstPictureMs' | 'allPicturesMs') =>
    spreadOf(viewers.flatMap((viewer) => viewer[name] ?? []));
  return {
    joinedMs: spread('joinedMs'),
    firstPictureMs: spread('firstPictureMs'),
    allPicturesMs: spread('allPicturesMs'),
    reconnections: viewers.reduce((sum, { reconnections }) => sum + reconnections, 0),
    failures: viewers.flatMap(({ failure }) => failure ?? []),
  };
}

async function readProcessor(url: string): Promise<ReturnType<typeof processorSeconds>> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(METRICS_WITHIN_MS), redirect: 'error' });
    if (!response.ok || response.body === null) return null;
    let page = '';
    const decoder = new TextDecoder();
    for await (const part of response.body) {
      page += decoder.decode(part, { stream: true });
      if (page.length > METRICS_BYTES_MAX) return null;
    }
    return processorSeconds(page);
  } catch {
    return null;
  }
}
