import { beforeEach, describe, expect, test } from '@jest/globals';
import type * as protocol from '../protocol.generated.js';
import { Playback } from '../playback/playback.js';
import { participant } from '../scripted-gateway.testkit.js';
import { Roster } from './roster.js';

const camera: protocol.Track = { trackId: 'camera', kind: 'video', source: 'camera', muted: false };
const media = {} as MediaStreamTrack;
let events: string[];
let gone: string[];
let roster: Roster;

beforeEach(() => {
  events = [];
  gone = [];
  roster = new Roster({
    emit: (name, event) => {
      if (Array.isArray(event)) {
        events.push(`${name} ${event.map(({ participantId }) => participantId).join(' ')}`);
        return;
      }
      events.push(`${name} ${event.participantId}${'trackId' in event ? `/${event.trackId}` : ''}`);
    },
    onTrackGone: ({ participantId, trackId }, why) => gone.push(`${participantId}/${trackId} ${why}`),
    playback: new Playback({ emit: () => undefined, onPlaying: () => undefined }),
  });
});
const setTracks = (participantId: string, ...tracks: protocol.Track[]) =>
  roster.apply({ kind: 'tracks', participantId, sessionId: `sess_${participantId}`, tracks });
const emitted = () => events.splice(0);
const trackOf = (participantId: string) => roster.participants.get(participantId)!.tracks.get('camera')!;

