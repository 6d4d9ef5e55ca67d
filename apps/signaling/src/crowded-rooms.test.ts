import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import {
  createRtcPeer,
  eventually,
  startTestJanus,
  type RtcAudioTrack,
  type RtcPeer,
  type RtcTrack,
} from '@callplane/testing';
import { startTestSignaling, type Joined, type TestInstance, type TestSignaling } from './signaling.testkit.js';

/** Publishers with a camera, a microphone and a screen each. */
const PUBLISHERS = 100;
/** A picture twice a second, in a size that costs little: the pictures of a page come within half a second. */
const TRICKLE = { width: 32, height: 32, everyMs: 500 };
/** Without a picture for as long as the test runs: it looks at cameras only. */
const STILL = { width: 32, height: 32, everyMs: 600_000 };

interface Publisher {
  participantId: string;
  microphone: RtcAudioTrack;
  camera: RtcTrack;
  /** Brightness of the camera's pictures. */
  shade: number;
}

interface Viewer extends Joined {
  peer: RtcPeer;
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
  const { url, apiSecret, adminKey } = janus;
  const nodes = [{ id: 'm1', url, apiSecret, adminKey }];
  gateways = await Promise.all([kit.start({ nodes, rosterFullMax: 500 }), kit.start({ nodes, rosterFullMax: 500 })]);
  roomId = await kit.newRoom({ maxParticipants: 200 });
  // Few at a time, until media flows: each begins with a DTLS handshake.
  for (let at = 0; at < PUBLISHERS; at += 4) {
    const group = await Promise.all([0, 1, 2, 3].map((more) => startPublisher(at + more)));
    publishers.push(...group);
  }
});
afterAll(() => kit.close());

async function startPublisher(at: number): Promise<Publisher> {
  const url = gateways[at % 2]!.url;
  const { client, participantId } = await kit.enter(url, roomId, { autoSubscribe: false, protocol: 2 });
  const peer = await createRtcPeer();
  client.on((message) => {
    if (message.type === 'candidate' && message.target === 'publisher') void peer.addCandidate(message.candidate);
  });
  const shade = 32 + 2 * at;
  const microphone = peer.addAudio({ sends: false });
  const camera = peer.addVideo({ ...TRICKLE, shade });
  const screen = peer.addVideo(STILL);
  const sdp = await peer.offer();
  const tracks = [
    { trackId: 'mic', source: 'microphone', mid: microphone.mid() },
    { trackId: 'cam', source: 'camera', mid: camera.mid() },
    { trackId: 'screen', source: 'screen', mid: screen.mid() },
  ];
  await peer.acceptAnswer(await publish(client, { sdp, tracks }));
  peer.onCandidate((candidate) => client.send({ type: 'candidate', target: 'publisher', candidate }));
  await eventually(() => peer.connectionState() === 'connected');
  return { participantId, microphone, camera, shade };
}

/** Publishes again, as clients do, while the media server does not answer in time. @returns the answer */
async function publish(client: Joined['client'], offer: { sdp: string; tracks: object[] }): Promise<string> {
  const answer = await eventually(async () => {
    const reply = await client.request({ type: 'publish', ...offer });
    return reply.type === 'error' && reply.code === 'media_unavailable' ? null : reply;
  });
  if (answer.type !== 'published') throw new Error(`answered ${JSON.stringify(answer)} instead of published`);
  return answer.sdp;
}

async function startViewer(at: number): Promise<Viewer> {
  const joined = await kit.enter(gateways[at % 2]!.url, roomId, { protocol: 2, name: 'Viewer' });
  const { client } = joined;
  const peer = await createRtcPeer();
  let turn = Promise.resolve();
  client.all((message) => {
    turn = turn.then(async () => {
      if (message.type === 'candidate' && message.target === 'subscriber') await peer.addCandidate(message.candidate);
      if (message.type !== 'offer') return;
      const sdp = await peer.answer(message.sdp);
      client.send({ type: 'answer', offerId: message.offerId, sdp });
    });
  });
  peer.onCandidate((candidate) => client.send({ type: 'candidate', target: 'subscriber', candidate }));
  const carried = () =>
    new Map(
      (client.of('subscribed').at(-1)?.tracks ?? []).map((track) => [
        track.mid,
        `${track.participantId}/${track.trackId}`,
      ]),
    );
  return { ...joined, peer, carried };
}

