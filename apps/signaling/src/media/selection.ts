import type { StreamReference } from '@callplane/media';
import {
  PROTOCOL_LIMITS,
  type ClientMessages,
  type Layer,
  type TrackKind,
  type TrackReference,
} from '@callplane/protocol';
import { RequestFailure } from '../clients/client.js';
import { LAYER_HIGHEST } from '../rooms/layers.js';
import { trackKey, type IndexedTrack, type TrackOrder } from '../rooms/tracks.js';
import type { Choice, MediaOwner } from './media-writes.js';

/** A track that a client is to receive. */
export interface SelectedTrack {
  /** {@link trackKey} of the track. */
  key: string;
  kind: TrackKind;
  stream: StreamReference;
  layer: Layer | undefined;
  /** The track has a media section, but nothing is sent. */
  paused: boolean;
}

export interface Selection {
  /** By key. At most as many of a kind as there are media sections for it. */
  tracks: ReadonlyMap<string, SelectedTrack>;
  /** Keys of the tracks that the client chose, and that find no media section. */
  crowdedOut: readonly string[];
}

export interface SelectionInput {
  order: { audio: readonly IndexedTrack[]; video: readonly IndexedTrack[] };
  choices: ReadonlyMap<string, Choice>;
  autoSubscribe: boolean;
  /** The client's own participant, whose tracks it does not receive. */
  participantId: string;
  held: ReadonlySet<string>;
  refused: ReadonlySet<string>;
}

/** Classes of video tracks: a track of a lower class gets a media section first. */
const CLASS = { chosenAndHeld: 0, chosen: 1, pausedAndHeld: 2, automatic: 3, paused: 4 } as const;

/** Maximum number of a client's choices. It leaves space for outdated ones, e.g. for participants that left. */
const CHOICES_MAX = 2 * PROTOCOL_LIMITS.subscriptionsMax;
const NOTHING: ReadonlySet<string> = new Set();

type Receiver = Pick<MediaOwner, 'autoSubscribe' | 'isGone' | 'participantId' | 'room' | 'sessionId'>;

/** Selects the others' tracks for a client: its choices by `subscribe` and `unsubscribe`, else `autoSubscribe`. */
export class TrackSelector {
  readonly #choices = new Map<string, Choice>();
  /** Grows when the choices have changed. */
  #choiceVersion = 0;
  /** The latest selection, and its inputs as a text. */
  #cached: { basis: string; selection: Selection } | null = null;

  constructor(private readonly session: Receiver) {}

