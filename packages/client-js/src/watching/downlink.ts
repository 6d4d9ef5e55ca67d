import type { TrackReference } from '../protocol.generated.js';
import type { RemoteTrack, TrackQuality } from '../remote/participant.js';
import type { Limit, Subscriptions } from '../subscriptions.js';
import type { Competitor } from './allocate.js';
import { brakeAt, type BrakeName } from './brake.js';
import { decide } from './controller.js';
import { HIGHEST, highestLevelOf, layerOf, levelOf, PAUSED, slowedLayerOf } from './ladder.js';
import { downlinkSampleOf, lineBetween, NO_BASELINE, type Baseline, type DownlinkSample } from './line.js';
import { PlayOut } from './play-out.js';
import { INITIAL, resumed, type DownlinkState } from './state.js';

const SAMPLE_EVERY_MS = 500;
/** A probe has to end before it harms the audio. */
const SAMPLE_EVERY_PROBING_MS = 300;
/** Invented audio, or loss, in one sample is no proof of congestion: the proof may follow within `forMs`. */
const SUSPECT = { concealed: 0.08, loss: 0.15, forMs: 1_000 };
const SAMPLE_EVERY_SUSPECT_MS = 100;
/** What a level needs is measured only after the media server has switched to it. */
const SWITCHED_AFTER_MS = 1_500;
/** Loss up to which a measurement says what was sent. */
const MEASURABLE_LOSS = 0.3;

export interface DownlinkContext {
  now: () => number;
  connection: () => RTCPeerConnection | undefined;
  /** The video tracks whose media sections carry them at this moment. */
  videos: () => Video[];
  subscriptions: Pick<Subscriptions, 'displayOf' | 'layerOf' | 'limit'>;
  /** Called with the qualities of all these tracks after each sample. */
  onQuality: (track: TrackReference, quality: TrackQuality) => void;
}

export interface Video {
  track: Pick<RemoteTrack, 'participantId' | 'trackId' | 'source' | 'muted' | 'mediaStreamTrack'>;
  isSpeaking: boolean;
}

interface Known {
  track: TrackReference;
  measured: (number | undefined)[];
  /** Pictures a second, in a level with the full frame rate. */
  frameRate: number;
  /** Of the largest picture that was received, in pixels. */
  area: number;
  level: number;
  levelSinceMs: number;
  trackIdentifier: string | undefined;
}

/** Samples the receiving connection and limits its video tracks, so that they fit the line. */
export class Downlink {
  readonly #context: DownlinkContext;
  readonly #known = new Map<string, Known>();
  readonly #playOut = new PlayOut();
  #connection: RTCPeerConnection | undefined;
  #before: DownlinkSample | undefined;
  #base: Baseline = NO_BASELINE;
  #state: DownlinkState = INITIAL;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer should run: a busy machine runs it later. */
  #dueAtMs = Infinity;
  #isSampling = false;
  #suspectUntilMs = 0;
  #wasInterrupted = false;
  #isClosed = false;

  constructor(context: DownlinkContext) {
    this.#context = context;
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const usualMs = this.#state.probe.name === 'waiting' ? SAMPLE_EVERY_MS : SAMPLE_EVERY_PROBING_MS;
    const nowMs = this.#context.now();
    const afterMs = nowMs < this.#suspectUntilMs ? SAMPLE_EVERY_SUSPECT_MS : usualMs;
    this.#dueAtMs = nowMs + afterMs;
    this.#timer = setTimeout(() => void this.#run(), afterMs);
  }

  async #run(): Promise<void> {
    if (this.#isSampling) return;
    this.#isSampling = true;
    try {
      await this.#sample();
    } catch {
      // The connection was closed meanwhile.
    } finally {
      this.#isSampling = false;
      this.#schedule();
    }
  }

