import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { registerMediaNode, removeMediaNode, setNodeDraining } from '@callplane/db';
import { MediaNode, parseNodeUrl } from '@callplane/media';
import {
  createRtcPeer,
  createTestDatabase,
  eventually,
  freezeVideoRoom,
  startTestJanus,
  stopAtEnd,
  type TestJanus,
} from '@callplane/testing';
import { CAM, flows, MIC, startCall, type TestCall } from './call.testkit.js';
import {
  connectJanus,
  startTestSignaling,
  usesJanus,
  type Joined,
  type TestInstance,
  type TestSignaling,
} from './signaling.testkit.js';

let kit: TestSignaling;
let janus: TestJanus;
let one: TestInstance;
let two: TestInstance;
/** The tests' own connection to the media server. */
let node: MediaNode;
beforeAll(async () => {
  // Its registry of media servers belongs to all files that use the database.
  const { url: databaseUrl } = await createTestDatabase();
  [kit, janus] = await Promise.all([startTestSignaling({ databaseUrl }), startTestJanus()]);
  [one, two] = await Promise.all([kit.start(usesJanus(janus)), kit.start(usesJanus(janus))]);
  [node] = (await connectJanus(janus)).all() as [MediaNode];
});
const calls: TestCall[] = [];
afterEach(async () => {
  await Promise.all(calls.splice(0).map((call) => call.end()));
});

/** Tests publish again by themselves where the publisher's connection is lost. */
async function inCall(joined: Joined): Promise<TestCall> {
  const call = startCall(kit, joined, { republishes: false });
  calls.push(call);
  return call;
}
/** Resolves once another instance could take over both halves of the session's media. */
const handedOver = async ({ welcome }: Joined) => {
  const state = () => kit.database.prisma.participantSession.findUniqueOrThrow({ where: { id: welcome.sessionId } });
  await eventually(async () => {
    const { media, connection } = await state();
    const known = media as { connection: number; publisher: object | null; subscriber: object | null } | null;
    return known?.connection === connection && known.publisher !== null && known.subscriber !== null;
  });
};

const enter = async (roomId: string, options = {}, url = one.url) => inCall(await kit.enter(url, roomId, options));
const feeds = (roomId: string) => node.listFeeds(roomId);
/** Two participants that receive each other: Bob a track of Ada, and Ada a microphone. */
async function pair(track = CAM, kind: 'audio' | 'video' = 'video') {
  const roomId = await kit.newRoom();
  const [ada, bob] = [await enter(roomId), await enter(roomId)];
  await Promise.all([ada.publishAnew([track]), bob.publishAnew([MIC])]);
  await Promise.all([flows(bob.subscriber, kind), flows(ada.subscriber, 'audio')]);
  return { roomId, ada, bob };
}

