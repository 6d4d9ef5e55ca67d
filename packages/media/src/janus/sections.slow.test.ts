import { beforeAll, describe, expect, test } from '@jest/globals';
import { createRtcPeer, eventually, startTestJanus, type TestJanus } from '@callplane/testing';
import type { MediaNode } from './node.js';
import { carriedIn, nodeOn, startReceiver, startSender, UP_WITHIN_MS, type Receiver } from './node.testkit.js';

let janus: TestJanus;
let node: MediaNode;
let rooms = 0;
beforeAll(async () => {
  janus = await startTestJanus();
  node = nodeOn(janus);
  await node.untilUp(UP_WITHIN_MS);
});

/** A room with a feed for each name, and a receiver of the first feed's audio and video. */
async function stage(...feedIds: string[]) {
  rooms += 1;
  const roomId = `slots-${rooms}`;
  await node.ensureRoom(roomId);
  const senders = await Promise.all(feedIds.map((feedId) => startSender(node, roomId, feedId)));
  const bob = await startReceiver(node, roomId);
  await bob.change([
    { feedId: feedIds[0]!, mid: '0' },
    { feedId: feedIds[0]!, mid: '1' },
  ]);
  await eventually(() => framesOf(bob, '0') > 3 && framesOf(bob, '1') > 3);
  return { roomId, senders, bob };
}

const framesOf = ({ peer }: Receiver, mid: string) => peer.received().get(mid)?.frames ?? 0;
const grows = async (bob: Receiver, mid: string) => {
  const before = framesOf(bob, mid);
  await eventually(() => framesOf(bob, mid) > before + 3);
};
/** Decoders fill gaps of audio with silence, so only video shows that nothing arrives. */
const stands = async (bob: Receiver, mid: string) => {
  let before = -1;
  await eventually(
    () => {
      const stood = framesOf(bob, mid) === before;
      before = framesOf(bob, mid);
      return stood;
    },
    { intervalMs: 500 },
  );
};

describe('media sections of a subscriber', () => {
  test('carry another feed after a switch, without an offer', async () => {
    const { bob } = await stage('ada', 'eve');
    const { sections, offer } = await bob.subscriber.switch([
      { feedId: 'eve', mid: '0', subscriberMid: '0' },
      { feedId: 'eve', mid: '1', subscriberMid: '1' },
    ]);
    bob.carried = carriedIn(sections!);
    expect(offer).toBeNull();
    expect(bob.carried).toEqual([
      { feedId: 'eve', mid: '0', subscriberMid: '0' },
      { feedId: 'eve', mid: '1', subscriberMid: '1' },
    ]);
    await grows(bob, '1');
    expect(await bob.change([{ feedId: 'ada', mid: '1' }])).toEqual(['ada/1', 'eve/0', 'eve/1']);
    expect(bob.closed).toEqual([]);
  });

  test('keep their stream if a switch names another kind, or a stream that does not exist', async () => {
    const { bob } = await stage('ada', 'eve');
    const { sections } = await bob.subscriber.switch([{ feedId: 'eve', mid: '1', subscriberMid: '0' }]);
    expect(carriedIn(sections!)).toContainEqual({ feedId: 'ada', mid: '0', subscriberMid: '0' });
    const missing = [
      { feedId: 'eve', mid: '0', subscriberMid: '0' },
      { feedId: 'nobody', mid: '1', subscriberMid: '1' },
    ];
    const switched = await bob.subscriber.switch(missing);
    expect(switched).toMatchObject({ absent: [missing[1]], offer: null });
    bob.carried = carriedIn(switched.sections!);
    expect(bob.carried).toEqual([
      { feedId: 'eve', mid: '0', subscriberMid: '0' },
      { feedId: 'ada', mid: '1', subscriberMid: '1' },
    ]);
    expect(await bob.change([], [{ feedId: 'eve', mid: '0' }])).toEqual(['ada/1']);
  });

  test('pause and resume without an offer, and a switch ends the pause', async () => {
    const { bob } = await stage('ada', 'eve');
    await bob.subscriber.configure([{ subscriberMid: '1', paused: true }]);
    await stands(bob, '1');
    await bob.subscriber.configure([{ subscriberMid: '1', paused: false, spatial: 0, temporal: 0 }]);
    await grows(bob, '1');
    await bob.subscriber.configure([{ subscriberMid: '1', paused: true }]);
    await stands(bob, '1');
    const { sections } = await bob.subscriber.switch([{ feedId: 'eve', mid: '1', subscriberMid: '1' }]);
    expect(sections?.map(({ settings }) => settings.paused)).toEqual([false, false]);
    await grows(bob, '1');
  });

  test('whose feed has ended need an offer to carry another one, and their number does not grow', async () => {
    const { bob, senders } = await stage('ada', 'eve');
    await senders[0]!.publisher.detach();
    await eventually(async () => {
      const sections = await bob.subscriber.listSections({ feedId: 'eve', mid: '1' });
      return sections.every(({ stream }) => stream === null);
    });
    const { offer } = await bob.subscriber.switch([{ feedId: 'eve', mid: '1', subscriberMid: '1' }]);
    expect(offer!.sections).toMatchObject([{ stream: null }, { stream: { feedId: 'eve', mid: '1' } }]);
    await bob.subscriber.answer(await bob.peer.answer(offer!.sdp));
    await grows(bob, '1');
    const again = await bob.subscriber.update({ add: [{ feedId: 'eve', mid: '0', paused: true }], remove: [] });
    expect(again!.sections).toHaveLength(2);
    await bob.subscriber.answer(await bob.peer.answer(again!.sdp));
  });
});

