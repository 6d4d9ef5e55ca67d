import { describe, expect, test } from '@jest/globals';
import { Speakers } from '../../rooms/speakers.js';
import type { IndexedTrack, TrackIndex } from '../../rooms/tracks.js';
import { TrackOrder } from '../../rooms/tracks.js';
import { WantedTracks } from './wanted-tracks.js';

const NOTHING: ReadonlySet<string> = new Set();

function room(...participantIds: string[]) {
  const entries = new Map<string, IndexedTrack>();
  for (const participantId of participantIds) {
    const at = { nodeId: 'm1', feedId: `feed-${participantId}`, mid: '0' };
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
  const member = (participantId: string, autoSubscribe = true) =>
    new WantedTracks({ participantId, autoSubscribe, tracks: () => tracks, order: () => order });
  return { index, member };
}
const track = (participantId: string) => ({ participantId, trackId: 'cam' });

describe('wanted tracks', () => {
  test('are one object for all members without tracks and choices, until the order changes', () => {
    const { index, member } = room('ada', 'bob');
    const [eve, dan, ada] = [member('eve'), member('dan'), member('ada')];
    const before = eve.select(NOTHING);
    expect(dan.select(NOTHING)).toBe(before);
    expect([...before.wants.keys()]).toEqual(['ada/cam', 'bob/cam']);
    expect([...ada.select(NOTHING).wants.keys()]).toEqual(['bob/cam']);
    expect(ada.select(NOTHING)).toBe(ada.select(NOTHING));
    index.entries.delete('bob/cam');
    index.version += 1;
    expect(eve.select(NOTHING)).not.toBe(before);
    expect(dan.select(NOTHING)).toBe(eve.select(NOTHING));
  });

  test('of a client with choices are one object until a choice, the order, or what it receives or refuses changes', () => {
    const { index, member } = room('ada', 'bob');
    const eve = member('eve');
    eve.subscribe([{ ...track('bob'), paused: true }]);
    const held = new Set(['bob/cam']);
    const first = eve.select(held);
    expect(eve.select(new Set(held))).toBe(first);
    expect(eve.select(held, new Set(['ada/cam'])).wants.has('ada/cam')).toBe(false);
    const second = eve.select(held);
    held.add('ada/cam');
    const third = eve.select(held);
    expect(third).not.toBe(second);
    eve.subscribe([track('bob')]);
    const fourth = eve.select(held);
    expect([third, fourth].map(({ wants }) => wants.get('bob/cam')?.paused)).toEqual([true, false]);
    eve.unsubscribe([track('bob')]);
    expect([...eve.select(held).wants.keys()]).toEqual(['ada/cam']);
    index.entries.delete('ada/cam');
    index.version += 1;
    expect(eve.select(held).wants.size).toBe(0);
  });

  test('refuse a choice that names a track which is not published, and choose nothing of it', () => {
    const { member } = room('ada');
    const eve = member('eve', false);
    expect(() => eve.subscribe([track('ada'), track('zoe'), track('eve')])).toThrow(
      expect.objectContaining({
        code: 'not_found',
        details: [
          { path: 'tracks[1]', message: 'zoe publishes no cam' },
          { path: 'tracks[2]', message: 'eve publishes no cam' },
        ],
      }),
    );
    expect([eve.hasWants, eve.select(NOTHING).wants.size]).toEqual([false, 0]);
  });

  test('follow the choices of their client', () => {
    const { member } = room('ada', 'bob');
    const eve = member('eve', false);
    eve.subscribe([{ ...track('ada'), layer: { spatial: 1 }, paused: true }]);
    expect([...eve.select(NOTHING).wants.values()]).toMatchObject([
      { key: 'ada/cam', layer: { spatial: 1 }, paused: true },
    ]);
    eve.unsubscribe([track('ada')]);
    expect(eve.select(NOTHING).wants.size).toBe(0);
    const dan = member('dan');
    dan.unsubscribe([track('ada')]);
    expect([...dan.select(NOTHING).wants.keys()]).toEqual(['bob/cam']);
    dan.forget();
    expect(dan.select(NOTHING).wants.size).toBe(2);
  });
});