const page = (at: number) => publishers.slice(at * 25, (at + 1) * 25);
const camerasOf = (some: readonly Publisher[]) => some.map(({ participantId }) => `${participantId}/cam`).sort();
const videosOf = (viewer: Viewer) => [...viewer.carried().values()].filter((key) => !key.endsWith('/mic')).sort();

/** Resolves when each section shows the pictures of the camera that it carries. */
async function shows(viewer: Viewer, some: readonly Publisher[]): Promise<void> {
  const shadeOf = new Map(some.map(({ participantId, shade }) => [`${participantId}/cam`, shade]));
  await eventually(() => {
    if (videosOf(viewer).join() !== camerasOf(some).join()) return false;
    const received = viewer.peer.received();
    return [...viewer.carried()].every(([mid, key]) => {
      const shade = shadeOf.get(key);
      return shade === undefined || Math.abs((received.get(mid)?.shade ?? -100) - shade) <= 1;
    });
  });
}

describe('a room of 100 publishers with camera, microphone and screen', () => {
  test('shows a viewer one page of cameras after another, over the same media sections', async () => {
    const viewer = await startViewer(0);
    const { client } = viewer;
    await eventually(() => videosOf(viewer).length === PROTOCOL_LIMITS.videoSectionsMax);
    // Without a choice, screens come first.
    expect(videosOf(viewer).every((key) => key.endsWith('/screen'))).toBe(true);
    const offers = client.of('offer').length;
    const took: number[] = [];
    for (const at of [0, 1, 2, 3, 1]) {
      const hidden = publishers.filter((one) => !page(at).includes(one));
      const tracks = [
        ...page(at).map(({ participantId }) => ({ participantId, trackId: 'cam', paused: false })),
        ...hidden.map(({ participantId }) => ({ participantId, trackId: 'cam', paused: true })),
      ];
      const startedAt = performance.now();
      await client.ask({ type: 'subscribe', tracks }, 'ok');
      await shows(viewer, page(at));
      took.push(Math.round(performance.now() - startedAt));
    }
    process.stderr.write(`    measured: pages of 25 shown after ${took.join(', ')} ms\n`);
    expect(client.of('offer')).toHaveLength(offers);
    expect(client.of('subscriptionFailed')).toEqual([]);
    for (const { sdp } of client.of('offer')) {
      expect(sdp.split('\nm=').length - 1).toBeLessThanOrEqual(PROTOCOL_LIMITS.sectionsMax);
      expect(sdp.length).toBeLessThan(PROTOCOL_LIMITS.sdpCharsMax / 2);
    }
  });

  test('lets viewers at every gateway hear those who talk, and says who they are', async () => {
    // From here on only the microphones matter.
    for (const { camera } of publishers) camera.stop();
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
    const first = [40, 61, 82].map((at) => publishers[at]!);
    for (const { microphone } of first) microphone.speak();
    const startedAt = performance.now();
    await hears(first);
    process.stderr.write(`    measured: speakers heard after ${Math.round(performance.now() - startedAt)} ms\n`);
    const then = [13, 24, 35, 46, 57].map((at) => publishers[at]!);
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
    }
  });

  test('gives a client with protocol version 1 as many tracks, with offers only', async () => {
    const { client } = await kit.enter(gateways[0]!.url, roomId, { protocol: 1, name: 'Old' });
    const offer = await client.until('offer');
    expect(offer.tracks).toHaveLength(PROTOCOL_LIMITS.videoSectionsMax + PROTOCOL_LIMITS.audioSectionsMax);
  });
});
