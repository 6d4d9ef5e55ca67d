import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createRtcPeer, eventually, startTestJanus, type RtcPeer, type TestJanus } from '@callplane/testing';
import { startTestSignaling, type Joined, type TestInstance, type TestSignaling } from './signaling.testkit.js';

let kit: TestSignaling;
let janus: TestJanus;
let one: TestInstance;
beforeAll(async () => {
  [kit, janus] = await Promise.all([startTestSignaling(), startTestJanus()]);
  one = await kit.start({ nodes: [nodeOf(janus)] });
});
afterAll(() => kit.close());
const nodeOf = ({ url, apiSecret, adminKey }: TestJanus, id = 'm1') => ({ id, url, apiSecret, adminKey });

interface Call extends Joined {
  publisher: RtcPeer;
  /** The present peer that receives. */
  subscriber: () => RtcPeer;
  publish(kinds: { audio?: boolean; video?: boolean }): Promise<void>;
}

/** Answers offers and passes candidates, as a client does. */
async function inCall(joined: Joined): Promise<Call> {
  const { client } = joined;
  let publisher = await createRtcPeer();
  let subscriber = await createRtcPeer();
  const watch = (peer: RtcPeer, target: 'publisher' | 'subscriber') =>
    peer.onCandidate((candidate) => client.send({ type: 'candidate', target, candidate }));
  let turn = Promise.resolve();
  watch(subscriber, 'subscriber');
  // Also what came while the peers were made.
  client.all((message) => {
    turn = turn.then(async () => {
      if (message.type === 'offer') {
        const sdp = await subscriber.answer(message.sdp);
        client.send({ type: 'answer', offerId: message.offerId, sdp });
      } else if (message.type === 'candidate') {
        await (message.target === 'publisher' ? publisher : subscriber).addCandidate(message.candidate);
      } else if (message.type === 'mediaReset' && message.targets.includes('subscriber')) {
        subscriber.close();
        subscriber = await createRtcPeer();
        watch(subscriber, 'subscriber');
      }
    });
  });
  return {
    ...joined,
    get publisher() {
      return publisher;
    },
    subscriber: () => subscriber,
    async publish({ audio, video }) {
      publisher.close();
      publisher = await createRtcPeer();
      const tracks = [
        ...(audio === true ? [{ trackId: 'mic', source: 'microphone', track: publisher.addAudio() }] : []),
        ...(video === true ? [{ trackId: 'cam', source: 'camera', track: publisher.addVideo() }] : []),
      ];
      const sdp = await publisher.offer();
      const answer = await client.ask(
        {
          type: 'publish',
          sdp,
          tracks: tracks.map(({ track, ...declared }) => ({ ...declared, mid: track.mid() })),
        },
        'published',
      );
      await publisher.acceptAnswer(answer.sdp);
      watch(publisher, 'publisher');
    },
  };
}

const enter = async (roomId: string, options = {}, url = one.url) => inCall(await kit.enter(url, roomId, options));
/** Frames go on to arrive from here on. */
const flows = async (peer: () => RtcPeer, kind: 'audio' | 'video', timeoutMs = 10_000) => {
  let before: { peer: RtcPeer; frames: number } | undefined;
  await eventually(
    () => {
      const now = { peer: peer(), frames: peer().framesReceived(kind) };
      if (before?.peer !== now.peer) before = now;
      return now.frames > before.frames + 3;
    },
    { timeoutMs },
  );
};
const feeds = (roomId: string) => one.nodes.up()[0]!.listFeeds(roomId);