  /** Whether a change of the room's tracks can matter. */
  get hasSelection(): boolean {
    return this.session.autoSubscribe || this.#choices.size > 0;
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
      this.#choose(trackKey(track), { selected: true, layer: track.layer, paused: track.paused ?? false });
    }
  }

  unsubscribe(tracks: readonly TrackReference[]): void {
    for (const track of tracks) {
      const key = trackKey(track);
      // Without autoSubscribe, a track without a choice is not selected, so there is nothing to remember.
      if (this.session.autoSubscribe) this.#choose(key, { selected: false, layer: undefined, paused: false });
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
   * The tracks that the client receives now. The same object as before while nothing has changed.
   * @param held keys of the tracks that it receives already
   * @param refused keys of tracks that it cannot receive
   */
  select(held: ReadonlySet<string> = NOTHING, refused: ReadonlySet<string> = NOTHING): Selection {
    const { autoSubscribe, participantId, sessionId, isGone, room } = this.session;
    const { order } = room;
    const hasChoices = this.#choices.size > 0;
    const cached = this.#cached;
    // Without choices, the tracks that the client receives already do not matter.
    const basis = [
      order.version,
      this.#choiceVersion,
      autoSubscribe,
      ...refused,
      '',
      ...(hasChoices ? held : []),
    ].join();
    if (cached?.basis === basis) return cached.selection;
    const select = () => selectTracks({ order, choices: this.#choices, autoSubscribe, participantId, held, refused });
    const isPlain = !hasChoices && refused.size === 0;
    const isViewer = isPlain && autoSubscribe && room.tracks.of(participantId).length === 0;
    const selection = isViewer ? sharedSelection(order, select) : select();
    // Reported before the media sections carry it, so that the publishers send by then.
    if (selection !== cached?.selection && !isGone) room.layers.note(sessionId, layersOf(selection));
    this.#cached = { basis, selection };
    return selection;
  }

  #choose(key: string, choice: Choice): void {
    if (!this.#choices.has(key) && this.#choices.size >= CHOICES_MAX) {
      const published = this.session.room.tracks.entries;
      for (const old of this.#choices.keys()) if (!published.has(old)) this.#choices.delete(old);
      if (this.#choices.size >= CHOICES_MAX) throw new RequestFailure('too_many_tracks', 'Too many tracks are chosen.');
    }
    this.#choices.set(key, choice);
    this.#choiceVersion += 1;
  }

  #isPublished(track: TrackReference): boolean {
    return track.participantId !== this.session.participantId && this.session.room.tracks.entries.has(trackKey(track));
  }
}

/** The selection of clients without tracks and choices: the same for all of a room. */
const SHARED = new WeakMap<TrackOrder, { version: number; selection: Selection }>();

function sharedSelection(order: TrackOrder, select: () => Selection): Selection {
  const known = SHARED.get(order);
  if (known?.version === order.version) return known.selection;
  const selection = select();
  SHARED.set(order, { version: order.version, selection });
  return selection;
}

/**
 * Selects the tracks that a client receives. Audio: the first tracks of the room's order that it did not decline.
 * Video: chosen tracks before the room's order, held ones before others, so that nothing changes without need.
 */
export function selectTracks(input: SelectionInput): Selection {
  const { order, choices, participantId, refused } = input;
  const tracks = new Map<string, SelectedTrack>();
  const mayReceive = (track: IndexedTrack) =>
    track.participantId !== participantId && !refused.has(trackKey(track)) && isChosen(input, track);
  // Without choices the order decides, and the tracks behind the last one that fits do not matter.
  const audio = first(order.audio, mayReceive, choices.size === 0 ? PROTOCOL_LIMITS.audioSectionsMax : Infinity);
  // The sort is stable: within a class the order of the room decides.
  audio.sort((a, b) => Number(isPaused(input, a)) - Number(isPaused(input, b)));
  for (const track of audio.slice(0, PROTOCOL_LIMITS.audioSectionsMax)) add(tracks, input, track);
  const video = first(order.video, mayReceive, choices.size === 0 ? PROTOCOL_LIMITS.videoSectionsMax : Infinity)
    .map((track) => ({ track, rank: classOf(input, track) }))
    .sort((a, b) => a.rank - b.rank);
  for (const { track } of video.slice(0, PROTOCOL_LIMITS.videoSectionsMax)) add(tracks, input, track);
  const crowdedOut = video
    .slice(PROTOCOL_LIMITS.videoSectionsMax)
    .filter(({ rank }) => rank === CLASS.chosen || rank === CLASS.chosenAndHeld)
    .map(({ track }) => trackKey(track));
  return { tracks, crowdedOut };
}

/** The highest layer of each video track that is not paused, by track key. */
function layersOf({ tracks }: Selection): Map<string, number> {
  const shown = [...tracks.values()].filter(({ kind, paused }) => kind === 'video' && !paused);
  return new Map(shown.map(({ key, layer }) => [key, layer?.spatial ?? LAYER_HIGHEST]));
}

function first<Item>(items: readonly Item[], fits: (item: Item) => boolean, max: number): Item[] {
  const found: Item[] = [];
  for (const item of items) {
    if (found.length === max) break;
    if (fits(item)) found.push(item);
  }
  return found;
}

function isChosen({ choices, autoSubscribe }: SelectionInput, track: IndexedTrack): boolean {
  return choices.get(trackKey(track))?.selected ?? autoSubscribe;
}

function isPaused({ choices }: SelectionInput, track: IndexedTrack): boolean {
  return choices.get(trackKey(track))?.paused === true;
}

function classOf({ choices, held }: SelectionInput, track: IndexedTrack): number {
  const key = trackKey(track);
  const choice = choices.get(key);
  if (choice === undefined) return CLASS.automatic;
  if (choice.paused) return held.has(key) ? CLASS.pausedAndHeld : CLASS.paused;
  return held.has(key) ? CLASS.chosenAndHeld : CLASS.chosen;
}

function add(tracks: Map<string, SelectedTrack>, { choices }: SelectionInput, track: IndexedTrack): void {
  const key = trackKey(track);
  const { kind, feedId, mid } = track;
  const choice = choices.get(key);
  tracks.set(key, { key, kind, stream: { feedId, mid }, layer: choice?.layer, paused: choice?.paused ?? false });
}
