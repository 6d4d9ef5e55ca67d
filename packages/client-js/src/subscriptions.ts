import { CallplaneError } from './errors.js';
import type { Layer, SubscribeRequest, TrackReference } from './protocol.generated.js';
import type { Session } from './signaling/session.js';

export type Subscription = TrackReference & { layer?: Layer };

/** What the SDK itself wants of a track, because of how it is displayed and how good the network is. */
export type Adaptation = TrackReference & { layer?: Layer; paused: boolean };

/** The gateway's limit of tracks in one request. */
const REQUEST_TRACKS_MAX = 500;

interface Known {
  track: TrackReference;
  /** Whether the application has subscribed to it (true), unsubscribed from it (false), or left it to `autoSubscribe`. */
  isChosen: boolean | undefined;
  /** Chosen by the application: the adaptation never goes above it. */
  layer: Layer | undefined;
  adaptation: { layer: Layer | undefined; paused: boolean } | undefined;
}

/** Keeps what to receive, and how, to repeat it after a reset of the receiving connection. */
export class Subscriptions {
  readonly #session: Session;
  readonly #autoSubscribe: boolean;
  readonly #known = new Map<string, Known>();

  constructor(session: Session, autoSubscribe = true) {
    this.#session = session;
    this.#autoSubscribe = autoSubscribe;
  }

  async subscribe(tracks: Subscription[]): Promise<void> {
    for (const { layer, ...track } of tracks) Object.assign(this.#of(track), { isChosen: true, layer });
    await this.#request(tracks);
  }

  async unsubscribe(tracks: TrackReference[]): Promise<void> {
    for (const track of tracks) Object.assign(this.#of(track), { isChosen: false, layer: undefined });
    await this.#session.request({ type: 'unsubscribe', tracks });
  }

  /**
   * Adapts how tracks are received: in which layer, or not for now. Tracks that are not paused get a media section before
   * all others. Only notes it for tracks that the application does not receive.
   */
  async adapt(tracks: Adaptation[]): Promise<void> {
    for (const { layer, paused, ...track } of tracks) this.#of(track).adaptation = { layer, paused };
    await this.#session.connected();
    await this.#requestPresent(tracks);
  }

  /** The layer that the application has chosen; undefined: all. */
  layerOf(track: TrackReference): Layer | undefined {
    return this.#known.get(keyOf(track))?.layer;
  }

  forget(track: TrackReference): void {
    this.#known.delete(keyOf(track));
  }

  /** The participant has left. What the application has chosen stays. */
  forgetAdaptation(track: TrackReference): void {
    const known = this.#known.get(keyOf(track));
    if (known?.isChosen === undefined) this.forget(track);
    else known.adaptation = undefined;
  }

  /** Requests everything again. */
  async renew(): Promise<void> {
    const all = [...this.#known.values()];
    await this.#requestPresent(all.map(({ track }) => track)).catch(() => undefined);
    const unsubscribed = all.filter(({ isChosen }) => isChosen === false).map(({ track }) => track);
    if (unsubscribed.length > 0) {
      await this.#session.request({ type: 'unsubscribe', tracks: unsubscribed }).catch(() => undefined);
    }
  }

  #of({ participantId, trackId }: TrackReference): Known {
    const track = { participantId, trackId };
    let known = this.#known.get(keyOf(track));
    if (known === undefined) {
      known = { track, isChosen: undefined, layer: undefined, adaptation: undefined };
      this.#known.set(keyOf(track), known);
    }
    return known;
  }

  /** A track that no longer exists must not fail the others. */
  async #requestPresent(tracks: readonly TrackReference[]): Promise<void> {
    await this.#request(tracks).catch(async (error: unknown) => {
      if (!(error instanceof CallplaneError) || error.code !== 'not_found') throw error;
      for (const track of tracks) await this.#request([track]).catch(() => undefined);
    });
  }

  /** Requests the present choices of these tracks. */
  async #request(tracks: readonly TrackReference[]): Promise<void> {
    const wanted = tracks
      .flatMap((track) => this.#known.get(keyOf(track)) ?? [])
      .filter(({ isChosen, adaptation }) => isChosen ?? (this.#autoSubscribe && adaptation !== undefined));
    for (let at = 0; at < wanted.length; at += REQUEST_TRACKS_MAX) {
      const some = wanted.slice(at, at + REQUEST_TRACKS_MAX);
      await this.#session.request({ type: 'subscribe', tracks: some.map(wireOf) });
    }
  }
}

function wireOf({ track, layer, adaptation }: Known): SubscribeRequest['tracks'][number] {
  const present = lowerLayer(layer, adaptation?.layer);
  return {
    ...track,
    ...(present === undefined ? {} : { layer: present }),
    ...(adaptation === undefined ? {} : { paused: adaptation.paused }),
  };
}

/** The layer that needs less of the network. Undefined: all layers. */
export function lowerLayer(a: Layer | undefined, b: Layer | undefined): Layer | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const [spatialOfA, spatialOfB] = [a.spatial ?? Infinity, b.spatial ?? Infinity];
  if (spatialOfA !== spatialOfB) return spatialOfA < spatialOfB ? a : b;
  return (a.temporal ?? Infinity) <= (b.temporal ?? Infinity) ? a : b;
}

function keyOf({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}
