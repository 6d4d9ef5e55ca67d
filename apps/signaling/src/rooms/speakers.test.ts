import { describe, expect, test } from '@jest/globals';
import { Speakers, SPEAKERS_REPEATED_MS } from './speakers.js';
import { TrackOrder, type IndexedTrack, type TrackIndex } from './tracks.js';

const always = () => true;

describe('speakers', () => {
  test('come from this gateway and the others, until they stop', () => {
    const speakers = new Speakers();
    speakers.note('ada/mic', 30, 0);
    speakers.receive('other', [['eve/mic', 20]], 0);
    expect(speakers.talking).toEqual([
      ['ada/mic', 30],
      ['eve/mic', 20],
    ]);
    expect(speakers.own).toEqual([['ada/mic', 30]]);
    speakers.note('ada/mic', null, 1);
    speakers.receive('other', [], 2);
    expect([speakers.talking, speakers.lastMs('ada/mic'), speakers.lastMs('eve/mic')]).toEqual([[], 1, 2]);
    expect(speakers.lastMs('nobody/mic')).toBe(-Infinity);
  });

  test('of a gateway that reports no longer are forgotten, and speakers whose tracks are gone', () => {
    const speakers = new Speakers();
    speakers.receive('dead', [['eve/mic', 20]], 0);
    speakers.note('ada/mic', 30, 0);
    speakers.expire(always, 2 * SPEAKERS_REPEATED_MS);
    expect(speakers.talking).toHaveLength(2);
    speakers.expire((key) => key !== 'ada/mic', 3 * SPEAKERS_REPEATED_MS + 1);
    expect([speakers.talking, speakers.lastMs('ada/mic')]).toEqual([[], -Infinity]);
  });
});

describe('the order of tracks', () => {
  function room(audioCount: number, videoCount: number) {
    const entries = new Map<string, IndexedTrack>();
    const add = (participantId: string, trackId: string, source: IndexedTrack['source']) => {
      const kind = source === 'microphone' || source === 'screen_audio' ? 'audio' : 'video';
      entries.set(`${participantId}/${trackId}`, {
        participantId,
        trackId,
        kind,
        source,
        feedId: participantId,
        mid: '0',
      });
    };
    for (let at = 0; at < audioCount; at += 1) add(`p${at}`, 'mic', 'microphone');
    for (let at = 0; at < videoCount; at += 1) add(`p${at}`, 'cam', 'camera');
    if (videoCount > 0) add('late', 'screen', 'screen');
    const muted = new Set<string>();
    const index = {
      version: 1,
      muteVersion: 0,
      entries,
      isMuted: ({ participantId, trackId }: IndexedTrack) => muted.has(`${participantId}/${trackId}`),
    };
    const speakers = new Speakers();
    const order = new TrackOrder(index as unknown as TrackIndex, speakers);
    const first = (count: number) => order.audio.slice(0, count).map(({ participantId }) => participantId);
    const firstVideo = (count: number) =>
      order.video.slice(0, count).map((one) => `${one.participantId}/${one.trackId}`);
    return { index, muted, speakers, order, first, firstVideo };
  }
  const people = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `p${from + at}`);

  test('is by session, and does not change with speakers, while all tracks can be received', () => {
    const { order, speakers, first } = room(8, 24);
    const { version } = order;
    speakers.note('p7/mic', 20, 0);
    expect([order.version, first(8)]).toEqual([version, people(0, 8)]);
  });

  test('puts current speakers first, then the latest ones', () => {
    const { speakers, first } = room(20, 0);
    speakers.note('p15/mic', 40, 1);
    speakers.note('p12/mic', 20, 2);
    expect(first(4)).toEqual(['p12', 'p15', 'p0', 'p1']);
    speakers.note('p12/mic', null, 3);
    expect(first(4)).toEqual(['p15', 'p12', 'p0', 'p1']);
    speakers.note('p15/mic', null, 4);
    expect(first(4)).toEqual(['p15', 'p12', 'p0', 'p1']);
  });

  test('keeps the heard ones if more talk than can be heard, unless another is louder by 6 dB', () => {
    const { speakers, first } = room(20, 0);
    for (const id of people(0, 8)) speakers.note(`${id}/mic`, 30, 0);
    expect(new Set(first(8))).toEqual(new Set(people(0, 8)));
    speakers.note('p10/mic', 26, 1);
    expect(new Set(first(8))).toEqual(new Set(people(0, 8)));
    speakers.note('p11/mic', 20, 2);
    expect(first(8)).toContain('p11');
    expect(first(8)).not.toContain('p10');
  });

  test('has screens first, then cameras of speakers, and muted cameras last', () => {
    const { index, muted, speakers, firstVideo } = room(40, 40);
    muted.add('p0/cam');
    index.muteVersion += 1;
    speakers.note('p30/mic', 30, 5);
    speakers.note('p31/mic', 30, 6);
    speakers.note('p31/mic', null, 7);
    expect(firstVideo(5)).toEqual(['late/screen', 'p30/cam', 'p31/cam', 'p1/cam', 'p2/cam']);
    expect(firstVideo(41).at(-1)).toBe('p0/cam');
  });

  test('treats a muted microphone as silent', () => {
    const { index, muted, speakers, first } = room(20, 0);
    speakers.note('p9/mic', 10, 1);
    expect(first(1)).toEqual(['p9']);
    muted.add('p9/mic');
    index.muteVersion += 1;
    speakers.note('p10/mic', 40, 2);
    expect(first(2)).toEqual(['p10', 'p9']);
  });
});
