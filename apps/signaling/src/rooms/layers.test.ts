import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { LayerDemand, RoomLayers, SentLayers, type ReportedLayers } from './layers.js';
import type { RoomMember } from './changes.js';
import type { RoomState } from './state.js';
import type { IndexedTrack, TrackIndex } from './tracks.js';

const SECONDS = 1000;
const camera = (participantId: string, feedId = 'feed'): IndexedTrack => ({
  participantId,
  trackId: 'camera',
  kind: 'video',
  source: 'camera',
  feedId,
  mid: '1',
});

describe('the layers that are demanded of a track', () => {
  test('join the demand of all sessions and gateways, and are empty without a session that receives the track', () => {
    const demand = new LayerDemand();
    expect(demand.of('ada/camera', [])).toEqual([]);
    demand.note('s1', new Map([['ada/camera', 0]]));
    demand.note('s2', new Map([['ada/camera', 2]]));
    expect(demand.of('ada/camera', [])).toEqual([0, 2]);
    demand.receive('other', [['ada/camera', [1]]], 0);
    expect(demand.of('ada/camera', ['other'])).toEqual([0, 1, 2]);
    demand.receive('other', [], 0);
    demand.note('s2', new Map());
    expect(demand.of('ada/camera', ['other'])).toEqual([0]);
    demand.forget('s1');
    expect(demand.of('ada/camera', ['other'])).toEqual([]);
  });

  test('are all of them while a gateway does not report, demands too many tracks, or reports no longer', () => {
    const demand = new LayerDemand();
    expect(demand.of('ada/camera', ['silent'])).toEqual([0, 1, 2]);
    demand.receive('other', [], 0);
    demand.expire(15 * SECONDS);
    expect(demand.of('ada/camera', ['other'])).toEqual([]);
    demand.expire(17 * SECONDS);
    expect(demand.of('ada/camera', ['other'])).toEqual([0, 1, 2]);
    demand.receive('other', null, 20 * SECONDS);
    expect(demand.of('ada/camera', ['other'])).toEqual([0, 1, 2]);
  });

  test('are reported for tracks of other gateways only, and as everything beyond 2000 tracks', () => {
    const demand = new LayerDemand();
    demand.note('s1', new Map([['ada/camera', 1], ['eve/camera', 2]])); // oxfmt-ignore
    expect(demand.report((key) => key.startsWith('eve'))).toEqual([['eve/camera', [2]]]);
    for (let at = 0; at <= 2000; at += 1) demand.note(`t${at}`, new Map([[`p${at}/camera`, 0]]));
    expect(demand.report(() => true)).toBeNull();
  });
});

describe('a publisher', () => {
  const settle = (sent: SentLayers, demanded: number[], atSeconds: number, feedId?: string) =>
    sent.settle([camera('ada', feedId)], () => demanded, atSeconds * SECONDS)?.[0]?.layers;

  test('begins with all layers, stops a layer that nobody receives after 5 s, and begins again at once', () => {
    const sent = new SentLayers();
    expect(settle(sent, [], 0)).toEqual([0, 1, 2]);
    expect(settle(sent, [], 4.9)).toBeUndefined();
    expect(settle(sent, [], 5)).toEqual([]);
    expect(settle(sent, [0], 5.1)).toEqual([0]);
    expect(settle(sent, [2], 5.2)).toEqual([0, 2]);
    expect(settle(sent, [0], 6)).toBeUndefined();
    // Wanted again meanwhile: the 5 s begin anew.
    expect(settle(sent, [2], 10)).toBeUndefined();
    expect(settle(sent, [0], 12)).toBeUndefined();
    expect(settle(sent, [0], 16)).toBeUndefined();
    expect(settle(sent, [0], 17)).toEqual([0]);
  });

  test('stops the lower layers too, if everyone receives the highest one', () => {
    const sent = new SentLayers();
    settle(sent, [2], 0);
    expect(settle(sent, [2], 5)).toEqual([2]);
    expect(settle(sent, [1], 6)).toEqual([1, 2]);
    expect(settle(sent, [1], 11)).toEqual([1]);
  });

  test('sends each layer for 5 s after it was demanded last, also if the demand keeps falling', () => {
    const sent = new SentLayers();
    settle(sent, [0, 1, 2], 0);
    expect(settle(sent, [0, 1], 10)).toBeUndefined();
    expect(settle(sent, [], 14)).toBeUndefined();
    expect(settle(sent, [], 15)).toEqual([0, 1]);
    expect(settle(sent, [], 18.9)).toBeUndefined();
    expect(settle(sent, [], 19)).toEqual([]);
  });

  test('is told its layers again after another connection, and begins anew with another feed', () => {
    const sent = new SentLayers();
    settle(sent, [0], 0);
    expect(settle(sent, [0], 5)).toEqual([0]);
    sent.repeat();
    expect(settle(sent, [0], 6)).toEqual([0]);
    expect(settle(sent, [0], 7)).toBeUndefined();
    expect(settle(sent, [0], 8, 'another')).toEqual([0, 1, 2]);
    expect(settle(sent, [0], 13, 'another')).toEqual([0]);
    expect(sent.settle([], () => [], 0)).toBeNull();
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
      sendText: (text: string) => (told[name] ??= []).push(JSON.parse(text).tracks[0].layers.join('')),
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

  test('tells its own publishers the layers that are received here and there', async () => {
    others.add('there');
    layers.receive('there', []);
    await pass(7);
    expect(told).toEqual({ ada: ['012', ''] });
    layers.note('s-viewer', new Map([['ada/camera', 0], ['eve/camera', 1]])); // oxfmt-ignore
    layers.receive('there', [['ada/camera', [1]]]);
    await jest.advanceTimersByTimeAsync(150);
    expect(told['ada']).toEqual(['012', '', '01']);
    expect(reports.at(-1)).toEqual([['eve/camera', [1]]]);
    muted.add('ada');
    layers.onTracks();
    await pass(6);
    expect(told['ada']).toEqual(['012', '', '01', '']);
    muted.clear();
    layers.onTracks();
    await jest.advanceTimersByTimeAsync(150);
    expect(told['ada']).toEqual(['012', '', '01', '', '01']);
    layers.remove(member('viewer'));
    // The other gateway reports no longer, so its members may want everything, until they are gone.
    await pass(20);
    expect(told['ada']!.at(-1)).toBe('012');
    others.delete('there');
    await pass(7);
    expect(told['ada']!.at(-1)).toBe('');
  });

  test('repeats its report every 5 s, and a publisher that comes back is told again', async () => {
    others.add('there');
    await pass(16);
    expect(reports).toEqual([[], [], [], []]);
    layers.add(member('ada'));
    await jest.advanceTimersByTimeAsync(150);
    expect(told['ada']).toEqual(['012', '012']);
  });

  test('sends a publisher few messages, whatever its receivers do', async () => {
    for (let at = 0; at < 200; at += 1) {
      layers.note('s-viewer', new Map(at % 2 === 0 ? [['ada/camera', at % 3]] : []));
      await jest.advanceTimersByTimeAsync(20);
    }
    expect(told['ada']).toEqual(['012']);
  });
});
