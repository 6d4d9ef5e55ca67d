import { CallplaneError } from './errors.js';
import type { Layer, TrackReference } from './protocol.generated.js';
import type { Session } from './signaling/session.js';

export type Subscription = TrackReference & { layer?: Layer };

export interface Display {
  /** The highest layer that its size needs. */
  maxSpatial: number;
  /** The track cannot be seen: it is outside the window, its tab is hidden, or its element has no size. */
  isHidden: boolean;
  /** The displayed area in pixels of the screen. Larger tracks keep their quality longer. */
  pixels: number;
}

export interface Limit {
  layer: Layer;
  isPaused: boolean;
}

interface Known {
  track: TrackReference;
  /** Whether the application has subscribed to it (true), unsubscribed from it (false), or left it to `autoSubscribe`. */
  isChosen: boolean | undefined;
  /** Chosen by the application: display and network never go above it. */
  layer: Layer | undefined;
  /** Undefined if no element displays the track through `attach()`: it is then received in full. */
  display: Display | undefined;
  limit: Limit | undefined;
  /** Last request for this track, as JSON. The gateway keeps it, also for a track that returns under the same id. */
  requested: string;
  isGone: boolean;
}

const REQUEST_TRACKS_MAX = 500;
const RETRY_AFTER_MS = 1_000;
/** What the gateway does without a request. */
const IN_FULL = JSON.stringify([null, false]);
/** Differs from every request: the next one is sent in any case. */
const UNKNOWN = '';
/** Tracks that are gone and that the gateway may still have in a lower layer, or paused. */
const GONE_MAX = 1_000;

/**
 * What is received, and how: of the layers that the application chose, that the page displays and that the network
 * carries, the lowest one counts. A track that is hidden or does not fit is paused. Repeats all of it after a reset of
 * the receiving connection.
 */