describe('roster', () => {
  test('shows the role of a participant, and the default one if the gateway names none', () => {
    roster.replace([participant('a', { role: 'host' }), participant('b')]);
    expect([...roster.participants.values()].map(({ role }) => role)).toEqual(['host', 'participant']);
  });

  test('emits only the differences after a reconnection, and keeps the functions of a track that is still published', () => {
    roster.replace([participant('a', { tracks: [camera] }), participant('b'), participant('c', { tracks: [camera] })]);
    const { attach } = trackOf('a');
    emitted();
    roster.replace([
      participant('a', { tracks: [{ ...camera, muted: true }] }),
      participant('c', { connected: false }),
      participant('d'),
    ]);
    expect(emitted()).toEqual([
      'participantLeft b',
      'trackUpdated a/camera',
      'trackUnpublished c/camera',
      'participantUpdated c',
      'participantJoined d',
    ]);
    expect(trackOf('a').muted).toBe(true);
    expect(trackOf('a').attach).toBe(attach);
  });

  test('a participant with a new session leaves with the old one first, whose late end changes nothing', () => {
    roster.replace([participant('a', { tracks: [camera] })]);
    emitted();
    roster.upsert(participant('a', { sessionId: 'sess_new' }));
    roster.remove('a', 'sess_a', 'left');
    expect(emitted()).toEqual(['trackUnpublished a/camera', 'participantLeft a', 'participantJoined a']);
    expect(roster.participants.get('a')?.sessionId).toBe('sess_new');
  });

  test('keeps media that arrives before its track is published', () => {
    roster.receive([{ participantId: 'a', trackId: 'camera', mediaStreamTrack: media, audioLevel: () => 0.5 }]);
    roster.upsert(participant('a'));
    setTracks('a', camera);
    expect(emitted()).toEqual(['participantJoined a', 'trackPublished a/camera', 'trackSubscribed a/camera']);
    expect(roster.participants.get('a')?.tracks.get('camera')?.mediaStreamTrack).toBe(media);
  });

  test('ends media before its track, and a track published again under its id starts without media', () => {
    roster.replace([participant('a', { tracks: [camera] })]);
    roster.receive([{ participantId: 'a', trackId: 'camera', mediaStreamTrack: media, audioLevel: () => 0.5 }]);
    emitted();
    setTracks('a');
    setTracks('a', camera);
    expect(gone).toEqual(['a/camera unpublished']);
    expect(emitted()).toEqual(['trackUnsubscribed a/camera', 'trackUnpublished a/camera', 'trackPublished a/camera']);
  });

  test('hides a participant with its tracks, and has its media at once when it is shown again', () => {
    roster.replace([participant('a', { tracks: [camera] })]);
    roster.receive([{ participantId: 'a', trackId: 'camera', mediaStreamTrack: media, audioLevel: () => 0.5 }]);
    emitted();
    roster.apply({ kind: 'hidden', participantId: 'a', sessionId: 'sess_a' });
    expect(emitted()).toEqual(['trackUnsubscribed a/camera', 'trackUnpublished a/camera', 'participantHidden a']);
    expect(roster.participants.size).toBe(0);
    expect(gone).toEqual(['a/camera hidden']);
    roster.apply({ kind: 'participant', participant: participant('a', { tracks: [camera] }) });
    expect(emitted()).toEqual(['participantJoined a', 'trackPublished a/camera', 'trackSubscribed a/camera']);
  });

  test('knows who speaks, and how loud: as the gateway says, or as it is heard', () => {
    const microphone: protocol.Track = { trackId: 'mic', kind: 'audio', source: 'microphone', muted: false };
    roster.replace([participant('a', { tracks: [microphone] }), participant('b', { tracks: [microphone] })]);
    emitted();
    roster.speak([
      { participantId: 'b', level: 0.2 },
      { participantId: 'hidden', level: 0.1 },
      { participantId: 'a', level: 0.05 },
    ]);
    expect(emitted()).toEqual(['activeSpeakersChanged b a']);
    const levels = () =>
      ['a', 'b'].map((id) => roster.participants.get(id)!).map((one) => [one.isSpeaking, one.audioLevel()]);
    expect(levels()).toEqual([
      [true, 0.05],
      [true, 0.2],
    ]);
    roster.receive([{ participantId: 'b', trackId: 'mic', mediaStreamTrack: media, audioLevel: () => 0.7 }]);
    roster.speak([{ participantId: 'a', level: 0.05 }]);
    expect(levels()).toEqual([
      [true, 0.05],
      [false, 0.7],
    ]);
    roster.remove('a', 'sess_a', 'left');
    expect(roster.activeSpeakers).toEqual([]);
  });

  test('the same state, repeated by the gateway, keeps every object', () => {
    const all = () => [participant('a', { tracks: [camera], metadata: { hand: true } }), participant('b')];
    roster.replace(all());
    roster.receive([{ participantId: 'a', trackId: 'camera', mediaStreamTrack: media, audioLevel: () => 0.5 }]);
    const before = roster.participants;
    emitted();
    roster.replace(all());
    setTracks('a', { ...camera });
    roster.rate([]);
    roster.receive([{ participantId: 'a', trackId: 'camera', mediaStreamTrack: media, audioLevel: () => 0.5 }]);
    expect(roster.participants).toBe(before);
    expect(emitted()).toEqual([]);
  });

  test('a change makes another participant, and leaves the tracks and the other participants as they are', () => {
    roster.replace([participant('a', { tracks: [camera] }), participant('b', { tracks: [camera] })]);
    const before = roster.participants;
    const [a, b] = [before.get('a')!, before.get('b')!];
    roster.speak([{ participantId: 'a', level: 0.5 }]);
    expect([a.isSpeaking, roster.participants.get('a')!.isSpeaking]).toEqual([false, true]);
    expect(roster.participants.get('a')!.tracks).toBe(a.tracks);
    expect(roster.participants.get('b')).toBe(b);
    roster.changeTrack({ participantId: 'b', trackId: 'camera' }, { quality: 'paused' });
    expect([b.tracks.get('camera')!.quality, trackOf('b').quality]).toEqual(['full', 'paused']);
    expect(before.get('b')).toBe(b);
  });

  test('counts the viewers as they come, publish and go', () => {
    roster.replace([participant('a'), participant('b', { metadata: { hand: true } }), participant('c')]);
    const counts = [roster.viewerCount];
    setTracks('a', camera);
    counts.push(roster.viewerCount);
    setTracks('a');
    roster.upsert(participant('b'));
    counts.push(roster.viewerCount);
    roster.replace([]);
    expect([...counts, roster.viewerCount]).toEqual([2, 1, 3, 0]);
  });
});
