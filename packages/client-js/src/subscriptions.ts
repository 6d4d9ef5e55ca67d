import type { Layer, TrackReference } from './protocol.generated.js';
import type { Session } from './signaling/session.js';

export type Subscription = TrackReference & { layer?: Layer };

/** What was asked for beside `autoSubscribe`, so that it can be asked for again after a loss. */
export class Subscriptions {
  readonly #session: Session;
  readonly #wanted = new Map<string, Subscription>();
  readonly #unwanted = new Map<string, TrackReference>();

  constructor(session: Session) {
    this.#session = session;
  }

  async subscribe(tracks: Subscription[]): Promise<void> {
    for (const track of tracks) {
      this.#unwanted.delete(keyOf(track));
      this.#wanted.set(keyOf(track), track);
    }
    await this.#session.request({ type: 'subscribe', tracks });
  }

  async unsubscribe(tracks: TrackReference[]): Promise<void> {
    for (const track of tracks) {
      this.#wanted.delete(keyOf(track));
      this.#unwanted.set(keyOf(track), track);
    }
    await this.#session.request({ type: 'unsubscribe', tracks });
  }

  forget(track: TrackReference): void {
    this.#wanted.delete(keyOf(track));
    this.#unwanted.delete(keyOf(track));
  }

  /** Asks for all of it again. One by one: a track that is gone must not take the others with it. */
  async renew(): Promise<void> {
    const requests = [
      ...[...this.#wanted.values()].map((track) => ({ type: 'subscribe' as const, tracks: [track] })),
      ...[...this.#unwanted.values()].map((track) => ({ type: 'unsubscribe' as const, tracks: [track] })),
    ];
    for (const request of requests) await this.#session.request(request).catch(() => undefined);
  }
}

function keyOf({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}
