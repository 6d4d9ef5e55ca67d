import { beforeAll, describe, expect, test } from '@jest/globals';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import { eventually, startTestJanus, type RtcAudioTrack } from '@callplane/testing';
import { startCall, type SentTrack, type TestCall } from './call.testkit.js';
import { startTestSignaling, usesJanus, type TestInstance, type TestSignaling } from './signaling.testkit.js';

/**
 * With a camera, a screen and a microphone each: twice as many videos and three times as many microphones as a viewer
 * receives.
 */
const PUBLISHERS = PROTOCOL_LIMITS.videoSectionsMax;
/** A picture twice a second, in a size that costs little: the pictures of a page come within half a second. */
const TRICKLE = { width: 32, height: 32, everyMs: 500 };

interface Publisher {
  participantId: string;
  microphone: Microphone;
  videos: Video[];
}

interface Microphone extends SentTrack {
  speak(): void;
  silence(): void;
}

interface Video extends SentTrack {
  participantId: string;
  trackId: 'camera' | 'screen';
  /** Brightness of its pictures. */
  shade: number;
}

interface Viewer extends TestCall {
  /** The ids of the tracks that it receives, by media section. */
  carried(): Map<string, string>;
}

let kit: TestSignaling;
let gateways: TestInstance[];
let roomId: string;
const publishers: Publisher[] = [];

beforeAll(async () => {
  const [signaling, janus] = await Promise.all([startTestSignaling(), startTestJanus()]);
  kit = signaling;
  const settings = { ...usesJanus(janus), ROSTER_FULL_MAX: '500' };
  gateways = await Promise.all([kit.start(settings), kit.start(settings)]);
  roomId = await kit.newRoom({ maxParticipants: 200 });
  // Few at a time, until media flows: each begins with a DTLS handshake.
  for (let at = 0; at < PUBLISHERS; at += 5) {
    const group = await Promise.all([0, 1, 2, 3, 4].map((more) => startPublisher(at + more)));
    publishers.push(...group);
  }
});

async function startPublisher(at: number): Promise<Publisher> {
  const url = gateways[at % 2]!.url;
  const joined = await kit.enter(url, roomId, { autoSubscribe: false });
  const { participantId } = joined;
  const call = startCall(kit, joined);
  const microphone = newMicrophone();
  const videos = (['camera', 'screen'] as const).map((source, more): Video => {
    const shade = 32 + 4 * (2 * at + more);
    return { participantId, trackId: source, source, shade, add: (peer) => peer.addVideo({ ...TRICKLE, shade }) };
  });
  await call.publish([microphone, ...videos]);
  await eventually(() => call.publisher()?.connectionState() === 'connected');
  return { participantId, microphone, videos };
}

/** A microphone that keeps its state when it is published again. */
function newMicrophone(): Microphone {
  let current: RtcAudioTrack;
  let mode: 'off' | 'speak' | 'silence' = 'off';
  const become = (next: 'speak' | 'silence') => {
    mode = next;
    current[next]();
  };
  return {
    trackId: 'mic',
    source: 'microphone',
    add: (peer) => {
      current = peer.addAudio({ sends: false });
      if (mode !== 'off') current[mode]();
      return current;
    },
    speak: () => become('speak'),
    silence: () => become('silence'),
  };
}

async function startViewer(at: number): Promise<Viewer> {
  const call = startCall(kit, await kit.enter(gateways[at % 2]!.url, roomId, { name: 'Viewer' }));
  const carried = () =>
    new Map(
      (call.client.of('subscribed').at(-1)?.tracks ?? []).map((track) => [
        track.mid,
        `${track.participantId}/${track.trackId}`,
      ]),
    );
  return { ...call, carried };
}

const allVideos = () => publishers.flatMap(({ videos }) => videos);
const keyOf = ({ participantId, trackId }: Video) => `${participantId}/${trackId}`;
const videosOf = (viewer: Viewer) => [...viewer.carried().values()].filter((key) => !key.endsWith('/mic')).sort();

