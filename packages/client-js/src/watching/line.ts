import { entriesOf, lostOf, type StatsEntry } from '../platform.js';

export interface Line {
  seconds: number;
  bps: number;
  audioBps: number;
  /** Sent to this client, with the lost ones. */
  packets: number;
  /** Lost packets of all sent ones, from 0 to 1. */
  loss: number;
  /** The same with the lost packets whose repetition arrived. */
  lossAtFirst: number;
  /** How long packets wait in queues on the way, in milliseconds; undefined if nothing new is known of it. */
  queueMs: number | undefined;
  /** Invented audio samples of all played ones, from 0 to 1. */
  concealed: number;
  /**
   * How fast the packets of a picture follow each other, in bits per second: a slow line pulls them apart, however little
   * is sent. Undefined if too few did, or in browsers that do not tell it.
   */
  burstBps?: number | undefined;
}

/** What earlier samples have shown. */
export const NO_BASELINE = {
  /** The shortest delays seen so far, which packets take without a queue. */
  transitMs: undefined as number | undefined,
  bufferMs: undefined as number | undefined,
  /** When packets of each stream arrived last, by id of the statistics. */
  arrivedAtMs: {} as Readonly<Record<string, number>>,
  /** The videos when their packets showed last how fast they follow each other, by id of the MediaStreamTrack. */
  videos: {} as DownlinkSample['videos'],
};

export type Baseline = typeof NO_BASELINE;

/**
 * A baseline rises so fast, in milliseconds for each second: a route that became longer counts as a queue only for a
 * while, and clocks may drift.
 */
const BASELINE_RISES_MS = 10;
/** A jitter buffer grows also without a queue, with the jitter. */
const BUFFER_TOLERANCE_MS = 100;
/** A stream of which nothing has arrived for this long was interrupted. A congested line carries some of each stream. */
const INTERRUPTED_MS = 400;
/** Pictures of several packets that say how fast these followed each other. */
const LONG_FRAMES_LEAST = 3;
/** A busy machine stamps a report late, about as late as it samples. A longer delay is not its own alone. */
const LATE_MS_MAX = 150;

/** @returns undefined if nothing can be said: no time has passed, or nothing arrives at all, as during a cut. */
export function lineBetween(
  before: DownlinkSample,
  now: DownlinkSample,
  base: Baseline,
): { line: Line | undefined; base: Baseline } {
  const seconds = (now.atMs - before.atMs) / 1000;
  const { received, lost, lostAtFirst, isInterrupted, arrivedAtMs } = packetsBetween(before, now, base);
  if (seconds <= 0 || received <= 0) return { line: undefined, base };
  const isReported = (now.reportAtMs ?? -Infinity) > (before.reportAtMs ?? -Infinity);
  const transit = queueOf(isReported ? now.transitMs : undefined, base.transitMs, seconds);
  const lateMs = Math.min(LATE_MS_MAX, Math.max(before.lateMs, now.lateMs));
  const transitQueueMs = transit.queueMs === undefined ? undefined : Math.max(0, transit.queueMs - lateMs);
  const { bytes, audioBytes, concealed, samples, bufferSeconds, buffered } = countedBetween(before, now);
  const bufferMs = buffered <= 0 ? undefined : (1000 * bufferSeconds) / buffered;
  const buffer = queueOf(bufferMs, base.bufferMs, seconds);
  const burst = burstBetween(base.videos, now.videos);
  const line = {
    seconds,
    bps: (8 * bytes) / seconds,
    audioBps: (8 * audioBytes) / seconds,
    packets: lost + received,
    loss: lost / (lost + received),
    lossAtFirst: lostAtFirst / (lost + received),
    // The sender reports are exact. The jitter buffer stands in for them.
    queueMs: now.transitMs === undefined ? Math.max(0, (buffer.queueMs ?? 0) - BUFFER_TOLERANCE_MS) : transitQueueMs,
    concealed: samples <= 0 || isInterrupted ? 0 : Math.min(1, concealed / samples),
    burstBps: burst.bps,
  };
  return { line, base: { transitMs: transit.baseMs, bufferMs: buffer.baseMs, arrivedAtMs, videos: burst.videos } };
}

