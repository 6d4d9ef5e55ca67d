import type { IndexedTrack } from './track-index.js';
import { LAYER_HIGHEST } from './layer-wants.js';

/** How long a lower layer must have been enough until the publisher stops the ones above, in milliseconds. */
const OFF_AFTER_MS = 5000;

/** The highest layer that a publisher should send; null: none. */
export interface SentLayer {
  trackId: string;
  maxSpatial: number | null;
}

interface Sent {
  /** Where the track is on the media server. */
  stream: string;
  layer: number | null;
  /** What was wanted at the last look. */
  wanted: number | null;
  /** Until when each layer was wanted, the lowest first. */
  wantedUntilMs: number[];
}

/** What one publisher was told to send. It turns layers on at once, and off late. */
export class SentLayers {
  readonly #sent = new Map<string, Sent>();
  #mustRepeat = false;

  /** The publisher has a new connection to the gateway, and may have missed what it was told. */
  repeat(): void {
    this.#mustRepeat = true;
  }

  /** @returns all tracks with their layers if the publisher has to be told; else null */
  settle(
    tracks: readonly IndexedTrack[],
    wantedOf: (track: IndexedTrack) => number | null,
    nowMs: number,
  ): SentLayer[] | null {
    const trackIds = new Set(tracks.map(({ trackId }) => trackId));
    for (const trackId of this.#sent.keys()) if (!trackIds.has(trackId)) this.#sent.delete(trackId);
    let isNews = this.#mustRepeat;
    for (const track of tracks) isNews = this.#settle(track, wantedOf(track), nowMs) || isNews;
    this.#mustRepeat = false;
    if (!isNews || tracks.length === 0) return null;
    return [...this.#sent].map(([trackId, { layer }]) => ({ trackId, maxSpatial: layer }));
  }

  /** @returns whether the publisher has to be told */
  #settle({ trackId, feedId, mid }: IndexedTrack, wanted: number | null, nowMs: number): boolean {
    const stream = `${feedId}/${mid}`;
    let sent = this.#sent.get(trackId);
    // A publisher begins with all layers, on each connection. It is told so, because an earlier message about the track
    // may arrive after that.
    const isNew = sent?.stream !== stream;
    if (sent === undefined || isNew) {
      sent = { stream, layer: LAYER_HIGHEST, wanted: LAYER_HIGHEST, wantedUntilMs: [] };
      this.#sent.set(trackId, sent);
    }
    const before = sent.layer;
    for (let layer = 0; layer <= Math.max(rank(wanted), rank(sent.wanted)); layer += 1)
      sent.wantedUntilMs[layer] = nowMs;
    sent.wanted = wanted;
    const kept = sent.wantedUntilMs.findLastIndex((untilMs) => nowMs - untilMs < OFF_AFTER_MS);
    sent.layer = kept === -1 ? null : kept;
    return isNew || sent.layer !== before;
  }
}

function rank(layer: number | null): number {
  return layer ?? -1;
}
