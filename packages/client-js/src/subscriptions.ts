import { CallplaneError } from './errors.js';
import type { Layer, SubscribeRequest, TrackReference } from './protocol.generated.js';
import type { Session } from './signaling/session.js';

export type Subscription = TrackReference & { layer?: Layer };

/** What the SDK itself wants of a track, because of how it is displayed and how good the network is. */
export type Adaptation = TrackReference & { layer?: Layer; paused: boolean };

/** The gateway's limit of tracks in one request. */
const REQUEST_TRACKS_MAX = 500;

interface Choice {
  track: TrackReference;
  /** Chosen by the application; it wins over the adaptation's. */
  layer: Layer | undefined;
  adaptation: { layer: Layer | undefined; paused: boolean } | undefined;
}

/** Keeps what to receive, and how, to repeat it after a reset of the receiving connection. */
export class Subscriptions {
  readonly #session: Session;
  readonly #chosen = new Map<string, Choice>();
  readonly #unsubscribed = new Map<string, TrackReference>();

  constructor(session: Session) {
    this.#session = session;
  }

  async subscribe(tracks: Subscription[]): Promise<void> {
    for (const { participantId, trackId, layer } of tracks) {
      const key = keyOf({ participantId, trackId });
      this.#unsubscribed.delete(key);
      const { adaptation } = this.#chosen.get(key) ?? {};
      this.#chosen.set(key, { track: { participantId, trackId }, layer, adaptation });
    }
    await this.#request(tracks);
  }

  async unsubscribe(tracks: TrackReference[]): Promise<void> {
    for (const track of tracks) {
      this.#chosen.delete(keyOf(track));
      this.#unsubscribed.set(keyOf(track), track);
    }
    await this.#session.request({ type: 'unsubscribe', tracks });
  }

  /**
   * Adapts how tracks are received: in which layer, or not for now. Tracks that are not paused get a media section before
   * all others. Ignores tracks that the application has unsubscribed from, and gateways that speak version 1.
   */
  async adapt(tracks: Adaptation[]): Promise<void> {
    const wanted = tracks.filter((track) => !this.#unsubscribed.has(keyOf(track)));
    for (const { participantId, trackId, layer, paused } of wanted) {
      const key = keyOf({ participantId, trackId });
      const chosen = this.#chosen.get(key)?.layer;
      this.#chosen.set(key, { track: { participantId, trackId }, layer: chosen, adaptation: { layer, paused } });
    }
    await this.#session.connected();
    if (this.#session.version === 2) await this.#request(wanted);
  }

  forget(track: TrackReference): void {
    this.#chosen.delete(keyOf(track));
    this.#unsubscribed.delete(keyOf(track));
  }

  /** Requests everything again. */
  async renew(): Promise<void> {
    const unsubscribed = [...this.#unsubscribed.values()];
    const chosen = [...this.#chosen.values()].map(({ track }) => track);
    await this.#request(chosen).catch(async (error: unknown) => {
      if (!(error instanceof CallplaneError) || error.code !== 'not_found') return;
      // A track that no longer exists must not fail the others.
      for (const track of chosen) await this.#request([track]).catch(() => undefined);
    });
    if (unsubscribed.length > 0) {
      await this.#session.request({ type: 'unsubscribe', tracks: unsubscribed }).catch(() => undefined);
    }
  }

  /** Requests the present choices of these tracks. */
  async #request(tracks: readonly TrackReference[]): Promise<void> {
    const { version } = this.#session;
    const choices = tracks.flatMap((track) => this.#chosen.get(keyOf(track)) ?? []);
    // An earlier gateway does not know `paused`, and receives only what the application has subscribed to.
    const known = version === 2 ? choices : choices.filter(({ adaptation }) => adaptation === undefined);
    for (let at = 0; at < known.length; at += REQUEST_TRACKS_MAX) {
      const some = known.slice(at, at + REQUEST_TRACKS_MAX);
      await this.#session.request({ type: 'subscribe', tracks: some.map(wireOf) });
    }
  }
}

function wireOf({ track, layer, adaptation }: Choice): SubscribeRequest['tracks'][number] {
  const present = layer ?? adaptation?.layer;
  return {
    ...track,
    ...(present === undefined ? {} : { layer: present }),
    ...(adaptation === undefined ? {} : { paused: adaptation.paused }),
  };
}

function keyOf({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}
