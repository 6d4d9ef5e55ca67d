import type { StreamReference } from '@callplane/media';
import { PROTOCOL_LIMITS, type ClientMessages, type Layer, type TrackReference } from '@callplane/protocol';
import { RequestFailure } from '../connections/request-failure.js';
import type { MediaHost } from './session-media.js';

/** Choices that a client may make beside the room's tracks, e.g. for participants that left. */
const CHOICES_MAX = 2 * PROTOCOL_LIMITS.subscriptionsMax;

interface Choice {
  wanted: boolean;
  layer: Layer | undefined;
}

/** Which of the others' tracks a client wants: what it chose by `subscribe` and `unsubscribe`, else `autoSubscribe`. */
export class WantedTracks {
  readonly #host: Pick<MediaHost, 'autoSubscribe' | 'participantId' | 'snapshot'>;
  readonly #choices = new Map<string, Choice>();

  constructor(host: Pick<MediaHost, 'autoSubscribe' | 'participantId' | 'snapshot'>) {
    this.#host = host;
  }

  subscribe(tracks: ClientMessages['subscribe']['tracks']): void {
    const known = this.#published();
    const missing = tracks.filter((track) => !known.has(keyOf(track)));
    if (missing.length > 0) {
      throw new RequestFailure(
        'not_found',
        'There is no such track.',
        missing.slice(0, 20).map(({ participantId, trackId }) => ({
          path: 'tracks',
          message: `${participantId} publishes no ${trackId}`,
        })),
      );
    }
    for (const track of tracks) this.#choose(keyOf(track), { wanted: true, layer: track.layer });
  }

  unsubscribe(tracks: ClientMessages['unsubscribe']['tracks']): void {
    for (const track of tracks) {
      const key = keyOf(track);
      // Without autoSubscribe there is nothing to remember: not choosing is not wanting.
      if (this.#host.autoSubscribe) this.#choose(key, { wanted: false, layer: undefined });
      else this.#choices.delete(key);
    }
  }

  /** The client begins anew, and makes its choices again. */
  forget(): void {
    this.#choices.clear();
  }

  /** Where the media server has them, by track. */
  streams(): Map<string, StreamReference> {
    const wanted = new Map<string, StreamReference>();
    for (const [key, stream] of this.#published()) {
      if (wanted.size >= PROTOCOL_LIMITS.subscriptionsMax) break;
      if (this.#choices.get(key)?.wanted ?? this.#host.autoSubscribe) wanted.set(key, stream);
    }
    return wanted;
  }

  layerOf(key: string): Layer | undefined {
    return this.#choices.get(key)?.layer;
  }

  #choose(key: string, choice: Choice): void {
    if (!this.#choices.has(key) && this.#choices.size >= CHOICES_MAX) {
      const published = this.#published();
      for (const old of this.#choices.keys()) if (!published.has(old)) this.#choices.delete(old);
      if (this.#choices.size >= CHOICES_MAX) throw new RequestFailure('rate_limited', 'Too many tracks were chosen.');
    }
    this.#choices.set(key, choice);
  }

  /** Tracks of the others, by their key. */
  #published(): Map<string, StreamReference> {
    const published = new Map<string, StreamReference>();
    for (const { participant, tracks } of this.#host.snapshot()?.sessions ?? []) {
      if (participant.id === this.#host.participantId) continue;
      for (const { trackId, feedId, mid } of tracks) {
        published.set(keyOf({ participantId: participant.id, trackId }), { feedId, mid });
      }
    }
    return published;
  }
}

function keyOf({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}

export function trackOf(key: string): TrackReference {
  const at = key.indexOf('/');
  return { participantId: key.slice(0, at), trackId: key.slice(at + 1) };
}
