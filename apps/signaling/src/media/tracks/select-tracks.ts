import type { StreamReference } from '@callplane/media';
import { PROTOCOL_LIMITS, type Layer, type TrackKind } from '@callplane/protocol';
import { LAYER_HIGHEST } from '../../rooms/layers.js';
import { trackKey, type IndexedTrack } from '../../rooms/tracks.js';

/** What a client has said about a track. */
export interface Choice {
  /** False: the client declined it. */
  selected: boolean;
  layer: Layer | undefined;
  paused: boolean;
}

/** A track that a client is to receive. */
export interface Want {
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
  wants: ReadonlyMap<string, Want>;
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

/**
 * Selects what a client receives. Audio: the first tracks of the room's order among those that it did not decline. Video:
 * chosen tracks before the room's order, held ones before others, so that nothing changes without need.
 */
export function selectTracks(input: SelectionInput): Selection {
  if (input.choices.size === 0) return firstOfOrder(input);
  const { order, participantId, refused } = input;
  const wants = new Map<string, Want>();
  const mayReceive = (track: IndexedTrack) => track.participantId !== participantId && !refused.has(keyOf(track));
  const audio = order.audio.filter((track) => mayReceive(track) && isWanted(input, track));
  // The sort is stable: within a class the order of the room decides.
  audio.sort((a, b) => Number(isPaused(input, a)) - Number(isPaused(input, b)));
  for (const track of audio.slice(0, PROTOCOL_LIMITS.audioSectionsMax)) add(wants, input, track);
  const video = order.video
    .filter((track) => mayReceive(track) && isWanted(input, track))
    .map((track) => ({ track, rank: classOf(input, track) }))
    .sort((a, b) => a.rank - b.rank);
  for (const { track } of video.slice(0, PROTOCOL_LIMITS.videoSectionsMax)) add(wants, input, track);
  const crowdedOut = video
    .slice(PROTOCOL_LIMITS.videoSectionsMax)
    .filter(({ rank }) => rank === CLASS.chosen || rank === CLASS.chosenAndHeld)
    .map(({ track }) => keyOf(track));
  return { wants, crowdedOut };
}

/** The highest layer of each video track that is not paused, by track key. */
export function layersOf({ wants }: Selection): Map<string, number> {
  const shown = [...wants.values()].filter(({ kind, paused }) => kind === 'video' && !paused);
  return new Map(shown.map(({ key, layer }) => [key, layer?.spatial ?? LAYER_HIGHEST]));
}

/** For a client without choices: it looks at no more tracks than needed. */
function firstOfOrder(input: SelectionInput): Selection {
  const wants = new Map<string, Want>();
  const { order, autoSubscribe, participantId, refused } = input;
  const addFirst = (tracks: readonly IndexedTrack[], max: number) => {
    const full = wants.size + max;
    for (const track of tracks) {
      if (wants.size === full) return;
      if (track.participantId !== participantId && !refused.has(keyOf(track))) add(wants, input, track);
    }
  };
  if (autoSubscribe) {
    addFirst(order.audio, PROTOCOL_LIMITS.audioSectionsMax);
    addFirst(order.video, PROTOCOL_LIMITS.videoSectionsMax);
  }
  return { wants, crowdedOut: [] };
}

function isWanted({ choices, autoSubscribe }: SelectionInput, track: IndexedTrack): boolean {
  return choices.get(keyOf(track))?.selected ?? autoSubscribe;
}

function isPaused({ choices }: SelectionInput, track: IndexedTrack): boolean {
  return choices.get(keyOf(track))?.paused === true;
}

function classOf({ choices, held }: SelectionInput, track: IndexedTrack): number {
  const key = keyOf(track);
  const choice = choices.get(key);
  if (choice === undefined) return CLASS.automatic;
  if (choice.paused) return held.has(key) ? CLASS.pausedAndHeld : CLASS.paused;
  return held.has(key) ? CLASS.chosenAndHeld : CLASS.chosen;
}

function add(wants: Map<string, Want>, { choices }: SelectionInput, track: IndexedTrack): void {
  const key = keyOf(track);
  const { kind, feedId, mid } = track;
  const choice = choices.get(key);
  wants.set(key, { key, kind, stream: { feedId, mid }, layer: choice?.layer, paused: choice?.paused ?? false });
}

function keyOf({ participantId, trackId }: IndexedTrack): string {
  return trackKey(participantId, trackId);
}
