import type { Layer, TrackReference } from '../protocol.generated.js';
import { lowerLayer, type Adaptation } from '../subscriptions.js';

/** How the page displays a received video track. */
export interface Display {
  /** The highest layer that its size needs; undefined: all layers. */
  maxSpatial: number | undefined;
  /** The track cannot be seen: it is outside the window, its tab is hidden, or its element has no size. */
  isHidden: boolean;
  /** The displayed area in pixels of the screen. Larger tracks keep their quality longer. */
  pixels: number;
}

/** What the network can carry of a track. */
export interface Limit {
  layer: Layer | undefined;
  isPaused: boolean;
}

interface Planned {
  track: TrackReference;
  display: Display | undefined;
  limit: Limit | undefined;
  /** What was requested last, serialised. */
  requested: string;
}

/** The pause before a request that failed is repeated. */
const RETRY_AFTER_MS = 1_000;
const NOTHING_REQUESTED = JSON.stringify([null, false]);
/** Differs from every request: the next one is sent in any case. */
const UNKNOWN = '';
/** Tracks that are gone and that the gateway may still have in a lower layer, or paused. */
export const GONE_MAX = 1_000;

/**
 * Joins what the page displays with what the network carries: of two layers the lower one counts, and a track that is
 * hidden or does not fit is paused. Requests the changes of one event-loop tick together.
 */
export class ReceivePlan {
  readonly #request: (tracks: Adaptation[]) => Promise<void>;
  readonly #planned = new Map<string, Planned>();
  readonly #changed = new Set<string>();
  /** The gateway keeps the last request of a track that is gone, for its return under the same id. */
  readonly #gone = new Set<string>();
  #retry: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(request: (tracks: Adaptation[]) => Promise<void>) {
    this.#request = request;
  }

  /** @param display undefined if no element displays the track through `attach()`: it is then received in full */
  display(track: TrackReference, display: Display | undefined): void {
    this.#of(track).display = display;
    this.#note(keyOf(track));
  }

  displayOf(track: TrackReference): Display | undefined {
    return this.#planned.get(keyOf(track))?.display;
  }

  /** @param limit undefined if the network carries the whole track */
  limit(track: TrackReference, limit: Limit | undefined): void {
    if (limit === undefined && !this.#planned.has(keyOf(track))) return;
    this.#of(track).limit = limit;
    this.#note(keyOf(track));
  }

  /** The track is no longer published. */
  forget(track: TrackReference): void {
    const key = keyOf(track);
    const requested = this.#planned.get(key)?.requested ?? NOTHING_REQUESTED;
    this.#planned.delete(key);
    this.#changed.delete(key);
    if (requested === NOTHING_REQUESTED) return;
    this.#gone.add(key);
    const [oldest] = this.#gone;
    if (this.#gone.size > GONE_MAX && oldest !== undefined) this.#gone.delete(oldest);
  }

  /** The track is published, perhaps again. */
  published(track: TrackReference): void {
    if (!this.#gone.has(keyOf(track))) return;
    this.#of(track);
    this.#note(keyOf(track));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
  }

  #of({ participantId, trackId }: TrackReference): Planned {
    const key = keyOf({ participantId, trackId });
    let planned = this.#planned.get(key);
    if (planned === undefined) {
      const track = { participantId, trackId };
      const requested = this.#gone.delete(key) ? UNKNOWN : NOTHING_REQUESTED;
      planned = { track, display: undefined, limit: undefined, requested };
      this.#planned.set(key, planned);
    }
    return planned;
  }

  #note(key: string): void {
    if (this.#changed.size === 0) queueMicrotask(() => this.#flush());
    this.#changed.add(key);
  }

  #flush(): void {
    const changed = [...this.#changed].flatMap((key) => this.#planned.get(key) ?? []);
    this.#changed.clear();
    const differing = changed.flatMap((planned) => {
      const adaptation = adaptationOf(planned);
      const requested = JSON.stringify([adaptation.layer ?? null, adaptation.paused]);
      if (requested === planned.requested) return [];
      planned.requested = requested;
      return [{ planned, adaptation }];
    });
    if (differing.length === 0) return;
    this.#request(differing.map(({ adaptation }) => adaptation)).catch(() => {
      // The connection was lost, or the gateway did not answer.
      for (const { planned } of differing) planned.requested = UNKNOWN;
      if (this.#isClosed) return;
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#repeat(), RETRY_AFTER_MS);
    });
  }

  #repeat(): void {
    for (const [key, { requested }] of this.#planned) if (requested === UNKNOWN) this.#note(key);
  }
}

function adaptationOf({ track, display, limit }: Planned): Adaptation {
  const spatial = display?.maxSpatial;
  const layer = lowerLayer(spatial === undefined ? undefined : { spatial }, limit?.layer);
  const paused = display?.isHidden === true || limit?.isPaused === true;
  return { ...track, ...(layer === undefined ? {} : { layer }), paused };
}

function keyOf({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}