describe('media', () => {
  test('two participants hear and see each other; others learn of tracks once media flows', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(roomId);
    expect(ada.welcome.media).toEqual({ state: 'up', continued: false });
    await ada.publish({ audio: true, video: true });
    const bob = await enter(roomId, { name: 'Bob' });
    await bob.publish({ audio: true });
    await Promise.all([flows(bob.subscriber, 'video'), flows(bob.subscriber, 'audio'), flows(ada.subscriber, 'audio')]);
    expect(await ada.client.until('trackPublished')).toMatchObject({
      participantId: bob.participantId,
      track: { trackId: 'mic', kind: 'audio', source: 'microphone', muted: false },
    });
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published mic', 'published cam']);
    bob.client.send({ type: 'leave' });
    await bob.client.untilClosed('left');
    await eventually(async () => (await feeds(roomId)).length === 1);
    await kit.end(roomId);
    await ada.client.untilClosed('room_ended');
    await eventually(async () => (await feeds(roomId)).length === 0);
  });

  test('mute, unmute and unpublish are seen by the others; nothing of a muted track is forwarded', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(roomId), await enter(roomId)];
    await ada.publish({ video: true });
    await flows(bob.subscriber, 'video');
    await ada.client.ask({ type: 'mute', trackId: 'cam', muted: true }, 'ok');
    await bob.client.until('trackUpdated', ({ track }) => track.muted);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const still = bob.subscriber().framesReceived('video');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(bob.subscriber().framesReceived('video') - still).toBeLessThan(3);
    await ada.client.ask({ type: 'mute', trackId: 'cam', muted: false }, 'ok');
    await flows(bob.subscriber, 'video');
    await ada.client.ask({ type: 'unpublish' }, 'ok');
    await bob.client.until('trackUnpublished');
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published cam', 'unpublished cam']);
    expect(await feeds(roomId)).toEqual([]);
  });

  test('a hostile client cannot send what its token does not permit', async () => {
    const roomId = await kit.newRoom();
    const bob = await enter(roomId);
    const eve = await enter(roomId, { permissions: ['room:join', 'audio:publish'] });
    const peer = await createRtcPeer();
    const [audio, video] = [peer.addAudio(), peer.addVideo()];
    const sdp = await peer.offer();
    const mic = { trackId: 'mic', source: 'microphone', mid: audio.mid() };
    for (const [tracks, text, code] of [
      [[mic, { trackId: 'cam', source: 'camera', mid: video.mid() }], sdp, 'permission_denied'],
      [[mic], sdp, 'invalid_sdp'],
      [[mic], sdp.replaceAll('a=sendonly', 'a=SENDONLY'), 'invalid_sdp'],
      [[mic], `${sdp}m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:9\r\n`, 'invalid_sdp'],
    ] as const) {
      expect(await eve.client.ask({ type: 'publish', sdp: text, tracks }, 'error')).toMatchObject({ code });
    }
    expect(await feeds(roomId)).toEqual([]);
    expect(bob.client.of('trackPublished')).toEqual([]);
  });

  test('without autoSubscribe only what was asked for is received', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(roomId);
    await ada.publish({ audio: true, video: true });
    const bob = await enter(roomId, { autoSubscribe: false });
    await eventually(
      () => bob.welcome.participants[0]!.tracks.length === 2 || bob.client.of('trackPublished').length > 0,
    );
    expect(bob.client.of('offer')).toEqual([]);
    const audio = { participantId: ada.participantId, trackId: 'mic' };
    await bob.client.ask({ type: 'subscribe', tracks: [audio] }, 'ok');
    await flows(bob.subscriber, 'audio');
    expect(bob.client.of('offer').at(-1)!.tracks).toEqual([{ ...audio, mid: expect.any(String) }]);
    expect(bob.subscriber().framesReceived('video')).toBe(0);
    await bob.client.ask(
      { type: 'subscribe', tracks: [{ participantId: ada.participantId, trackId: 'cam', layer: { temporal: 0 } }] },
      'ok',
    );
    await flows(bob.subscriber, 'video');
    await bob.client.ask({ type: 'unsubscribe', tracks: [audio] }, 'ok');
    await bob.client.until('offer', ({ tracks }) => tracks.length === 1 && tracks[0]!.trackId === 'cam');
  });

  test('a resumption on the same instance goes on with the same peer connections, on another with new ones', async () => {
    const two = await kit.start({ nodes: [nodeOf(janus)] });
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(roomId), await enter(roomId)];
    await Promise.all([ada.publish({ video: true }), bob.publish({ audio: true })]);
    await Promise.all([flows(bob.subscriber, 'video'), flows(ada.subscriber, 'audio')]);
    ada.client.terminate();
    const here = await kit.resume(one.url, ada.welcome);
    expect(here.media).toEqual({ state: 'up', continued: true });
    await Promise.all([flows(bob.subscriber, 'video'), flows(ada.subscriber, 'audio')]);
    here.client.terminate();
    const there = await kit.resume(two.url, ada.welcome);
    expect(there.media).toEqual({ state: 'up', continued: false });
    const again = await inCall({ ...ada, client: there.client, welcome: there });
    await again.publish({ video: true });
    await Promise.all([flows(bob.subscriber, 'video'), flows(again.subscriber, 'audio')]);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published cam']);
    expect(bob.client.of('trackUnpublished')).toEqual([]);
    await two.close();
  });

  test('a feed that somebody throws out is told to its client, who may publish again', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(roomId), await enter(roomId)];
    await ada.publish({ audio: true });
    await flows(bob.subscriber, 'audio');
    const [feed] = await feeds(roomId);
    await one.nodes.up()[0]!.removeFeed(roomId, feed!);
    expect(await ada.client.until('mediaReset')).toMatchObject({ targets: ['publisher'] });
    await ada.publish({ audio: true });
    await flows(bob.subscriber, 'audio');
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published mic']);
  });

  test('a client that has thrown its peer connections away gets new ones', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(roomId), await enter(roomId)];
    await ada.publish({ audio: true });
    await flows(bob.subscriber, 'audio');
    bob.client.terminate();
    const resumed = await kit.resume(one.url, bob.welcome, { continueMedia: false });
    expect(resumed.media.continued).toBe(false);
    const again = await inCall({ ...bob, client: resumed.client, welcome: resumed });
    await flows(again.subscriber, 'audio');
  });

  test('whoever is removed is cut off from media at once, in both directions', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(roomId), await enter(roomId)];
    await Promise.all([ada.publish({ audio: true }), bob.publish({ audio: true })]);
    await Promise.all([flows(bob.subscriber, 'audio'), flows(ada.subscriber, 'audio')]);
    await kit.remove(roomId, bob.participantId);
    await bob.client.untilClosed('removed', 1000);
    await eventually(async () => (await feeds(roomId)).length === 1, { timeoutMs: 1000 });
    // Decoders fill in silence for what does not come, so frames tell nothing: the media server has closed both.
    await eventually(() => bob.subscriber().connectionState() !== 'connected');
    await eventually(() => bob.publisher.connectionState() !== 'connected');
  });
});

