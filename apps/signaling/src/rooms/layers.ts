import { LatestReports, Paced, type SendReport } from './quality.js';
import type { RoomMember } from './changes.js';
import type { RoomState } from './state.js';
import { streamName, trackKey, trackOf, type IndexedTrack, type TrackIndex } from './tracks.js';

export const LAYER_HIGHEST = 2;
/** All simulcast layers, the lowest first. Demanded of every track of which nothing is known. */
const EVERY_LAYER: readonly number[] = [0, 1, 2];
/** Gateways repeat the wants of their members this often, in milliseconds. */
const LAYERS_REPEATED_MS = 5000;
/** Age at which the report of a gateway counts no more, in milliseconds. Its members then want everything. */
const STALE_AFTER_MS = 16_000;
/** Tracks of one report. A gateway whose members want more tracks reports that they want everything. */
export const LAYERS_REPORTED_MAX = 2000;
/** The shortest pause between two reports to other gateways, and between two messages to a publisher. */
const FLUSH_EVERY_MS = 100;
/** How long a publisher sends a layer that nobody receives any longer, in milliseconds. */
const OFF_AFTER_MS = 5000;

/** The layers that are demanded of each track, by track key; null: all of every track. */
export type ReportedLayers = readonly (readonly [trackKey: string, layers: readonly number[]])[] | null;

/** The layers that the receivers of a room need of each video track, at this gateway and at the others. */
export class LayerDemand {
  readonly #ofSession = new Map<string, ReadonlyMap<string, number>>();
  readonly #own = new Map<string, number[]>();
  readonly #reports = new LatestReports<ReadonlyMap<string, readonly number[]> | null>(STALE_AFTER_MS);

  note(sessionId: string, layers: ReadonlyMap<string, number>): void {
    this.forget(sessionId);
    if (layers.size === 0) return;
    this.#ofSession.set(sessionId, layers);
    for (const [key, layer] of layers) this.#count(key, layer, 1);
  }

