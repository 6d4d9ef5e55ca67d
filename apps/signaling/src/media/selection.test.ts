import { describe, expect, test } from '@jest/globals';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import fc from 'fast-check';
import { Speakers } from '../rooms/speakers.js';
import type { IndexedTrack, TrackIndex } from '../rooms/tracks.js';
import { TrackOrder } from '../rooms/tracks.js';
import type { Choice, MediaOwner } from './media-writes.js';
import { selectTracks, TrackSelector, type SelectionInput } from './selection.js';

const track = (participantId: string, kind: 'audio' | 'video' = 'video'): IndexedTrack => ({
  participantId,
  trackId: kind,
  kind,
  source: kind === 'audio' ? 'microphone' : 'camera',
  feedId: `feed-${participantId}`,
  mid: kind === 'audio' ? '0' : '1',
});
const people = (count: number) => Array.from({ length: count }, (_, at) => `p${at}`);
const room = (count: number): SelectionInput => ({
  order: {
    audio: people(count).map((id) => track(id, 'audio')),
    video: people(count).map((id) => track(id, 'video')),
  },
  choices: new Map(),
  autoSubscribe: true,
  participantId: 'me',
  held: new Set(),
  refused: new Set(),
});
const chosen = (paused = false): Choice => ({ selected: true, layer: undefined, paused });
const keysOf = (input: SelectionInput, kind: 'audio' | 'video' = 'video') =>
  [...selectTracks(input).tracks.values()].filter((track) => track.kind === kind).map(({ key }) => key);
const video = (...numbers: number[]) => numbers.map((at) => `p${at}/video`);
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

describe('the selection of tracks', () => {
  test('has all tracks of others in a small room', () => {
    const input = { ...room(3), participantId: 'p1' };
    expect(keysOf(input)).toEqual(video(0, 2));
    expect(keysOf(input, 'audio')).toEqual(['p0/audio', 'p2/audio']);
  });

  test('has the first 25 video and 8 audio tracks of a large one, by the order of the room', () => {
    expect(keysOf(room(100))).toEqual(video(...range(0, 25)));
    expect(keysOf(room(100), 'audio')).toEqual(range(0, 8).map((at) => `p${at}/audio`));
  });

  test('has nothing without autoSubscribe and choices', () => {
    expect(selectTracks({ ...room(3), autoSubscribe: false }).tracks.size).toBe(0);
  });

  test('prefers chosen tracks, and keeps paused ones that are held over tracks without a choice', () => {
    const choices = new Map([
      ...video(...range(40, 60)).map((key) => [key, chosen()] as const),
      ...video(...range(60, 70)).map((key) => [key, chosen(true)] as const),
    ]);
    const held = new Set(video(60, 61, 62));
    const selected = keysOf({ ...room(100), choices, held });
    expect(new Set(selected)).toEqual(new Set([...video(...range(40, 63)), ...video(0, 1)]));
  });

  test('keeps held tracks and names the others if more than 25 are chosen', () => {
    const choices = new Map(video(...range(0, 30)).map((key) => [key, chosen()] as const));
    const held = new Set(video(...range(5, 30)));
    const { tracks, crowdedOut } = selectTracks({ ...room(100), choices, held });
    expect(new Set([...tracks.keys()].filter((key) => key.endsWith('video')))).toEqual(held);
    expect(crowdedOut).toEqual(video(...range(0, 5)));
  });

  test('has neither declined nor refused tracks', () => {
    const choices = new Map([['p0/video', { selected: false, layer: undefined, paused: false }]]);
    expect(keysOf({ ...room(3), choices, refused: new Set(['p1/video']) })).toEqual(video(2));
  });

  test('never exceeds the bounds, and never leaves a place free that a wanted track could take', () => {
    const choice = fc.record({
      selected: fc.boolean(),
      layer: fc.constant(undefined),
      paused: fc.boolean(),
    });
    const key = fc.nat(59).map((at) => `p${at}/video`);
    fc.assert(
      fc.property(
        fc.nat(60),
        fc.boolean(),
        fc.dictionary(key, choice),
        fc.uniqueArray(key),
        (count, autoSubscribe, choices, held) => {
          const input = {
            ...room(count),
            autoSubscribe,
            choices: new Map(Object.entries(choices)),
            held: new Set(held),
          };
          const wanted = input.order.video.filter(
            ({ participantId }) => choices[`${participantId}/video`]?.selected ?? autoSubscribe,
          );
          const selected = keysOf(input);
          expect(selected).toHaveLength(Math.min(wanted.length, PROTOCOL_LIMITS.videoSectionsMax));
          expect(new Set(selected).size).toBe(selected.length);
          // Held ones that are selected now stay selected if nothing else changes.
          const again = keysOf({ ...input, held: new Set(selected) });
          expect(new Set(again)).toEqual(new Set(selected));
        },
      ),
    );
  });
});

const NOTHING: ReadonlySet<string> = new Set();

function roomOf(...participantIds: string[]) {
  const entries = new Map<string, IndexedTrack>();
  for (const participantId of participantIds) {
    const at = { feedId: `feed-${participantId}`, mid: '0' };
    entries.set(`${participantId}/cam`, { participantId, trackId: 'cam', kind: 'video', source: 'camera', ...at });
  }
  const index = {
    version: 1,
    muteVersion: 0,
    entries,
    isMuted: () => false,
    of: (id: string) => [...entries.values()].filter(({ participantId }) => participantId === id),
  };
  const tracks = index as unknown as TrackIndex;
  const order = new TrackOrder(tracks, new Speakers());
  const room = { tracks, order, layers: { note: () => undefined } } as unknown as MediaOwner['room'];
  const member = (participantId: string, autoSubscribe = true) =>
    new TrackSelector({ participantId, autoSubscribe, isGone: false, sessionId: participantId, room });
  return { index, member };
}
const camera = (participantId: string) => ({ participantId, trackId: 'cam' });

describe('a track selector', () => {
  test('selects one object for all members without tracks and choices, until the order changes', () => {
    const { index, member } = roomOf('ada', 'bob');
    const [eve, dan, ada] = [member('eve'), member('dan'), member('ada')];
    const before = eve.select(NOTHING);
    expect(dan.select(NOTHING)).toBe(before);
    expect([...before.tracks.keys()]).toEqual(['ada/cam', 'bob/cam']);
    expect([...ada.select(NOTHING).tracks.keys()]).toEqual(['bob/cam']);
    expect(ada.select(NOTHING)).toBe(ada.select(NOTHING));
    index.entries.delete('bob/cam');
    index.version += 1;
    expect(eve.select(NOTHING)).not.toBe(before);
    expect(dan.select(NOTHING)).toBe(eve.select(NOTHING));
  });

  test('refuses a choice that names a track which is not published, and chooses nothing of it', () => {
    const { member } = roomOf('ada');
    const eve = member('eve', false);
    expect(() => eve.subscribe([camera('ada'), camera('zoe'), camera('eve')])).toThrow(
      expect.objectContaining({
        code: 'not_found',
        details: [
          { path: 'tracks[1]', message: 'zoe publishes no cam' },
          { path: 'tracks[2]', message: 'eve publishes no cam' },
        ],
      }),
    );
    expect([eve.hasSelection, eve.select(NOTHING).tracks.size]).toEqual([false, 0]);
  });
});