describe('when the media server', () => {
  test('is killed and started again, clients are told, publish again, and the call goes on', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(roomId), await enter(roomId)];
    const publish = { audio: true };
    await Promise.all([ada.publish(publish), bob.publish(publish)]);
    await Promise.all([flows(bob.subscriber, 'audio'), flows(ada.subscriber, 'audio')]);
    for (const call of [ada, bob]) {
      call.client.on((message) => {
        if (message.type === 'mediaReset' && message.targets.includes('publisher')) void call.publish(publish);
      });
    }
    janus.kill('SIGKILL');
    await ada.client.until('mediaState', ({ state }) => state === 'down', 2000);
    const { sdp, mid } = await offer();
    const tracks = [{ trackId: 'mic', source: 'microphone', mid }];
    expect(await ada.client.ask({ type: 'publish', sdp, tracks }, 'error')).toMatchObject({
      code: 'media_unavailable',
    });
    await ada.client.ask({ type: 'message', data: 'still here' }, 'ok');
    await bob.client.until('message');
    const startedAt = performance.now();
    await janus.start();
    await ada.client.until('mediaReset', ({ targets }) => targets.length === 2, 5000);
    await Promise.all([flows(bob.subscriber, 'audio'), flows(ada.subscriber, 'audio')]);
    process.stderr.write(`    measured: media again ${Math.round(performance.now() - startedAt)} ms after the start\n`);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published mic']);
  });

  test('stays away, its rooms move to another one, on all instances', async () => {
    const spare = await startTestJanus();
    const mine = await startTestJanus();
    const nodes = [nodeOf(mine, 'a-first'), nodeOf(spare, 'b-second')];
    const instances = await Promise.all([1, 2].map(() => kit.start({ nodes, mediaNodeDeadSeconds: 1 })));
    const roomId = await kit.newRoom();
    const ada = await enter(roomId, {}, instances[0]!.url);
    const bob = await enter(roomId, {}, instances[1]!.url);
    await ada.publish({ audio: true });
    await flows(bob.subscriber, 'audio');
    const { mediaNodeId } = await kit.database.prisma.room.findUniqueOrThrow({ where: { id: roomId } });
    const startedAt = performance.now();
    (mediaNodeId === 'a-first' ? mine : spare).kill('SIGKILL');
    await Promise.all([
      ada.client.until('mediaReset', ({ targets }) => targets.includes('publisher'), 6000),
      bob.client.until('mediaReset', ({ targets }) => targets.includes('subscriber'), 6000),
    ]);
    await ada.publish({ audio: true });
    await flows(bob.subscriber, 'audio');
    // One second until it counts as dead, and no wait for the next regular look at the room.
    expect(performance.now() - startedAt).toBeLessThan(3500);
    process.stderr.write(`    measured: moved and heard after ${Math.round(performance.now() - startedAt)} ms\n`);
    const moved = await kit.database.prisma.room.findUniqueOrThrow({ where: { id: roomId } });
    expect(moved.mediaNodeId).not.toBe(mediaNodeId);
    expect(moved.mediaGeneration).toBe(2);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published mic']);
    await Promise.all(instances.map((instance) => instance.close()));
  });
});

async function offer(): Promise<{ sdp: string; mid: string | null }> {
  const peer = await createRtcPeer();
  const track = peer.addAudio();
  return { sdp: await peer.offer(), mid: track.mid() };
}