describe('media', () => {
  test('flows between two participants, and tracks are announced once it flows', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(roomId);
    expect(ada.welcome.media).toEqual({ state: 'up', continued: false });
    await ada.publishAnew([MIC, CAM]);
    const bob = await enter(roomId, { name: 'Bob' });
    await bob.publishAnew([MIC]);
    await Promise.all([flows(bob.subscriber, 'video'), flows(bob.subscriber, 'audio'), flows(ada.subscriber, 'audio')]);
    await ada.client.untilOthers((others) => others.get(bob.participantId)?.tracks.length === 1);
    expect(ada.client.others.get(bob.participantId)?.tracks).toEqual([
      { trackId: 'mic', kind: 'audio', source: 'microphone', muted: false },
    ]);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published mic', 'published cam']);
    bob.client.send({ type: 'leave' });
    await bob.client.untilClosed('left');
    await eventually(async () => (await feeds(roomId)).length === 1);
    await kit.end(roomId);
    await ada.client.untilClosed('room_ended');
    await eventually(async () => (await feeds(roomId)).length === 0);
  });

  test('of a muted track is not forwarded, and the others see mute, unmute and unpublish', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(roomId), await enter(roomId)];
    await ada.publishAnew([CAM]);
    await flows(bob.subscriber, 'video');
    await ada.client.ask({ type: 'mute', trackId: 'cam', muted: true }, 'ok');
    await bob.client.untilOthers((others) => others.get(ada.participantId)?.tracks[0]?.muted === true);
    // Frames that were on their way may still arrive.
    await eventually(async () => {
      const before = bob.subscriber()!.framesReceived('video');
      await new Promise((resolve) => setTimeout(resolve, 500));
      return bob.subscriber()!.framesReceived('video') - before < 3;
    });
    await ada.client.ask({ type: 'mute', trackId: 'cam', muted: false }, 'ok');
    await flows(bob.subscriber, 'video');
    await ada.client.ask({ type: 'unpublish' }, 'ok');
    await bob.client.untilOthers((others) => others.get(ada.participantId)?.tracks.length === 0);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published cam', 'unpublished cam']);
    expect(await feeds(roomId)).toEqual([]);
  });

  test('cannot be published by a hostile client without the permission in its token', async () => {
    const roomId = await kit.newRoom();
    const bob = await enter(roomId);
    const eve = await enter(roomId, { permissions: ['room:join', 'audio:publish'] });
    const peer = await createRtcPeer();
    const [audio, video] = [peer.addAudio({ sends: false }), peer.addVideo()];
    const sdp = await peer.offer();
    const mic = { trackId: 'mic', source: 'microphone', mid: audio.mid() };
    for (const [tracks, text, code] of [
      [[mic, { trackId: 'cam', source: 'camera', mid: video.mid() }], sdp, 'permission_denied'],
      [[mic], sdp, 'invalid_sdp'],
      [[mic], sdp.replaceAll('a=sendonly', 'a=SENDONLY'), 'invalid_sdp'],
      [[mic], `${sdp}m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:9\r\n`, 'invalid_sdp'],
      [[], sdp.replaceAll('a=sendonly', 'a=recvonly'), 'invalid_sdp'],
      [[mic], sdp.replaceAll(/a=extmap:\d+/g, 'a=extmap:4294967295'), 'invalid_sdp'],
    ] as const) {
      expect(await eve.client.ask({ type: 'publish', sdp: text, tracks }, 'error')).toMatchObject({ code });
    }
    peer.close();
    expect(await feeds(roomId)).toEqual([]);
    expect(bob.client.others.get(eve.participantId)?.tracks ?? []).toEqual([]);
  });

  test('is wanted in the layers that participants receive at any gateway, and its publisher knows', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(roomId);
    const bob = await enter(roomId, { autoSubscribe: false }, two.url);
    await ada.publishAnew([CAM]);
    const isWanted = (...layers: number[]) =>
      eventually(() => {
        const last = ada.client.of('layersWanted').at(-1);
        return last?.tracks.length === 1 && String(last.tracks[0]!.layers) === String(layers);
      });
    await isWanted();
    const camera = { participantId: ada.participantId, trackId: 'cam' };
    await eventually(() => bob.client.of('changes').some(({ changes }) => JSON.stringify(changes).includes('"cam"')));
    await bob.client.ask({ type: 'subscribe', tracks: [{ ...camera, layer: { spatial: 0 } }] }, 'ok');
    await isWanted(0);
    await flows(bob.subscriber, 'video');
    const { client } = await ada.resume(one.url);
    expect((await client.until('layersWanted')).tracks).toEqual([{ trackId: 'cam', layers: [0] }]);
    await bob.client.ask({ type: 'subscribe', tracks: [{ ...camera, paused: true }] }, 'ok');
    await isWanted();
    await bob.client.ask({ type: 'subscribe', tracks: [camera] }, 'ok');
    await isWanted(2);
  });

  test('without autoSubscribe arrives for subscribed tracks only', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(roomId);
    await ada.publishAnew([MIC, CAM]);
    const bob = await enter(roomId, { autoSubscribe: false });
    await bob.client.untilOthers((others) => others.get(ada.participantId)?.tracks.length === 2);
    expect(bob.client.of('offer')).toEqual([]);
    const audio = { participantId: ada.participantId, trackId: 'mic' };
    await bob.client.ask({ type: 'subscribe', tracks: [audio] }, 'ok');
    await flows(bob.subscriber, 'audio');
    const { tracks } = await bob.client.until('subscribed');
    expect(tracks).toEqual([{ ...audio, mid: expect.any(String) }]);
    expect(bob.subscriber()!.framesReceived('video')).toBe(0);
    await bob.client.ask(
      { type: 'subscribe', tracks: [{ participantId: ada.participantId, trackId: 'cam', layer: { temporal: 0 } }] },
      'ok',
    );
    await flows(bob.subscriber, 'video');
    await bob.client.ask({ type: 'unsubscribe', tracks: [audio] }, 'ok');
    await bob.client.until(
      'subscribed',
      (received) => received.tracks.length === 1 && received.tracks[0]!.trackId === 'cam',
    );
  });

  test('is told to the client at another instance, which asks the media server for it', async () => {
    const roomId = await kit.newRoom();
    const [ada, eve] = [await enter(roomId), await enter(roomId)];
    await Promise.all([ada.publishAnew([CAM]), eve.publishAnew([CAM])]);
    const bob = await enter(roomId);
    const isReceived = ({ tracks }: { tracks: { trackId: string }[] }) => tracks.length === 2;
    const { tracks } = await bob.client.until('subscribed', isReceived);
    await bob.publishAnew([MIC]);
    await handedOver(bob);
    bob.client.terminate();
    const there = await bob.resume(two.url);
    expect(there.media.continued).toBe(true);
    const byMid = (all: typeof tracks) => [...all].sort((a, b) => a.mid.localeCompare(b.mid));
    expect(byMid((await there.client.until('subscribed')).tracks)).toEqual(byMid(tracks));
    await flows(bob.subscriber, 'video');
    expect([...there.client.of('subscribed').slice(1), ...there.client.of('mediaReset')]).toEqual([]);
  });

  test('continues with the half that is known at another instance, and the client resets the other one', async () => {
    const { roomId, ada, bob } = await pair();
    const subscriber = ada.subscriber();
    await handedOver(ada);
    ada.client.terminate();
    // The client does not say which offer it has answered.
    const there = await ada.resume(two.url, { offerId: undefined });
    expect(there.media.continued).toBe(true);
    expect(await there.client.until('mediaReset')).toMatchObject({ targets: ['subscriber'] });
    await Promise.all([flows(bob.subscriber, 'video'), flows(ada.subscriber, 'audio')]);
    expect(ada.subscriber()).not.toBe(subscriber);
    there.client.terminate();
    const reset = await ada.resume(one.url, { continueMedia: false });
    expect(reset.media.continued).toBe(false);
    // The media that the client does not use any more has ended.
    await eventually(async () => (await feeds(roomId)).length === 1);
    await ada.publishAnew([CAM]);
    await flows(bob.subscriber, 'video');
    const published = bob.client.changes.filter((change) => change.kind === 'tracks');
    expect(published.every(({ tracks }) => tracks.length === 1)).toBe(true);
  });

  // It ends a gateway, so the tests that need both come before.
  test('continues on the same peer connections at another instance, also after a drain, and can be changed there', async () => {
    const { roomId, ada, bob } = await pair();
    const [feedsBefore, subscriber] = [await feeds(roomId), ada.subscriber()];
    await handedOver(ada);
    ada.client.terminate();
    const there = await ada.resume(two.url);
    expect(there.media).toEqual({ state: 'up', continued: true });
    await Promise.all([flows(bob.subscriber, 'video'), flows(ada.subscriber, 'audio')]);
    // Both halves can be negotiated at the new instance.
    await ada.publish([CAM, MIC]);
    await flows(bob.subscriber, 'audio');
    await bob.publish([MIC, CAM]);
    await flows(ada.subscriber, 'video');
    await handedOver(ada);
    const continued = await one.valueOf('callplane_signaling_media_claims_total{outcome="continued"');
    two.app.kill('SIGTERM');
    await there.client.untilClosed('drain');
    const back = await ada.resume(one.url);
    expect(back.media).toEqual({ state: 'up', continued: true });
    await Promise.all([flows(bob.subscriber, 'video'), flows(ada.subscriber, 'audio')]);
    expect(await feeds(roomId)).toEqual(feedsBefore);
    expect(ada.subscriber()).toBe(subscriber);
    expect([...there.client.of('mediaReset'), ...back.client.of('mediaReset')]).toEqual([]);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published cam', 'published mic']);
    expect(await one.valueOf('callplane_signaling_media_claims_total{outcome="continued"')).toBe(continued + 1);
  });

  test('of a removed participant is cut off at once, in both directions', async () => {
    const { roomId, bob } = await pair(MIC, 'audio');
    await kit.remove(roomId, bob.participantId);
    await bob.client.untilClosed('removed');
    await eventually(async () => (await feeds(roomId)).length === 1);
    // Decoders fill gaps with silence, so frames prove nothing. The media server must have closed both peer
    // connections.
    await eventually(() => bob.subscriber()!.connectionState() !== 'connected');
    await eventually(() => bob.publisher()!.connectionState() !== 'connected');
  });
});