  async #sample(): Promise<void> {
    const connection = this.#context.connection();
    const isUp = connection?.connectionState === 'connected';
    if (connection !== this.#connection || !isUp) this.#interrupt();
    this.#connection = connection;
    if (!isUp) return;
    const startedAtMs = this.#context.now();
    const report = await connection.getStats();
    const atMs = this.#context.now();
    const lateMs = Math.max(0, startedAtMs - this.#dueAtMs, atMs - startedAtMs);
    const now = { ...downlinkSampleOf(report, atMs), lateMs };
    const before = this.#before;
    this.#before = now;
    if (before === undefined || this.#isClosed || connection !== this.#context.connection()) return;
    if (this.#wasInterrupted) this.#state = resumed(this.#state, now.atMs);
    this.#wasInterrupted = false;
    const { line, base } = lineBetween(before, now, this.#base);
    this.#base = base;
    const isSuspect = (line?.concealed ?? 0) > SUSPECT.concealed || (line?.loss ?? 0) > SUSPECT.loss;
    if (isSuspect) this.#suspectUntilMs = now.atMs + SUSPECT.forMs;
    const { subscriptions } = this.#context;
    const videos = this.#context.videos();
    const competitors = videos
      .filter(({ track }) => !track.muted && subscriptions.displayOf(track)?.isHidden !== true)
      .map((video) => this.#competitorOf(video, before, now, line?.loss ?? 1));
    this.#state = decide(this.#state, line, competitors, now.atMs);
    this.#playOut.update(connection.getReceivers(), line, this.#state, now.roundTripMs, now.atMs);
    this.#apply(videos, competitors, now.atMs);
  }

  /** The path is lost, or another connection takes another one. What the tracks need stays known. */
  #interrupt(): void {
    if (this.#before === undefined) return;
    this.#before = undefined;
    this.#base = NO_BASELINE;
    this.#wasInterrupted = true;
  }

  #competitorOf({ track, isSpeaking }: Video, before: DownlinkSample, now: DownlinkSample, loss: number): Competitor {
    const { subscriptions } = this.#context;
    const [display, layer] = [subscriptions.displayOf(track), subscriptions.layerOf(track)];
    const key = keyOf(track);
    const trackIdentifier = track.mediaStreamTrack?.id;
    const begin = { trackIdentifier, levelSinceMs: now.atMs };
    const fresh: Known = { track, measured: [], frameRate: 0, area: 0, level: HIGHEST, ...begin };
    const known = this.#known.get(key) ?? fresh;
    this.#known.set(key, known);
    known.track = track;
    if (known.trackIdentifier !== trackIdentifier) Object.assign(known, begin);
    const [from, to] = [before.videos[trackIdentifier ?? ''], now.videos[trackIdentifier ?? '']];
    if (to !== undefined) known.area = Math.max(known.area, to.width * to.height);
    const bounds = [
      highestLevelOf(known.area),
      display === undefined ? HIGHEST : levelOf({ spatial: display.maxSpatial }),
      layer === undefined ? HIGHEST : levelOf(layer),
    ];
    const highest = Math.min(...bounds);
    const level = Math.min(known.level, highest);
    const isSteady = now.atMs - known.levelSinceMs >= SWITCHED_AFTER_MS && level !== PAUSED;
    if (from !== undefined && to !== undefined && isSteady && loss < MEASURABLE_LOSS) {
      const perSecond = 1000 / (now.atMs - before.atMs);
      const bps = (8 * (to.bytes - from.bytes) * perSecond) / (1 - loss);
      // Nothing arrives from a track that its publisher has just muted.
      if (bps > 0) known.measured[level] = smoothed(known.measured[level], bps);
      const isFullRate = level % 2 === 0;
      // A queue delays pictures before anything else shows it, and the camera still makes as many: the rate falls slowly.
      const decoded = (to.framesDecoded - from.framesDecoded) * perSecond;
      if (isFullRate) known.frameRate = Math.max(0.95 * known.frameRate, smoothed(known.frameRate, decoded));
    }
    // Screens first, then those who speak, then the larger ones.
    const rank = (track.source === 'screen' ? 2e9 : 0) + (isSpeaking ? 1e9 : 0) + Math.min(1e8, display?.pixels ?? 0);
    return { key, highest, rank, frameRate: known.frameRate, measured: known.measured };
  }

  #apply(videos: readonly Video[], competitors: readonly Competitor[], nowMs: number): void {
    const highest = new Map(competitors.map((one) => [one.key, one.highest]));
    for (const { track } of videos) {
      const key = keyOf(track);
      const known = this.#known.get(key);
      const top = highest.get(key);
      if (known === undefined || top === undefined) continue;
      const level = this.#state.levels.get(key) ?? top;
      const applied = level >= top ? HIGHEST : level;
      const brake = brakeAt(this.#state, nowMs);
      const isBraked = brake !== 'none';
      if (applied !== known.level || isBraked) Object.assign(known, { level: applied, levelSinceMs: nowMs });
      const limit = applied === HIGHEST ? undefined : limitOf(applied);
      const present = isBraked && level !== PAUSED ? brakedLimitOf(level, brake) : limit;
      this.#limit(track, present, qualityOf(applied));
    }
    const present = new Set(videos.map(({ track }) => keyOf(track)));
    for (const [key, { track }] of this.#known) {
      if (present.has(key)) continue;
      this.#known.delete(key);
      // Without a media section nothing would ever lift the limit, and a paused track gets no section.
      this.#limit(track, undefined, 'full');
    }
  }

  /** @param quality the one that the application sees: brakes do not count, because they end within a second */
  #limit(track: TrackReference, limit: Limit | undefined, quality: TrackQuality): void {
    this.#context.subscriptions.limit(track, limit);
    this.#context.onQuality(track, quality);
  }
}

function smoothed(before: number | undefined, now: number): number {
  return 0.7 * (before ?? now) + 0.3 * now;
}

function limitOf(level: number): Limit {
  return level === PAUSED ? { layer: layerOf(1), isPaused: true } : { layer: layerOf(level), isPaused: false };
}

function qualityOf(level: number): TrackQuality {
  if (level === HIGHEST) return 'full';
  return level === PAUSED ? 'paused' : 'reduced';
}

function brakedLimitOf(level: number, brake: BrakeName): Limit {
  if (brake === 'stop') return { layer: layerOf(level), isPaused: true };
  return { layer: slowedLayerOf(level, brake === 'half'), isPaused: false };
}

/** Of its own: with the function of the subscriptions, bundlers would split those from the core. */
function keyOf({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}
