import { randomFrom } from '@callplane/testing';
import type { Competitor } from './allocate.js';
import { brakeAt } from './brake.js';
import { decide } from './controller.js';
import { HIGHEST } from './ladder.js';
import { lineBetween, NO_BASELINE, type Baseline, type DownlinkSample, type StreamCounters } from './line.js';
import { INITIAL, type DownlinkState } from './state.js';

/** The line at one moment. */
export interface LineNow {
  bps: number;
  /** Of all packets, at random, from 0 to 1. */
  loss?: number;
  delayMs?: number;
  /** Packets that would wait longer are lost; default 300. */
  queueMsMax?: number;
  /** What others send over it, whatever is lost, in bits per second. */
  othersBps?: number;
}

export interface SimulationOptions {
  /** Of all microphones. */
  audioBps?: number;
  /** Which packets are lost. */
  seed?: number;
  /** Pictures a second of each camera. */
  frameRate?: number;
  /** The browser does not tell how long pictures take to arrive. */
  isBlind?: boolean;
}

export interface Simulated {
  atMs: number;
  state: DownlinkState;
  /** Of the packets that were sent in this step. */
  loss: number;
  queueMs: number;
  /** Received, in bits per second. */
  bps: number;
}

export function modeOf({ budget, probe }: DownlinkState): 'free' | 'held' | 'probing' {
  if (budget.name === 'free') return 'free';
  return probe.name === 'waiting' ? 'held' : 'probing';
}

const STEP_MS = 500;
/** Of one microphone, with 50 packets a second. */
const AUDIO_BPS = 45_000;
const PACKET_BITS = { audio: 900, video: 8_800 };

/** Of a stream of which nothing has arrived. */
export const NO_COUNTERS: StreamCounters = {
  packets: 0,
  lost: 0,
  lostAtFirst: 0,
  bytes: 0,
  audioBytes: 0,
  concealed: 0,
  samples: 0,
  bufferSeconds: 0,
  buffered: 0,
};

/** A camera with three layers, as Chromium sends it. */
export const CAMERA = [0, 60_000, 100_000, 240_000, 400_000, 700_000, 1_200_000];
/** One of 960×540 that moves and has noise: all layers need as much as they may, and half the frame rate 60 % of it. */
export const MOVING = [0, 60_000, 100_000, 190_000, 310_000, 740_000, 1_230_000];

/**
 * Runs the controller on a line with a bounded queue, which loses packets one by one.
 * @param cameras what each level of each track needs, by key; in the order of their ranks
 */
export function simulate(
  cameras: Record<string, readonly number[]>,
  seconds: number,
  lineAt: (second: number) => LineNow,
  { audioBps = AUDIO_BPS, seed = 1, frameRate = 15, isBlind = false }: SimulationOptions = {},
): Simulated[] {
  const random = randomFrom(seed);
  const lostOf = (packets: number, loss: number) =>
    Array.from({ length: packets }, random).filter((one) => one < loss).length;
  const keys = Object.keys(cameras);
  const measured = new Map<string, (number | undefined)[]>(keys.map((key) => [key, []]));
  const all: Simulated[] = [];
  let state = INITIAL;
  let base: Baseline = NO_BASELINE;
  let before: DownlinkSample | undefined;
  const queue = { own: 0, all: 0 };
  const sum = { bytes: 0, audioBytes: 0 };
  const packets = { received: 0, missing: 0, lost: 0 };
  const video = { packets: 0, lost: 0, bytes: 0, frames: 0, longFrames: 0, framesDecoded: 0, assemblySeconds: 0 };
  for (let atMs = STEP_MS; atMs <= 1000 * seconds; atMs += STEP_MS) {
    const { bps, loss = 0, delayMs = 0, queueMsMax = 300, othersBps = 0 } = lineAt(atMs / 1000);
    const levelOf = (key: string) => state.levels.get(key) ?? HIGHEST;
    const braked = { none: 1, half: 0.6, slow: 0.4, stop: 0 }[brakeAt(state, atMs - 1)];
    const videoBps = keys.reduce((total, key) => total + (cameras[key]?.[levelOf(key)] ?? 0), 0);
    const perStep = STEP_MS / 1000;
    const sentBits = (braked * videoBps + audioBps) * perStep;
    const sentPackets = Math.ceil(((braked * videoBps) / PACKET_BITS.video + audioBps / PACKET_BITS.audio) * perStep);
    const passed = sentBits * (1 - lostOf(sentPackets, loss) / sentPackets);
    const offered = { own: queue.own + passed, all: queue.all + passed + othersBps * perStep };
    const allCarried = Math.min(offered.all, bps * perStep);
    const allKept = Math.min(offered.all - allCarried, (bps * queueMsMax) / 1000);
    // Packets of all wait in the same queue.
    const own = offered.own / offered.all;
    const carried = own * allCarried;
    Object.assign(queue, { own: own * allKept, all: allKept });
    const lostBits = sentBits - passed + offered.own - carried - queue.own;
    const queueMs = bps === 0 ? 0 : (1000 * queue.all) / bps;
    sum.bytes += carried / 8;
    packets.received += (carried * sentPackets) / sentBits;
    packets.missing += (lostBits * sentPackets) / sentBits;
    // A receiver finds out what is missing when the next packet arrives.
    if (carried > 0) packets.lost = packets.missing;
    const videoBits = carried * (1 - audioBps / Math.max(audioBps, sentBits / perStep));
    const videoPackets = videoBits / PACKET_BITS.video;
    const rates = keys.map((key) => (levelOf(key) % 2 === 1 ? frameRate / 2 : frameRate));
    const pictures = rates.reduce((total, rate) => total + rate, 0) * braked * perStep;
    const frames = Math.min(videoPackets, pictures);
    video.packets += videoPackets;
    video.bytes += videoBits / 8;
    video.frames += frames;
    video.longFrames += Math.min(frames, videoPackets - frames);
    video.lost = packets.lost;
    if (bps > 0) video.assemblySeconds += ((videoPackets - frames) * PACKET_BITS.video) / (own * bps);
    sum.audioBytes += ((carried / Math.max(1, sentBits)) * audioBps * perStep) / 8;
    // Sender reports arrive once a second.
    const reportAtMs = bps === 0 ? (before?.reportAtMs ?? 0) : 1000 * Math.floor(atMs / 1000);
    const isNew = reportAtMs !== before?.reportAtMs;
    const sample: DownlinkSample = {
      atMs,
      streams: {
        all: { ...NO_COUNTERS, ...sum, packets: packets.received, lost: packets.lost, lostAtFirst: packets.lost },
      },
      transitMs: isNew ? 5_000_000 + delayMs + queueMs : before?.transitMs,
      reportAtMs,
      lateMs: 0,
      videos: { all: { ...video, width: 0, height: 0, assemblySeconds: isBlind ? undefined : video.assemblySeconds } },
    };
    if (before !== undefined) {
      const result = lineBetween(before, sample, base);
      ({ base } = result);
      for (const key of keys) {
        const level = levelOf(key);
        if (level > 0 && carried > 0 && braked === 1) (measured.get(key) ?? [])[level] = cameras[key]?.[level];
      }
      const competitors = keys.map((key, at): Competitor => ({
        key,
        highest: HIGHEST,
        rank: -at,
        frameRate,
        measured: measured.get(key) ?? [],
      }));
      state = decide(state, result.line, competitors, atMs);
    }
    before = sample;
    all.push({ atMs, state, loss: lostBits / sentBits, queueMs, bps: carried / perStep });
  }
  return all;
}