export class Subscriptions {
  readonly #known = new Map<string, Known>();
  readonly #changed = new Set<Known>();
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly session: Session,
    private readonly autoSubscribe: boolean,
  ) {}

  async subscribe(tracks: Subscription[]): Promise<void> {
    await this.#request(tracks.map(({ layer, ...track }) => this.#set(track, { isChosen: true, layer })));
  }

  async unsubscribe(tracks: TrackReference[]): Promise<void> {
    for (const track of tracks) this.#set(track, { isChosen: false, layer: undefined });
    await this.session.request({ type: 'unsubscribe', tracks });
  }

  display(track: TrackReference, display: Display): void {
    this.#note(this.#set(track, { display }));
  }

  limit(track: TrackReference, limit: Limit | undefined): void {
    if (limit !== undefined || this.#known.has(keyOf(track))) this.#note(this.#set(track, { limit }));
  }

  isWanted(track: TrackReference): boolean {
    return this.#known.get(keyOf(track))?.isChosen ?? this.autoSubscribe;
  }

  displayOf(track: TrackReference): Display | undefined {
    return this.#known.get(keyOf(track))?.display;
  }

  layerOf(track: TrackReference): Layer | undefined {
    return this.#known.get(keyOf(track))?.layer;
  }

  published(track: TrackReference): void {
    const known = this.#known.get(keyOf(track));
    if (known === undefined) return;
    known.isGone = false;
    this.#note(known);
  }

  /**
   * The track is no longer listed. What the application has chosen stays if the participant has left, and may come back.
   */
  gone(track: TrackReference, why: 'unpublished' | 'left' | 'hidden'): void {
    const known = this.#known.get(keyOf(track));
    if (known === undefined) return;
    if (why === 'hidden') {
      // It is still published, but nothing can show it.
      if (known.display !== undefined) this.display(track, { ...known.display, isHidden: true });
      return;
    }
    this.#changed.delete(known);
    Object.assign(known, { display: undefined, limit: undefined, isGone: true });
    if (why === 'unpublished') Object.assign(known, { isChosen: undefined, layer: undefined });
    if (known.requested === IN_FULL) this.#forget(known);
    const [oldest, ...others] = [...this.#known.values()].filter((one) => one.isGone && one.isChosen === undefined);
    if (oldest !== undefined && others.length >= GONE_MAX) this.#forget(oldest);
  }

  /** Requests everything again of a gateway that knows nothing. */
  async renew(): Promise<void> {
    const all = [...this.#known.values()];
    for (const known of all) {
      known.requested = IN_FULL;
      if (known.isGone) this.#forget(known);
    }
    await this.#adapt(all.filter((one) => one.isChosen ?? (this.autoSubscribe && requestOf(one) !== IN_FULL)));
    const tracks = all.filter(({ isChosen }) => isChosen === false).map(({ track }) => track);
    if (tracks.length > 0) await this.session.request({ type: 'unsubscribe', tracks }).catch(() => undefined);
  }

  #set({ participantId, trackId }: TrackReference, change: Partial<Known>): Known {
    const track = { participantId, trackId };
    const key = keyOf(track);
    const unknown = { isChosen: undefined, layer: undefined, display: undefined, limit: undefined };
    const known = this.#known.get(key) ?? { track, ...unknown, requested: IN_FULL, isGone: false };
    this.#known.set(key, known);
    return Object.assign(known, change);
  }

  /** Keeps what the application has chosen. */
  #forget(known: Known): void {
    if (known.isChosen === undefined) this.#known.delete(keyOf(known.track));
  }

  #note(known: Known): void {
    if (this.#changed.size === 0) queueMicrotask(() => this.#flush());
    this.#changed.add(known);
  }

  #flush(): void {
    const differing = [...this.#changed].filter(
      (one) => (one.isChosen ?? this.autoSubscribe) && requestOf(one) !== one.requested,
    );
    this.#changed.clear();
    void this.#adapt(differing);
  }

  async #adapt(tracks: readonly Known[]): Promise<void> {
    try {
      await this.#request(tracks);
    } catch (error) {
      if (error instanceof CallplaneError && error.code === 'not_found') {
        // A track that no longer exists must not fail the others.
        for (const track of tracks) await this.#request([track]).catch(() => undefined);
        return;
      }
      if (this.session.state === 'closed') return;
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => {
        for (const known of this.#known.values()) if (known.requested === UNKNOWN) this.#note(known);
      }, RETRY_AFTER_MS);
    }
  }

  async #request(tracks: readonly Known[]): Promise<void> {
    for (let at = 0; at < tracks.length; at += REQUEST_TRACKS_MAX) {
      const some = tracks.slice(at, at + REQUEST_TRACKS_MAX);
      for (const known of some) known.requested = requestOf(known);
      const wanted = some.map((known) => {
        const { layer, paused } = wantOf(known);
        return { ...known.track, ...(layer === undefined ? {} : { layer }), paused };
      });
      try {
        await this.session.request({ type: 'subscribe', tracks: wanted });
      } catch (error) {
        for (const known of some) known.requested = UNKNOWN;
        throw error;
      }
    }
  }
}

function wantOf({ layer, display, limit }: Known): { layer: Layer | undefined; paused: boolean } {
  const displayed = display === undefined ? undefined : { spatial: display.maxSpatial };
  return {
    layer: lowerLayer(layer, lowerLayer(displayed, limit?.layer)),
    paused: display?.isHidden === true || limit?.isPaused === true,
  };
}

function requestOf(known: Known): string {
  const { layer, paused } = wantOf(known);
  return JSON.stringify([layer ?? null, paused]);
}

/** The layer that needs less of the network. Undefined: all layers. */
function lowerLayer(a: Layer | undefined, b: Layer | undefined): Layer | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const [spatialOfA, spatialOfB] = [a.spatial ?? Infinity, b.spatial ?? Infinity];
  if (spatialOfA !== spatialOfB) return spatialOfA < spatialOfB ? a : b;
  return (a.temporal ?? Infinity) <= (b.temporal ?? Infinity) ? a : b;
}

export function keyOf({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}