describe('when the media server', () => {
  test('is killed and restarted, clients are notified and publish again, and the call continues', async () => {
    const { roomId, ada, bob } = await pair(MIC, 'audio');
    for (const call of [ada, bob]) {
      call.client.on((message) => {
        if (message.type === 'mediaReset' && message.targets.includes('publisher')) void call.publishAnew([MIC]);
      });
    }
    janus.kill('SIGKILL');
    await ada.client.until('mediaState', ({ state }) => state === 'down');
    const { sdp, mid } = await offer();
    const tracks = [{ trackId: 'mic', source: 'microphone', mid }];
    expect(await ada.client.ask({ type: 'publish', sdp, tracks }, 'error')).toMatchObject({
      code: 'media_unavailable',
    });
    await ada.client.ask({ type: 'message', data: 'still here' }, 'ok');
    await bob.client.until('message');
    const startedAt = performance.now();
    await janus.start();
    await ada.client.until('mediaReset', ({ targets }) => targets.length === 2);
    await Promise.all([flows(bob.subscriber, 'audio'), flows(ada.subscriber, 'audio')]);
    process.stderr.write(`    measured: media again ${Math.round(performance.now() - startedAt)} ms after the start\n`);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published mic']);
  });
});

describe('media servers of the registry', () => {
  let spare: TestJanus;
  let first: TestInstance;
  let second: TestInstance;
  beforeAll(async () => {
    spare = await startTestJanus();
    const { apiSecret, adminKey } = janus;
    const settings = { MEDIA_API_SECRET: apiSecret, MEDIA_ADMIN_KEY: adminKey, MEDIA_NODE_DEAD_SECONDS: '1' };
    [first, second] = await Promise.all([kit.start(settings), kit.start(settings)]);
  });
  /** Resolves once both gateways call the node up, or down. */
  const untilBothSee = (id: string, state: 'up' | 'down') =>
    eventually(async () => {
      const sample = `callplane_media_node_up{node="${id}"`;
      const up = await Promise.all([first, second].map((gateway) => gateway.valueOf(sample)));
      return up.every((value) => value === (state === 'up' ? 1 : 0));
    });
  const register = async (id: string, { url }: TestJanus) => {
    const server = { id, url: parseNodeUrl(id, url), capacity: null, region: null, hasAgent: true };
    await registerMediaNode(kit.database.sql, server);
    await untilBothSee(id, 'up');
  };
  const placementOf = async (roomId: string) =>
    (await kit.database.prisma.room.findUniqueOrThrow({ where: { id: roomId } })).mediaNodeId;
  /** Two participants at both gateways, with media from the first one. */
  async function callAtBoth() {
    const roomId = await kit.newRoom();
    const ada = await enter(roomId, {}, first.url);
    const bob = await enter(roomId, {}, second.url);
    await ada.publishAnew([MIC]);
    await flows(bob.subscriber, 'audio');
    const moves = async () => {
      await ada.client.until('mediaReset', ({ targets }) => targets.includes('publisher'));
      await bob.client.until('mediaReset', ({ targets }) => targets.includes('subscriber'));
      await ada.publishAnew([MIC]);
      await flows(bob.subscriber, 'audio');
    };
    return { roomId, ada, moves };
  }

  test('get rooms while the gateways run, and lose them when they are drained or removed', async () => {
    const { prisma } = kit.database;
    /** The media server that a new room gets. */
    const nextPlace = async () => {
      const roomId = await kit.newRoom();
      const { client } = await kit.enter(first.url, roomId);
      const place = await placementOf(roomId);
      client.send({ type: 'leave' });
      await client.untilClosed('left');
      return place;
    };
    await register('r1', janus);
    const { roomId, moves } = await callAtBoth();
    expect(await placementOf(roomId)).toBe('r1');
    await register('r2', spare);
    expect(await nextPlace()).toBe('r2');
    await setNodeDraining(prisma, 'r2', true);
    await eventually(async () => (await nextPlace()) === 'r1');
    expect(await placementOf(roomId)).toBe('r1');
    await setNodeDraining(prisma, 'r2', false);
    // The rooms of a removed server move like the rooms of a server that is down.
    expect(await removeMediaNode(prisma, 'r1')).toBe(true);
    await moves();
    expect(await placementOf(roomId)).toBe('r2');
  });

  test('lose their rooms on all instances while VideoRoom is frozen and Janus answers', async () => {
    await register('r2', spare);
    await register('r3', janus);
    const { roomId, moves } = await callAtBoth();
    const before = (await placementOf(roomId))!;
    const { url, apiSecret, adminKey, ...server } = before === 'r2' ? spare : janus;
    const own = new MediaNode({ id: before, url, apiSecret, adminKey, random: Math.random, allowOutdated: true });
    stopAtEnd(() => own.close());
    await own.untilUp(60_000);
    await freezeVideoRoom(await own.openSession(), adminKey);
    const startedAt = performance.now();
    const seen = untilBothSee(before, 'down').then(() => performance.now() - startedAt);
    await moves();
    process.stderr.write(`    measured: seen after ${Math.round(await seen)} ms, `);
    process.stderr.write(`moved, media again after ${Math.round(performance.now() - startedAt)} ms\n`);
    // Five seconds and the pause between two probes, and as much for a slow machine.
    expect(await seen).toBeLessThan(14_000);
    expect(await placementOf(roomId)).not.toBe(before);
    server.kill('SIGKILL');
    await server.start();
    await untilBothSee(before, 'up');
  });

  test('lose their rooms on all instances when they stay down', async () => {
    await register('r3', janus);
    const { roomId, ada, moves } = await callAtBoth();
    const before = await placementOf(roomId);
    const startedAt = performance.now();
    (before === 'r2' ? spare : janus).kill('SIGKILL');
    await moves();
    process.stderr.write(`    measured: moved, media again after ${Math.round(performance.now() - startedAt)} ms\n`);
    expect(await placementOf(roomId)).not.toBe(before);
    const { mediaGeneration } = await kit.database.prisma.room.findUniqueOrThrow({ where: { id: roomId } });
    expect(mediaGeneration).toBe(2);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published mic']);
  });
});

async function offer(): Promise<{ sdp: string; mid: string | null }> {
  const peer = await createRtcPeer();
  const track = peer.addAudio({ sends: false });
  const sdp = await peer.offer();
  const mid = track.mid();
  peer.close();
  return { sdp, mid };
}
