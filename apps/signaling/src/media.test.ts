import { beforeAll, describe, expect, test } from '@jest/globals';
import { createRtcPeer, eventually, startTestJanus, type RtcPeer, type TestJanus } from '@callplane/testing';
import { startTestSignaling, type Joined, type TestInstance, type TestSignaling } from './signaling.testkit.js';

let kit: TestSignaling;
let janus: TestJanus;
let one: TestInstance;
beforeAll(async () => {
  [kit, janus] = await Promise.all([startTestSignaling(), startTestJanus()]);
  one = await kit.start({ nodes: [nodeOf(janus)] });
});
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
  client.on((message) => {
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

const enter = async (roomId: string, options = {}) => inCall(await kit.enter(one.url, roomId, options));

describe('media', () => {
  test('two participants hear and see each other', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(roomId);
    expect(ada.welcome.media).toEqual({ state: 'up', continued: false });
    await ada.publish({ audio: true, video: true });
    const bob = await enter(roomId, { name: 'Bob' });
    await bob.publish({ audio: true });
    await eventually(
      () => bob.subscriber().framesReceived('video') > 5 && bob.subscriber().framesReceived('audio') > 20,
    );
    await eventually(() => ada.subscriber().framesReceived('audio') > 20);
    expect(await ada.client.until('trackPublished')).toMatchObject({
      participantId: bob.participantId,
      track: { trackId: 'mic', kind: 'audio', source: 'microphone', muted: false },
    });
    await eventually(async () => (await kit.story(roomId, ada.participantId)).length === 3);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published mic', 'published cam']);
  });
});
