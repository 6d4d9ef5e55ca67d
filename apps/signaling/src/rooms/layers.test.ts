import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { LayerWants, RoomLayers, SentLayers, type ReportedLayers } from './layers.js';
import type { RoomMember } from './member.js';
import type { RoomState } from './state.js';
import type { IndexedTrack, TrackIndex } from './tracks.js';

const SECONDS = 1000;
const camera = (participantId: string, feedId = 'feed'): IndexedTrack => ({
  participantId,
  trackId: 'camera',
  kind: 'video',
  source: 'camera',
  nodeId: 'm1',
  feedId,
  mid: '1',
});

describe('the layers that are wanted of a track', () => {
  test('are the highest of all sessions and gateways, and none without a session that receives it', () => {
    const wants = new LayerWants();
    expect(wants.wanted('ada/camera', [])).toBeNull();
    wants.note('s1', new Map([['ada/camera', 0]]));
    wants.note('s2', new Map([['ada/camera', 1]]));
    expect(wants.wanted('ada/camera', [])).toBe(1);
    wants.receive('other', [['ada/camera', 2]], 0);
    expect(wants.wanted('ada/camera', ['other'])).toBe(2);
    wants.receive('other', [], 0);
    wants.note('s2', new Map());
    expect(wants.wanted('ada/camera', ['other'])).toBe(0);
    wants.forget('s1');
    expect(wants.wanted('ada/camera', ['other'])).toBeNull();
  });

  test('are all of them while a gateway does not report, reports too much, or reports no longer', () => {
    const wants = new LayerWants();
    expect(wants.wanted('ada/camera', ['silent'])).toBe(2);
    wants.receive('other', [], 0);
    wants.expire(15 * SECONDS);
    expect(wants.wanted('ada/camera', ['other'])).toBeNull();
    wants.expire(17 * SECONDS);
    expect(wants.wanted('ada/camera', ['other'])).toBe(2);
    wants.receive('other', null, 20 * SECONDS);
    expect(wants.wanted('ada/camera', ['other'])).toBe(2);
    const many = Array.from({ length: 2001 }, (_, at): [string, number] => [`p${at}/camera`, 0]);
    wants.receive('other', many, 20 * SECONDS);
    expect(wants.wanted('ada/camera', ['other'])).toBe(2);
  });

  test('are reported for tracks of other gateways only, and as everything beyond 2000 tracks', () => {
    const wants = new LayerWants();
    wants.note('s1', new Map([['ada/camera', 1], ['eve/camera', 2]])); // oxfmt-ignore
    expect(wants.report((key) => key.startsWith('eve'))).toEqual([['eve/camera', 2]]);
    for (let at = 0; at <= 2000; at += 1) wants.note(`t${at}`, new Map([[`p${at}/camera`, 0]]));
    expect(wants.report(() => true)).toBeNull();
  });
});

describe('a publisher', () => {
  const settle = (sent: SentLayers, wanted: number | null, atSeconds: number, feedId?: string) =>
    sent.settle([camera('ada', feedId)], () => wanted, atSeconds * SECONDS)?.[0]?.maxSpatial;

  test('begins with all layers, stops those above 5 s after they were wanted last, and begins again at once', () => {
    const sent = new SentLayers();
    expect(settle(sent, null, 0)).toBe(2);
    expect(settle(sent, null, 4.9)).toBeUndefined();
    expect(settle(sent, null, 5)).toBeNull();
    expect(settle(sent, 0, 5.1)).toBe(0);
    expect(settle(sent, 1, 5.2)).toBe(1);
    expect(settle(sent, 0, 6)).toBeUndefined();
    // Wanted again meanwhile: the 5 s begin anew.
    expect(settle(sent, 1, 10)).toBeUndefined();
    expect(settle(sent, 0, 12)).toBeUndefined();
    expect(settle(sent, 0, 16)).toBeUndefined();
    expect(settle(sent, 0, 17)).toBe(0);
  });

  test('sends each layer for 5 s after it was wanted last, also if less and less is wanted', () => {
    const sent = new SentLayers();
    settle(sent, 2, 0);
    expect(settle(sent, 1, 10)).toBeUndefined();
    expect(settle(sent, null, 14)).toBeUndefined();
    expect(settle(sent, null, 15)).toBe(1);
    expect(settle(sent, null, 18.9)).toBeUndefined();
    expect(settle(sent, null, 19)).toBeNull();
  });

  test('is told again what it sends after another connection, and begins anew with another feed', () => {
    const sent = new SentLayers();
    settle(sent, 0, 0);
    expect(settle(sent, 0, 5)).toBe(0);
    sent.repeat();
    expect(settle(sent, 0, 6)).toBe(0);
    expect(settle(sent, 0, 7)).toBeUndefined();
    expect(settle(sent, 0, 8, 'another')).toBe(2);
    expect(settle(sent, 0, 13, 'another')).toBe(0);
    expect(sent.settle([], () => null, 0)).toBeNull();
  });
});