describe("the list of a subscriber's sections", () => {
  const section = (feedId: string, mid: string, settings = {}) => ({
    subscriberMid: mid,
    kind: mid === '0' ? 'audio' : 'video',
    stream: { feedId, mid },
    isNegotiated: true,
    settings: { spatial: undefined, temporal: undefined, paused: false, ...settings },
  });

  test('names the stream of each one and whether it is paused, and changes nothing', async () => {
    const { bob } = await stage('ada', 'eve');
    expect(await bob.subscriber.listSections(undefined)).toEqual([section('ada', '0'), section('ada', '1')]);
    await bob.subscriber.switch([{ feedId: 'eve', mid: '1', subscriberMid: '1' }]);
    await bob.subscriber.configure([{ subscriberMid: '0', paused: true }]);
    const switched = [section('ada', '0', { paused: true }), section('eve', '1')];
    for (const known of [undefined, { feedId: 'eve', mid: '1' }, { feedId: 'nobody', mid: '0' }]) {
      expect(await bob.subscriber.listSections(known)).toEqual(switched);
    }
    await grows(bob, '1');
  });

  test('tells another process whether an offer with the section is answered', async () => {
    const { bob } = await stage('ada', 'eve');
    const offer = await bob.subscriber.update({ add: [{ feedId: 'eve', mid: '1' }], remove: [] });
    const other = nodeOn(janus, { id: 'other' });
    await other.untilUp(UP_WITHIN_MS);
    const session = await other.claimSession(bob.session.id);
    const claimed = session.adoptSubscriber(bob.subscriber.handleId, `slots-${rooms}`);
    const sections = await claimed.listSections(undefined);
    expect(sections.map(({ stream, isNegotiated }) => [stream?.feedId, isNegotiated])).toEqual([
      ['ada', true],
      ['ada', true],
      ['eve', false],
    ]);
    expect(offer!.sdp).toContain('m=video');
  });

  test('names sections whose feed has ended as idle ones, and is empty in a room without feeds', async () => {
    const { bob, senders } = await stage('ada', 'eve');
    await senders[0]!.publisher.detach();
    await eventually(async () => (await node.listFeeds(`slots-${rooms}`)).length === 1);
    const idle = await bob.subscriber.listSections({ feedId: 'eve', mid: '1' });
    expect(idle.map(({ subscriberMid, kind, stream }) => [subscriberMid, kind, stream])).toEqual([
      ['0', 'audio', null],
      ['1', 'video', null],
    ]);
    await senders[1]!.publisher.detach();
    await eventually(async () => (await node.listFeeds(`slots-${rooms}`)).length === 0);
    expect(await bob.subscriber.listSections(undefined)).toEqual([]);
  });
});

test('key frames can be requested of a publisher, and for sections of a subscriber, which continue', async () => {
  const { bob, senders } = await stage('ada');
  await senders[0]!.publisher.requestKeyFrames();
  // Requests that leave together change places about once in a hundred times, and the section then stays paused.
  for (let times = 0; times < 100; times += 1) await bob.subscriber.requestKeyFrames(['1']);
  await grows(bob, '1');
  expect((await bob.subscriber.listSections(undefined)).map(({ settings }) => settings.paused)).toEqual([false, false]);
  await bob.subscriber.requestKeyFrames([]);
  expect(bob.closed).toEqual([]);
});

describe('an ICE restart', () => {
  test('gives a subscriber new credentials, and its sections continue', async () => {
    const { bob } = await stage('ada', 'eve');
    const before = await bob.subscriber.update({ add: [{ feedId: 'eve', mid: '1' }], remove: [] });
    await bob.subscriber.answer(await bob.peer.answer(before!.sdp));
    const usersOf = (sdp: string) => new Set(sdp.match(/a=ice-ufrag:.*/g));
    for (let times = 0, last = before!.sdp; times < 2; times += 1) {
      const sdp = await bob.subscriber.restart();
      expect([...usersOf(sdp)].filter((user) => usersOf(last).has(user))).toEqual([]);
      await bob.subscriber.answer(await bob.peer.answer(sdp));
      await Promise.all(['0', '1', '2'].map((mid) => grows(bob, mid)));
      last = sdp;
    }
    bob.carried.push({ feedId: 'eve', mid: '1', subscriberMid: '2' });
    expect(await bob.change([{ feedId: 'eve', mid: '0' }])).toEqual(['ada/0', 'ada/1', 'eve/0', 'eve/1']);
    expect(bob.closed).toEqual([]);
  });
});

describe('talking', () => {
  test('is reported to the publisher that talks, with its level, and to no other', async () => {
    rooms += 1;
    const roomId = `slots-${rooms}`;
    await node.ensureRoom(roomId);
    const heard: string[] = [];
    const start = async (feedId: string) => {
      const publisher = await (await node.openSession()).attachPublisher(roomId, feedId);
      publisher.on('talking', (mid, level) => heard.push(`${feedId}/${mid} ${level === null ? 'stops' : level < 50}`));
      const peer = await createRtcPeer();
      peer.addVideo();
      const microphone = feedId === 'ada' ? peer.addAudio() : undefined;
      await peer.acceptAnswer(await publisher.publish(await peer.offer(), 10));
      peer.onCandidate((candidate) => void publisher.addCandidate(candidate).catch(() => undefined));
      return { peer, microphone };
    };
    await start('eve');
    const ada = await start('ada');
    await eventually(() => heard.length > 0);
    ada.microphone!.silence();
    await eventually(() => heard.length > 1);
    ada.microphone!.speak();
    await eventually(() => heard.length > 2);
    // No packet says that this speech ends.
    ada.microphone!.stop();
    await eventually(() => heard.length > 3);
    expect(heard).toEqual(['ada/1 true', 'ada/1 stops', 'ada/1 true', 'ada/1 stops']);
  });
});