/** What the present streams have counted. What a stream has counted before it ended must not be subtracted. */
function countedBetween(before: DownlinkSample, now: DownlinkSample) {
  const sum = { bytes: 0, audioBytes: 0, concealed: 0, samples: 0, bufferSeconds: 0, buffered: 0 };
  const names = Object.keys(sum) as (keyof typeof sum)[];
  for (const [id, counters] of Object.entries(now.streams)) {
    const from = before.streams[id];
    for (const name of names) sum[name] += Math.max(0, counters[name] - (from?.[name] ?? 0));
  }
  return sum;
}

/**
 * Packets of all streams. The first packets after an interruption tell how many were lost during it, which says nothing
 * about what the line carries: the cut may even have been that of the sender.
 */
function packetsBetween(before: DownlinkSample, now: DownlinkSample, base: Baseline) {
  const sum = { received: 0, lost: 0, lostAtFirst: 0, isInterrupted: false };
  const arrivedAtMs: Record<string, number> = {};
  for (const [id, { packets, lost, lostAtFirst }] of Object.entries(now.streams)) {
    const from = before.streams[id];
    const earlierAtMs = base.arrivedAtMs[id];
    const received = packets - (from?.packets ?? 0);
    if (received > 0) arrivedAtMs[id] = now.atMs;
    else if (earlierAtMs !== undefined) arrivedAtMs[id] = earlierAtMs;
    if (received <= 0) continue;
    sum.received += received;
    const isContinued = from === undefined || before.atMs - (earlierAtMs ?? -Infinity) < INTERRUPTED_MS;
    if (isContinued) {
      sum.lost += Math.max(0, lost - (from?.lost ?? 0));
      sum.lostAtFirst += Math.max(0, lostAtFirst - (from?.lostAtFirst ?? 0));
    } else if (lost > from.lost) sum.isInterrupted = true;
  }
  return { ...sum, arrivedAtMs };
}

/** That of the fastest video: a sender's own line may be slow, and a picture whose packets were lost is complete late. */
function burstBetween(before: DownlinkSample['videos'], now: DownlinkSample['videos']) {
  const videos: DownlinkSample['videos'] = {};
  let bps: number | undefined;
  for (const [id, to] of Object.entries(now)) {
    const from = before[id];
    const hasEnough = from === undefined || to.longFrames - from.longFrames >= LONG_FRAMES_LEAST;
    videos[id] = hasEnough ? to : from;
    if (!hasEnough || from?.assemblySeconds === undefined || to.assemblySeconds === undefined) continue;
    const bits = (8 * (to.bytes - from.bytes) * followingBetween(from, to)) / (to.packets - from.packets);
    const seconds = to.assemblySeconds - from.assemblySeconds;
    bps = Math.max(bps ?? 0, seconds <= 0 ? Infinity : bits / seconds);
  }
  return { bps, videos };
}

/**
 * The packets that came after the first one of their picture. With losses, each complete picture counts for one: those that
 * are not complete have packets, but no time.
 */
function followingBetween(from: VideoCounters, to: VideoCounters): number {
  const least = to.longFrames - from.longFrames;
  return to.lost > from.lost ? least : Math.max(least, to.packets - from.packets - (to.frames - from.frames));
}

function queueOf(delayMs: number | undefined, baseMs: number | undefined, seconds: number) {
  const risen = baseMs === undefined ? undefined : baseMs + BASELINE_RISES_MS * seconds;
  if (delayMs === undefined) return { queueMs: undefined, baseMs: risen };
  const lowest = Math.min(delayMs, risen ?? delayMs);
  return { queueMs: delayMs - lowest, baseMs: lowest };
}

export type StreamCounters = ReturnType<typeof streamOf>;
type VideoCounters = ReturnType<typeof videoOf>;

