import { PROTOCOL_LIMITS, type ClientMessages, type TrackReference } from '@callplane/protocol';
import { RequestFailure } from '../../connections/request-failure.js';
import { trackKey } from '../../rooms/tracks.js';
import type { TrackOrder } from '../../rooms/tracks.js';
import type { MediaHost } from '../media-host.js';
import { selectTracks, type Choice, type Selection } from './select-tracks.js';

/** Maximum number of a client's choices. It leaves space for outdated ones, e.g. for participants that left. */
const CHOICES_MAX = 2 * PROTOCOL_LIMITS.subscriptionsMax;
const NOTHING: ReadonlySet<string> = new Set();

/** A selection, and all that it depends on. */
interface Cached {
  orderVersion: number;
  choiceVersion: number;
  autoSubscribe: boolean;
  held: ReadonlySet<string>;
  refused: ReadonlySet<string>;
  selection: Selection;
}

type WantingHost = Pick<MediaHost, 'autoSubscribe' | 'order' | 'participantId' | 'tracks'>;

/** The others' tracks that a client wants: its choices by `subscribe` and `unsubscribe`, else `autoSubscribe`. */
export class WantedTracks {
  readonly #host: WantingHost;
  readonly #choices = new Map<string, Choice>();
  /** Grows when the choices have changed. */
  #choiceVersion = 0;
  #cached: Cached | null = null;

  constructor(host: WantingHost) {
    this.#host = host;
  }

  /** Whether a change of the room's tracks can matter. */
  get hasWants(): boolean {
    return this.#host.autoSubscribe || this.#choices.size > 0;
  }

  /** @throws RequestFailure `not_found` if a track is not published. Nothing is chosen then. */
  subscribe(tracks: ClientMessages['subscribe']['tracks']): void {
    const missing = tracks.flatMap((track, at) => (this.#isPublished(track) ? [] : [{ ...track, at }]));
    if (missing.length > 0) {
      throw new RequestFailure(
        'not_found',
        'Track not found.',
        missing.slice(0, 20).map(({ participantId, trackId, at }) => ({
          path: `tracks[${at}]`,
          message: `${participantId} publishes no ${trackId}`,
        })),
      );
    }
    for (const track of tracks) {
      this.#choose(keyOf(track), { selected: true, layer: track.layer, paused: track.paused ?? false });
    }
  }

  unsubscribe(tracks: readonly TrackReference[]): void {
    for (const track of tracks) {
      const key = keyOf(track);
      // Without autoSubscribe, a track without a choice is not selected, so there is nothing to remember.
      if (this.#host.autoSubscribe) this.#choose(key, { selected: false, layer: undefined, paused: false });
      else if (this.#choices.delete(key)) this.#choiceVersion += 1;
    }
  }

  /** The client's choices by track key, for another gateway. */
  get choices(): [string, Choice][] {
    return [...this.#choices];
  }

  /** Takes over the choices that the client made at another gateway. */
  restore(choices: readonly (readonly [string, Choice])[]): void {
    for (const [key, choice] of choices.slice(0, CHOICES_MAX)) this.#choices.set(key, choice);
    this.#choiceVersion += 1;
  }

  /** Forgets all choices: the client starts over and chooses again. */
  forget(): void {
    this.#choices.clear();
    this.#choiceVersion += 1;
  }

  /**
   * What the client receives now. The same object as before while nothing has changed.
   * @param held keys of the tracks that it receives already
   * @param refused keys of tracks that it cannot receive
   */
  select(held: ReadonlySet<string>, refused: ReadonlySet<string> = NOTHING): Selection {
    const { autoSubscribe, participantId } = this.#host;
    const order = this.#host.order();
    const orderVersion = order.version;
    const choiceVersion = this.#choiceVersion;
    const hasChoices = this.#choices.size > 0;
    const cached = this.#cached;
    if (
      cached?.orderVersion === orderVersion &&
      cached.choiceVersion === choiceVersion &&
      cached.autoSubscribe === autoSubscribe &&
      isSame(cached.refused, refused) &&
      // Without choices, the order of the room decides alone.
      (!hasChoices || isSame(cached.held, held))
    ) {
      return cached.selection;
    }
    const select = () => selectTracks({ order, choices: this.#choices, autoSubscribe, participantId, held, refused });
    const isPlain = !hasChoices && refused.size === 0;
    const isViewer = isPlain && autoSubscribe && this.#host.tracks().of(participantId).length === 0;
    const selection = isViewer ? sharedSelection(order, select) : select();
    // The caller's sets may change.
    const known = { held: new Set(held), refused: new Set(refused) };
    this.#cached = { orderVersion, choiceVersion, autoSubscribe, selection, ...known };
    return selection;
  }

  #choose(key: string, choice: Choice): void {
    if (!this.#choices.has(key) && this.#choices.size >= CHOICES_MAX) {
      const published = this.#host.tracks().entries;
      for (const old of this.#choices.keys()) if (!published.has(old)) this.#choices.delete(old);
      if (this.#choices.size >= CHOICES_MAX) throw new RequestFailure('too_many_tracks', 'Too many tracks are chosen.');
    }
    this.#choices.set(key, choice);
    this.#choiceVersion += 1;
  }

  #isPublished(track: TrackReference): boolean {
    return track.participantId !== this.#host.participantId && this.#host.tracks().entries.has(keyOf(track));
  }
}

/** What clients without tracks and choices receive: the same for all of a room. */
const SHARED = new WeakMap<TrackOrder, { version: number; selection: Selection }>();

function sharedSelection(order: TrackOrder, select: () => Selection): Selection {
  const known = SHARED.get(order);
  if (known?.version === order.version) return known.selection;
  const selection = select();
  SHARED.set(order, { version: order.version, selection });
  return selection;
}

function isSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((key) => b.has(key));
}

function keyOf({ participantId, trackId }: TrackReference): string {
  return trackKey(participantId, trackId);
}
