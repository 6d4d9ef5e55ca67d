import { beforeEach, describe, expect, test } from '@jest/globals';
import type * as protocol from '../protocol.generated.js';
import { participant } from '../scripted-gateway.testkit.js';
import { Roster } from './roster.js';

const camera: protocol.Track = { trackId: 'camera', kind: 'video', source: 'camera', muted: false };
const media = {} as MediaStreamTrack;
let events: string[];
let roster: Roster;

beforeEach(() => {
  events = [];
  roster = new Roster((name, event) => {
    const [id, track] =
      'participant' in event ? [event.participant.participantId, `/${event.trackId}`] : [event.participantId, ''];
    events.push(`${name} ${id}${track}`);
  });
});
const told = () => events.splice(0);

describe('roster', () => {
  test('tells who is there at first with what they publish', () => {
    roster.replace([participant('a', { tracks: [camera] }), participant('b')]);
    expect(told()).toEqual(['participantJoined a', 'trackPublished a/camera', 'participantJoined b']);
    expect([...roster.participants.keys()]).toEqual(['a', 'b']);
  });

  test('after an absence it tells the difference, and what is the same stays the same object', () => {
    roster.replace([participant('a', { tracks: [camera] }), participant('b'), participant('c', { tracks: [camera] })]);
    const a = roster.participants.get('a');
    told();
    roster.replace([
      participant('a', { tracks: [{ ...camera, muted: true }] }),
      participant('c', { connected: false }),
      participant('d'),
    ]);
    expect(told()).toEqual([
      'participantLeft b',
      'trackUpdated a/camera',
      'trackUnpublished c/camera',
      'participantUpdated c',
      'participantJoined d',
    ]);
    expect(roster.participants.get('a')).toBe(a);
    expect(a?.tracks.get('camera')?.muted).toBe(true);
  });

  test('a participant that comes with a new session leaves with the old one first, whose late end changes nothing', () => {
    roster.replace([participant('a', { tracks: [camera] })]);
    told();
    roster.upsert(participant('a', { sessionId: 'sess_new' }));
    roster.left('a', 'sess_a');
    expect(told()).toEqual(['trackUnpublished a/camera', 'participantLeft a', 'participantJoined a']);
    expect(roster.participants.get('a')?.sessionId).toBe('sess_new');
  });

  test('media that comes before the news of its track waits for it', () => {
    roster.receive([{ participantId: 'a', trackId: 'camera', mediaStreamTrack: media }]);
    roster.upsert(participant('a'));
    roster.published('a', camera);
    expect(told()).toEqual(['participantJoined a', 'trackPublished a/camera', 'trackSubscribed a/camera']);
    expect(roster.participants.get('a')?.tracks.get('camera')?.mediaStreamTrack).toBe(media);
  });

  test('media ends before its track does, and a track published again under its id has none at first', () => {
    roster.replace([participant('a', { tracks: [camera] })]);
    roster.receive([{ participantId: 'a', trackId: 'camera', mediaStreamTrack: media }]);
    told();
    roster.unpublished('a', 'camera');
    roster.published('a', camera);
    expect(told()).toEqual(['trackUnsubscribed a/camera', 'trackUnpublished a/camera', 'trackPublished a/camera']);
  });

  test('offers that change nothing for a track say nothing about it', () => {
    roster.replace([participant('a', { tracks: [camera] })]);
    const received = [{ participantId: 'a', trackId: 'camera', mediaStreamTrack: media }];
    roster.receive(received);
    told();
    roster.receive([...received]);
    expect(told()).toEqual([]);
  });

  test('news of somebody who is not there is nothing', () => {
    roster.published('ghost', camera);
    roster.unpublished('ghost', 'camera');
    roster.left('ghost', 'sess_ghost');
    expect(told()).toEqual([]);
  });
});