/** Resolves when each section shows the pictures of the video that it carries. */
async function shows(viewer: Viewer, videos: readonly Video[]): Promise<void> {
  const shadeOf = new Map(videos.map((video) => [keyOf(video), video.shade]));
  const keys = [...shadeOf.keys()].sort().join();
  await eventually(() => {
    if (videosOf(viewer).join() !== keys) return false;
    const received = viewer.subscriber()?.received();
    return [...viewer.carried()].every(([mid, key]) => {
      const shade = shadeOf.get(key);
      return shade === undefined || Math.abs((received?.get(mid)?.shade ?? -100) - shade) <= 1;
    });
  });
}

describe('a room with twice as many videos, and three times as many microphones, as a viewer receives', () => {
  test('shows a viewer one page of videos after another, over the same media sections', async () => {
    const viewer = await startViewer(0);
    const { client } = viewer;
    // Without a choice, screens come first. The last of them may be announced after the viewer has joined.
    await eventually(() => {
      const videos = videosOf(viewer);
      return videos.length === PROTOCOL_LIMITS.videoSectionsMax && videos.every((key) => key.endsWith('/screen'));
    });
    // Each peer has one offer.
    const moreOffers = () => client.of('offer').length - client.of('mediaReset').length - 1;
    expect(moreOffers()).toBe(0);
    const took: number[] = [];
    for (const shown of ['camera', 'screen', 'camera'] as const) {
      const page = allVideos().filter(({ trackId }) => trackId === shown);
      const tracks = allVideos().map(({ participantId, trackId }) => ({
        participantId,
        trackId,
        paused: trackId !== shown,
      }));
      const startedAt = performance.now();
      await client.ask({ type: 'subscribe', tracks }, 'ok');
      await shows(viewer, page);
      took.push(Math.round(performance.now() - startedAt));
    }
    process.stderr.write(`    measured: pages of 25 shown after ${took.join(', ')} ms\n`);
    expect(moreOffers()).toBe(0);
    expect(client.of('subscriptionFailed')).toEqual([]);
    await viewer.end();
    for (const { sdp } of client.of('offer')) {
      expect(sdp.split('\nm=').length - 1).toBeLessThanOrEqual(PROTOCOL_LIMITS.sectionsMax);
      expect(sdp.length).toBeLessThan(PROTOCOL_LIMITS.sdpCharsMax / 2);
    }
  });

  test('lets viewers at every gateway hear the speakers, and says who they are', async () => {
    const viewers = await Promise.all([startViewer(0), startViewer(1)]);
    const speakersOf = ({ client }: Viewer) =>
      (client.of('speakers').at(-1)?.speakers ?? []).map(({ participantId }) => participantId);
    const hears = (some: readonly Publisher[]) =>
      eventually(() =>
        viewers.every((viewer) => {
          const heard = new Set(viewer.carried().values());
          const speakers = speakersOf(viewer);
          return some.every(
            ({ participantId }) => heard.has(`${participantId}/mic`) && speakers.includes(participantId),
          );
        }),
      );
    const first = [10, 15, 20].map((at) => publishers[at]!);
    for (const { microphone } of first) microphone.speak();
    const startedAt = performance.now();
    await hears(first);
    process.stderr.write(`    measured: speakers heard after ${Math.round(performance.now() - startedAt)} ms\n`);
    const then = [3, 6, 9, 12, 24].map((at) => publishers[at]!);
    for (const { microphone } of first) microphone.silence();
    for (const { microphone } of then) microphone.speak();
    await hears(then);
    // The others are speakers no longer. On a busy machine, speech may pause for a moment.
    const talking = then.map(({ participantId }) => participantId);
    await eventually(() => viewers.every((viewer) => speakersOf(viewer).every((id) => talking.includes(id))));
    for (const viewer of viewers) {
      const heard = [...viewer.carried().values()].filter((key) => key.endsWith('/mic'));
      expect(heard).toHaveLength(PROTOCOL_LIMITS.audioSectionsMax);
      // The earlier speakers are still heard: fewer than eight others have spoken since.
      expect(heard).toEqual(expect.arrayContaining(first.map(({ participantId }) => `${participantId}/mic`)));
      await viewer.end();
    }
  });
});