  forget(sessionId: string): void {
    for (const [key, layer] of this.#ofSession.get(sessionId) ?? []) this.#count(key, layer, -1);
    this.#ofSession.delete(sessionId);
  }

  receive(gateway: string, reported: ReportedLayers, nowMs: number): void {
    this.#reports.set(gateway, reported === null ? null : new Map(reported), nowMs);
  }

  expire(nowMs: number): void {
    this.#reports.expire(nowMs);
  }

  /** @param gateways the others that hold members of the room */
  of(trackKey: string, gateways: Iterable<string>): readonly number[] {
    const demanded = new Set(layersOf(this.#own.get(trackKey) ?? []));
    for (const gateway of gateways) {
      // A gateway whose reports are lost must not lose its pictures.
      const report = this.#reports.get(gateway) ?? null;
      if (report === null) return EVERY_LAYER;
      for (const layer of report.get(trackKey) ?? []) demanded.add(layer);
    }
    return EVERY_LAYER.filter((layer) => demanded.has(layer));
  }

  /** The report of this gateway: the demand of its members for the tracks that `isReported` accepts. */
  report(isReported: (trackKey: string) => boolean): ReportedLayers {
    const layers: [string, number[]][] = [];
    for (const [key, counts] of this.#own) if (isReported(key)) layers.push([key, layersOf(counts)]);
    return layers.length > LAYERS_REPORTED_MAX ? null : layers;
  }

  #count(key: string, layer: number, by: number): void {
    const counts = this.#own.get(key) ?? [0, 0, 0];
    counts[layer] = (counts[layer] ?? 0) + by;
    if (counts.every((count) => count === 0)) this.#own.delete(key);
    else this.#own.set(key, counts);
  }
}

function layersOf(counts: readonly number[]): number[] {
  return EVERY_LAYER.filter((layer) => (counts[layer] ?? 0) > 0);
}

interface SentTrack {
  trackId: string;
  layers: readonly number[];
}

interface Sent {
  stream: string;
  layers: readonly number[];
  demanded: readonly number[];
  /** Until when each layer was demanded, the lowest first. */
  demandedUntilMs: number[];
}

/** The layers that one publisher was told to send. It turns layers on at once, and off late. */
export class SentLayers {
  readonly #sent = new Map<string, Sent>();
  #mustRepeat = false;

  /** The publisher has a new connection to the gateway, and may have missed the last message. */
  repeat(): void {
    this.#mustRepeat = true;
  }

  /** @returns all tracks with their layers if the publisher has to be told; else null */
  settle(
    tracks: readonly IndexedTrack[],
    demandOf: (track: IndexedTrack) => readonly number[],
    nowMs: number,
  ): SentTrack[] | null {
    const trackIds = new Set(tracks.map(({ trackId }) => trackId));
    for (const trackId of this.#sent.keys()) if (!trackIds.has(trackId)) this.#sent.delete(trackId);
    let isNews = this.#mustRepeat;
    for (const track of tracks) isNews = this.#settle(track, demandOf(track), nowMs) || isNews;
    this.#mustRepeat = false;
    if (!isNews || tracks.length === 0) return null;
    return [...this.#sent].map(([trackId, { layers }]) => ({ trackId, layers }));
  }

  #settle({ trackId, feedId, mid }: IndexedTrack, demanded: readonly number[], nowMs: number): boolean {
    const stream = streamName({ feedId, mid });
    let sent = this.#sent.get(trackId);
    // A publisher begins with all layers, on each connection. It is told so, because an earlier message about the track
    // may arrive after that.
    const isNew = sent?.stream !== stream;
    if (sent === undefined || isNew) {
      sent = { stream, layers: EVERY_LAYER, demanded: EVERY_LAYER, demandedUntilMs: [] };
      this.#sent.set(trackId, sent);
    }
    const { layers: before, demandedUntilMs } = sent;
    for (const layer of [...demanded, ...sent.demanded]) demandedUntilMs[layer] = nowMs;
    sent.demanded = demanded;
    sent.layers = EVERY_LAYER.filter((layer) => nowMs - (demandedUntilMs[layer] ?? -Infinity) < OFF_AFTER_MS);
    return isNew || String(sent.layers) !== String(before);
  }
}

/** Tells the publishers of this gateway how much of their video is received (docs/decisions/0011-the-call-path.md). */
export class RoomLayers {
  readonly #demand = new LayerDemand();
  readonly #members = new Map<string, { member: RoomMember; sent: SentLayers }>();
  readonly #flushes = new Paced(
    () => FLUSH_EVERY_MS,
    () => this.#flush(),
  );
  #reportedMs = -Infinity;
  #reported = '';

  constructor(
    private readonly index: TrackIndex,
    private readonly room: RoomState,
    private readonly send: SendReport,
  ) {}

  /** A session of this gateway receives these layers of video tracks from now on. */
  note(sessionId: string, layers: ReadonlyMap<string, number>): void {
    this.#demand.note(sessionId, layers);
    this.#flushLater();
  }

  receive(gateway: string, layers: ReportedLayers): void {
    this.#demand.receive(gateway, layers, performance.now());
    this.#flushLater();
  }

  /** The member has got its welcome, and may have missed the last message. */
  add(member: RoomMember): void {
    const sent = this.#members.get(member.sessionId)?.sent ?? new SentLayers();
    this.#members.set(member.sessionId, { member, sent });
    sent.repeat();
    this.#flushLater();
  }

  remove(member: RoomMember): void {
    const known = this.#members.get(member.sessionId)?.member ?? member;
    if (known !== member) return;
    this.#members.delete(member.sessionId);
    this.#demand.forget(member.sessionId);
    this.#flushLater();
  }

  onTracks(): void {
    this.#flushLater();
  }

  /** Repeats the report to other gateways, and turns off layers that nobody demands any more. */
  eachSecond(): void {
    this.#demand.expire(performance.now());
    this.#flushLater();
  }

  close(): void {
    this.#flushes.close();
  }

  #flushLater(): void {
    if (this.index.hasVideo) this.#flushes.soon();
  }

  #flush(): void {
    this.#report();
    for (const sessionId of this.index.publishers.all) this.#tell(sessionId);
  }

  #report(): void {
    if (!this.room.isElsewhere) return;
    const layers = this.#demand.report((key) => this.room.isHeldElsewhere(trackOf(key).participantId));
    const text = JSON.stringify(layers);
    const nowMs = performance.now();
    if (text === this.#reported && nowMs - this.#reportedMs < LAYERS_REPEATED_MS) return;
    this.#reported = text;
    this.#reportedMs = nowMs;
    this.send('layers', layers);
  }

  #tell(sessionId: string): void {
    const { member, sent } = this.#members.get(sessionId) ?? {};
    if (member === undefined || sent === undefined) return;
    const own = this.index.of(member.participantId).filter(({ kind }) => kind === 'video');
    const demandOf = (track: IndexedTrack): readonly number[] =>
      this.index.isMuted(track) ? [] : this.#demand.of(trackKey(track), this.room.otherInstances);
    const tracks = sent.settle(own, demandOf, performance.now());
    if (tracks !== null) member.sendText(JSON.stringify({ type: 'layersWanted', tracks }));
  }
}