export interface DownlinkSample {
  atMs: number;
  streams: Record<string, StreamCounters>;
  /**
   * How long the fastest of the latest sender reports took to arrive, in milliseconds, by the clocks of sender and
   * receiver, which may differ by any amount. Undefined in browsers without it.
   */
  transitMs: number | undefined;
  reportAtMs: number | undefined;
  /** To the media server, or the relay before it; undefined in browsers without it. */
  roundTripMs?: number | undefined;
  lateMs: number;
  videos: Record<string, VideoCounters>;
}

/** Of the reports of several streams that arrived within this time, the fastest one says how long the queue is. */
const REPORTS_WITHIN_MS = 500;

export function downlinkSampleOf(report: RTCStatsReport, atMs: number): DownlinkSample {
  const sample: DownlinkSample = {
    atMs,
    streams: {},
    transitMs: undefined,
    reportAtMs: undefined,
    lateMs: 0,
    videos: {},
  };
  const reports: { atMs: number; transitMs: number }[] = [];
  for (const entry of entriesOf(report)) {
    if (entry.type === 'inbound-rtp') count(sample, entry);
    const { type, timestamp, remoteTimestamp, nominated, currentRoundTripTime } = entry;
    if (nominated === true && currentRoundTripTime !== undefined) sample.roundTripMs = 1000 * currentRoundTripTime;
    if (type !== 'remote-outbound-rtp' || remoteTimestamp === undefined) continue;
    reports.push({ atMs: timestamp, transitMs: timestamp - remoteTimestamp });
  }
  if (reports.length === 0) return sample;
  const reportAtMs = Math.max(...reports.map((one) => one.atMs));
  const latest = reports.filter((one) => one.atMs >= reportAtMs - REPORTS_WITHIN_MS);
  return { ...sample, reportAtMs, transitMs: Math.min(...latest.map(({ transitMs }) => transitMs)) };
}

function count(sample: DownlinkSample, entry: StatsEntry): void {
  const isVideo = entry.kind !== 'audio';
  sample.streams[entry.id] = streamOf(entry, isVideo);
  if (isVideo && entry.trackIdentifier !== undefined) sample.videos[entry.trackIdentifier] = videoOf(entry);
}

/** With RTP headers. */
function bytesOf({ bytesReceived = 0, headerBytesReceived = 0 }: StatsEntry): number {
  return bytesReceived + headerBytesReceived;
}

function streamOf(entry: StatsEntry, isVideo: boolean) {
  const { packetsReceived: packets = 0 } = entry;
  const losses = { lost: lostOf(entry), lostAtFirst: entry.packetsLost ?? 0 };
  const bytes = bytesOf(entry);
  const none = { audioBytes: 0, concealed: 0, samples: 0, bufferSeconds: 0, buffered: 0 };
  if (isVideo) return { packets, ...losses, bytes, ...none };
  return {
    packets,
    ...losses,
    bytes,
    audioBytes: bytes,
    // What the decoder invented. A muted track sends silence: nobody hears that the decoder invents silence for it.
    concealed: (entry.concealedSamples ?? 0) - (entry.silentConcealedSamples ?? 0),
    samples: entry.totalSamplesReceived ?? 0,
    // The sum of the delays of all played samples in the jitter buffer.
    bufferSeconds: entry.jitterBufferDelay ?? 0,
    buffered: entry.jitterBufferEmittedCount ?? 0,
  };
}

function videoOf(entry: StatsEntry) {
  return {
    packets: entry.packetsReceived ?? 0,
    lost: lostOf(entry),
    bytes: bytesOf(entry),
    // Complete ones, and those of several packets.
    frames: entry.framesReceived ?? 0,
    longFrames: entry.framesAssembledFromMultiplePackets ?? 0,
    framesDecoded: entry.framesDecoded ?? 0,
    // From the first to the last packet of each picture. Undefined in browsers without it.
    assemblySeconds: entry.totalAssemblyTime,
    width: entry.frameWidth ?? 0,
    height: entry.frameHeight ?? 0,
  };
}