describe('a room with two gateways', () => {
  let reports: ReportedLayers[];
  let told: Record<string, unknown[]>;
  let muted: Set<string>;
  let layers: RoomLayers;
  let others: Set<string>;

  const member = (name: string) =>
    ({
      sessionId: `s-${name}`,
      participantId: name,
      sendText: (text: string) => (told[name] ??= []).push(JSON.parse(text).tracks[0].maxSpatial),
    }) as unknown as RoomMember;
  /** As the room's timer does. */
  const pass = async (seconds: number) => {
    for (let at = 0; at < seconds; at += 1) {
      layers.eachSecond();
      await jest.advanceTimersByTimeAsync(SECONDS);
    }
  };

  beforeEach(() => {
    jest.useFakeTimers();
    [reports, told, muted] = [[], {}, new Set()];
    others = new Set();
    const tracks = [camera('ada'), camera('eve')];
    const index = {
      hasVideo: true,
      publishers: { all: ['s-ada', 's-eve'] },
      of: (participantId: string) => tracks.filter((track) => track.participantId === participantId),
      isMuted: ({ participantId }: IndexedTrack) => muted.has(participantId),
    } as unknown as TrackIndex;
    const room = {
      get isElsewhere() {
        return others.size > 0;
      },
      get otherInstances() {
        return others;
      },
      isHeldElsewhere: (participantId: string) => participantId === 'eve',
    };
    layers = new RoomLayers(index, room as unknown as RoomState, (_, report) => reports.push(report as ReportedLayers));
    layers.add(member('ada'));
  });
  afterEach(() => {
    layers.close();
    jest.useRealTimers();
  });

  test('tells its own publishers what is received here and there', async () => {
    others.add('there');
    layers.receive('there', []);
    await pass(7);
    expect(told).toEqual({ ada: [2, null] });
    layers.note('s-viewer', new Map([['ada/camera', 0], ['eve/camera', 1]])); // oxfmt-ignore
    layers.receive('there', [['ada/camera', 1]]);
    await jest.advanceTimersByTimeAsync(150);
    expect(told['ada']).toEqual([2, null, 1]);
    expect(reports.at(-1)).toEqual([['eve/camera', 1]]);
    muted.add('ada');
    layers.onTracks();
    await pass(6);
    expect(told['ada']).toEqual([2, null, 1, null]);
    muted.clear();
    layers.onTracks();
    await jest.advanceTimersByTimeAsync(150);
    expect(told['ada']).toEqual([2, null, 1, null, 1]);
    layers.remove(member('viewer'));
    // The other gateway reports no longer, so its members may want everything, until they are gone.
    await pass(20);
    expect(told['ada']!.at(-1)).toBe(2);
    others.delete('there');
    await pass(7);
    expect(told['ada']!.at(-1)).toBeNull();
  });

  test('repeats its report every 5 s, and a publisher that comes back is told again', async () => {
    others.add('there');
    await pass(16);
    expect(reports).toEqual([[], [], [], []]);
    layers.add(member('ada'));
    await jest.advanceTimersByTimeAsync(150);
    expect(told['ada']).toEqual([2, 2]);
  });

  test('sends a publisher few messages, whatever its receivers do', async () => {
    for (let at = 0; at < 200; at += 1) {
      layers.note('s-viewer', new Map(at % 2 === 0 ? [['ada/camera', at % 3]] : []));
      await jest.advanceTimersByTimeAsync(20);
    }
    expect(told['ada']).toEqual([2]);
  });
});
