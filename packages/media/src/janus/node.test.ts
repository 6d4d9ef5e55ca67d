import { once } from 'node:events';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createRtcPeer, eventually, startTestJanus, type TestJanus, hasMediaRoom } from '@callplane/testing';
import fc from 'fast-check';
import type { MediaError, StreamReference } from '../types.js';
import type { MediaNode } from './node.js';
import {
  handleLabels,
  nodeOn,
  startReceiver,
  startSender,
  UP_WITHIN_MS,
  type Receiver,
  type Sender,
} from './node.testkit.js';
import type { MediaSession } from './session.js';

let janus: TestJanus;
let node: MediaNode;
let session: MediaSession;
let rooms = 0;
let peers: (Sender | Receiver)[] = [];
/** Returns a unique room id: the tests share one server. */
const newRoom = async () => {
  rooms += 1;
  await node.ensureRoom(`room_${rooms}`);
  return `room_${rooms}`;
};
const sender = async (roomId: string, feedId: string) => {
  const made = await startSender(node, roomId, feedId);
  peers.push(made);
  return made;
};
const receiver = async (roomId: string) => {
  const made = await startReceiver(node, roomId);
  peers.push(made);
  return made;
};
const audioAndVideo = (feedId: string) => ['0', '1'].map((mid) => ({ feedId, mid }));

beforeAll(async () => {
  janus = await startTestJanus();
  node = nodeOn(janus);
  await node.untilUp(UP_WITHIN_MS);
  session = await node.openSession();
});
afterEach(async () => {
  for (const made of peers) {
    made.peer.close();
    await ('publisher' in made ? made.publisher : made.subscriber).detach();
  }
  peers = [];
});

describe('rooms', () => {
  test('a room is created once, visible to every process with the key, and gone after its destruction', async () => {
    const roomId = await newRoom();
    await node.ensureRoom(roomId);
    expect(await hasMediaRoom(node, roomId)).toBe(true);
    const other = nodeOn(janus, { id: 'other' });
    await other.untilUp(UP_WITHIN_MS);
    expect(await other.listRooms()).toContainEqual({ roomId, feeds: 0 });
    expect(await other.destroyRoom(roomId)).toBe('destroyed');
    expect(await hasMediaRoom(node, roomId)).toBe(false);
    expect(await node.destroyRoom(roomId)).toBe('absent');
    expect(await node.listRooms()).not.toContainEqual(expect.objectContaining({ roomId }));
  });

  test('missing rooms and feeds are reported as absent or as an error with its code', async () => {
    const roomId = await newRoom();
    expect(await node.listFeeds('nowhere')).toEqual([]);
    expect(await node.listFeeds(roomId)).toEqual([]);
    expect(await node.removeFeed('nowhere', 'nobody')).toBe('absent');
    expect(await node.removeFeed(roomId, 'nobody')).toBe('absent');
    await expect(session.attachPublisher('nowhere', 'feed')).rejects.toMatchObject({ code: 'no_such_room' });
    await expect(node.moderate('nowhere', 'feed', '0', true)).rejects.toMatchObject({ code: 'no_such_room' });
    await expect(node.moderate(roomId, 'feed', '0', true)).rejects.toMatchObject({ code: 'no_such_feed' });
  });

  test('creating, destroying and listing rooms fails without the key, and the error leaks no secret', async () => {
    const roomId = await newRoom();
    const stranger = nodeOn({ ...janus, url: janus.url, adminKey: 'guessed-admin-key' });
    await stranger.untilUp(UP_WITHIN_MS);
    const refused = [
      () => stranger.ensureRoom('room_new'),
      () => stranger.listRooms(),
      () => stranger.destroyRoom(roomId),
      () => stranger.removeFeed(roomId, 'nobody'),
    ];
    for (const call of refused) {
      const error = await call().catch((e: unknown) => e as MediaError);
      expect(error).toMatchObject({ code: 'refused' });
      expect(String((error as MediaError).stack)).not.toMatch(/admin-key|api-secret/);
    }
    expect(await hasMediaRoom(node, roomId)).toBe(true);
  });

  test('a node with a wrong API secret never comes up and says why', async () => {
    const stranger = nodeOn({ ...janus, url: janus.url, apiSecret: 'guessed' });
    const error = await stranger.untilUp(500).catch((e: unknown) => e as MediaError);
    expect(error).toMatchObject({ code: 'unavailable', cause: { janusCode: 403 } });
    expect(stranger.state).toBe('down');
    await expect(stranger.ensureRoom('room')).rejects.toMatchObject({ code: 'unavailable' });
  });
});

describe('a session', () => {
  test('continues at another process that claims it, with its peers and their running media', async () => {
    const roomId = await newRoom();
    const [first, second] = [nodeOn(janus, { id: 'first' }), nodeOn(janus, { id: 'second' })];
    await Promise.all([first.untilUp(UP_WITHIN_MS), second.untilUp(UP_WITHIN_MS)]);
    const ada = await startSender(first, roomId, 'ada-1');
    const bob = await startReceiver(first, roomId);
    await bob.change([{ feedId: 'ada-1', mid: '1' }]);
    await eventually(() => bob.peer.framesReceived('video') > 3);
    const labels = await handleLabels(janus);
    // As after SIGKILL: the connection ends without a request.
    await first.close();
    const [sending, receiving] = await Promise.all([
      second.claimSession(ada.session.id),
      second.claimSession(bob.session.id),
    ]);
    const publisher = sending.adoptPublisher(ada.publisher.handleId, 'ada-1');
    const subscriber = receiving.adoptSubscriber(bob.subscriber.handleId, roomId);
    const before = bob.peer.framesReceived('video');
    await eventually(() => bob.peer.framesReceived('video') > before + 3);
    expect((await handleLabels(janus)).filter((label) => label !== 'control' && labels.includes(label))).toEqual(
      labels.filter((label) => label !== 'control'),
    );
    // Both peers can be negotiated again.
    await ada.peer.acceptAnswer(await publisher.publish(await ada.peer.offer()));
    const offer = await subscriber.update({ add: [{ feedId: 'ada-1', mid: '0' }], remove: [] });
    await subscriber.answer(await bob.peer.answer(offer!.sdp));
    await eventually(() => bob.peer.framesReceived('audio') > 10);
    const ended = once(publisher, 'closed');
    ada.peer.close();
    expect(await ended).toHaveLength(1);
    await Promise.all([sending.destroy(), receiving.destroy()]);
    bob.peer.close();
  });

  test('that another process has claimed is disturbed by late requests, whose answers the claimant gets', async () => {
    const roomId = await newRoom();
    const [first, second] = [nodeOn(janus, { deadlines: { requestMs: 500 } }), nodeOn(janus, { id: 'second' })];
    await Promise.all([first.untilUp(UP_WITHIN_MS), second.untilUp(UP_WITHIN_MS)]);
    await sender(roomId, 'ada-1');
    const bob = await startReceiver(first, roomId);
    await bob.change([{ feedId: 'ada-1', mid: '1' }]);
    const claim = await second.claimSession(bob.session.id);
    const claimed = claim.adoptSubscriber(bob.subscriber.handleId, roomId);
    const disturbed = once(claimed, 'disturbed');
    // The first process does not know of the claim.
    const late = bob.subscriber.switch([{ feedId: 'ada-1', mid: '1', subscriberMid: '0' }]);
    await disturbed;
    const stream = { feedId: 'ada-1', mid: '1' };
    expect(await claimed.listSections(stream)).toMatchObject([{ subscriberMid: '0', stream }]);
    // It waits in vain for its answer, and frees the handle then.
    const closed = once(claimed, 'closed');
    await expect(late).rejects.toMatchObject({ code: 'timeout' });
    await closed;
    expect(bob.closed).toEqual(['no answer']);
    bob.peer.close();
  });

  test('that was destroyed cannot be claimed, and any process can destroy it', async () => {
    const own = await node.openSession();
    expect(await node.destroySession(own.id)).toBe('destroyed');
    expect(await node.destroySession(own.id)).toBe('absent');
    await expect(node.claimSession(own.id)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(own.attachPublisher(await newRoom(), 'feed')).rejects.toMatchObject({ code: 'unavailable' });
    expect(own.isOpen).toBe(false);
  });
});

describe('peers', () => {
  test('frames flow from a publisher to a subscriber, and stop when the stream is muted for all or unsubscribed', async () => {
    const roomId = await newRoom();
    const ada = await sender(roomId, 'ada-1');
    expect(await node.listFeeds(roomId)).toEqual(['ada-1']);
    const bob = await receiver(roomId);
    expect(await bob.change(audioAndVideo('ada-1'))).toEqual(['ada-1/0', 'ada-1/1']);
    await eventually(() => bob.peer.framesReceived('audio') > 10 && bob.peer.framesReceived('video') > 3);
    // Nothing changes, so there is nothing to negotiate.
    expect(await bob.change(audioAndVideo('ada-1'))).toBeNull();

    await node.moderate(roomId, 'ada-1', '1', true);
    await stillStands(() => bob.peer.framesReceived('video'));
    await node.moderate(roomId, 'ada-1', '1', false);
    const muted = bob.peer.framesReceived('video');
    await eventually(() => bob.peer.framesReceived('video') > muted + 3);

    expect(await bob.change([], [{ feedId: 'ada-1', mid: '1' }])).toEqual(['ada-1/0']);
    await stillStands(() => bob.peer.framesReceived('video'));
    expect(bob.peer.connectionState()).toBe('connected');
    expect([...ada.closed, ...bob.closed]).toEqual([]);
  });

  test('one peer connection carries added and removed streams', async () => {
    const roomId = await newRoom();
    await sender(roomId, 'ada-1');
    await sender(roomId, 'eve-1');
    const bob = await receiver(roomId);
    await bob.change([{ feedId: 'ada-1', mid: '0' }]);
    expect(await bob.change([{ feedId: 'eve-1', mid: '0' }])).toEqual(['ada-1/0', 'eve-1/0']);
    const moved = await bob.change([{ feedId: 'eve-1', mid: '1' }], [{ feedId: 'ada-1', mid: '0' }]);
    expect(moved).toEqual(['eve-1/0', 'eve-1/1']);
    await eventually(() => bob.peer.framesReceived('video') > 3);
    // Removes everything and adds it again: Janus reuses the sections.
    expect(await bob.change([], audioAndVideo('eve-1'))).toEqual([]);
    const before = bob.peer.framesReceived('video');
    expect(await bob.change([{ feedId: 'ada-1', mid: '1' }])).toEqual(['ada-1/1']);
    await eventually(() => bob.peer.framesReceived('video') > before + 3);
  });

  test('after any additions and removals, a subscriber receives exactly the requested streams that exist', async () => {
    const roomId = await newRoom();
    for (const feedId of ['ada-1', 'eve-1']) await sender(roomId, feedId);
    const existing = ['ada-1', 'eve-1'].flatMap(audioAndVideo);
    const stream = fc.constantFrom(...existing, { feedId: 'ada-1', mid: '9' }, { feedId: 'nobody', mid: '0' });
    const streams = fc.array(stream, { maxLength: 4 });
    const nameOf = ({ feedId, mid }: StreamReference) => `${feedId}/${mid}`;
    const exists = new Set(existing.map(nameOf));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(streams, streams), { minLength: 1, maxLength: 6 }), async (changes) => {
        const bob = await startReceiver(node, roomId);
        let expected = new Set<string>();
        try {
          for (const [add, remove] of changes) {
            const before = expected;
            expected = new Set([...before].filter((name) => !remove.map(nameOf).includes(name)));
            for (const name of add.map(nameOf)) if (exists.has(name)) expected.add(name);
            const received = await bob.change(add, remove);
            // Without an offer nothing has changed.
            expect(received ?? [...before].sort()).toEqual([...expected].sort());
          }
          expect(bob.closed).toEqual([]);
        } finally {
          bob.peer.close();
          await bob.subscriber.detach();
        }
      }),
      { numRuns: 25 },
    );
  });

  test('missing streams are skipped, whatever other streams the change names', async () => {
    const roomId = await newRoom();
    await sender(roomId, 'ada-1');
    const bob = await receiver(roomId);
    const missing = [
      { feedId: 'nobody', mid: '0' },
      { feedId: 'ada-1', mid: '7' },
    ];
    expect(await bob.change(missing)).toBeNull();
    expect(await bob.change([...missing, { feedId: 'ada-1', mid: '1' }])).toEqual(['ada-1/1']);
    expect(await bob.change(missing, missing)).toBeNull();
    await eventually(() => bob.peer.framesReceived('video') > 3);
    // The probe that looked up the published streams has left nothing behind.
    expect(await node.listRooms()).toContainEqual({ roomId, feeds: 1 });
    await node.destroyRoom(roomId);
    await expect(bob.subscriber.update({ add: missing, remove: [] })).rejects.toMatchObject({ code: 'no_such_room' });
  });

  test('a feed changes with another offer, and ends with its handle', async () => {
    const roomId = await newRoom();
    const publisher = await session.attachPublisher(roomId, 'ada-1');
    const peer = await createRtcPeer();
    const connected = once(publisher, 'connected');
    peer.addAudio();
    await peer.acceptAnswer(await publisher.publish(await peer.offer()));
    peer.onCandidate((candidate) => void publisher.addCandidate(candidate).catch(() => undefined));
    await connected;
    const bob = await receiver(roomId);
    const video = peer.addVideo();
    await peer.acceptAnswer(await publisher.publish(await peer.offer()));
    expect(video.mid()).toBe('1');
    await bob.change([{ feedId: 'ada-1', mid: '1' }]);
    await eventually(() => bob.peer.framesReceived('video') > 3);
    peer.close();
    await publisher.detach();
    await publisher.detach();
    // Janus answers before it has taken the feed out of the room.
    await eventually(async () => (await node.listFeeds(roomId)).length === 0);
    await expect(publisher.publish('v=0')).rejects.toMatchObject({ code: 'closed' });
  });

  test('a publisher whose browser is gone ends and leaves the room', async () => {
    const roomId = await newRoom();
    const ada = await sender(roomId, 'ada-1');
    ada.peer.close();
    await eventually(() => ada.closed.length > 0);
    await eventually(async () => (await node.listFeeds(roomId)).length === 0);
  });

  test('an invalid session description is rejected as such, and the handle stays usable', async () => {
    const roomId = await newRoom();
    const publisher = await session.attachPublisher(roomId, 'ada-1');
    for (const sdp of ['', 'v=0\r\nhello', 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n']) {
      await expect(publisher.publish(sdp)).rejects.toMatchObject({ code: 'invalid_sdp' });
    }
    const peer = await createRtcPeer();
    peer.addAudio();
    expect(await publisher.publish(await peer.offer())).toContain('m=audio');
    await publisher.detach();
    peer.close();
  });

  test('a feed id is unique in a room; another process can remove the feed, and its owner gets an event', async () => {
    const roomId = await newRoom();
    const ada = await sender(roomId, 'ada-1');
    const bob = await receiver(roomId);
    await bob.change(audioAndVideo('ada-1'));
    await eventually(() => bob.peer.framesReceived('video') > 3);
    await expect(session.attachPublisher(roomId, 'ada-1')).rejects.toMatchObject({ code: 'feed_exists' });
    const other = nodeOn(janus, { id: 'other' });
    await other.untilUp(UP_WITHIN_MS);
    expect(await other.removeFeed(roomId, 'ada-1')).toBe('removed');
    expect(await other.removeFeed(roomId, 'ada-1')).toBe('absent');
    expect(await other.listFeeds(roomId)).toEqual([]);
    await eventually(() => ada.closed.length > 0);
    // The handle is freed without a call to detach().
    await eventually(async () => !(await handleLabels(janus)).includes('ada-1'));
    expect(ada.closed).toEqual(['kicked']);
    await expect(ada.publisher.publish(await ada.peer.offer())).rejects.toMatchObject({ code: 'closed' });
    await stillStands(() => bob.peer.framesReceived('video'));
  });

  test('publishers get an event when their room is destroyed', async () => {
    const roomId = await newRoom();
    const ada = await sender(roomId, 'ada-1');
    const bob = await receiver(roomId);
    await bob.change(audioAndVideo('ada-1'));
    await node.destroyRoom(roomId);
    await eventually(() => ada.closed.length > 0);
    expect(ada.closed).toEqual(['room destroyed']);
    await stillStands(() => bob.peer.framesReceived('video'));
    await bob.subscriber.detach();
    await ada.publisher.detach();
  });
});

/** Waits until a count has not changed for 600 ms. A running video of 15 frames a second would change it 9 times. */
async function stillStands(count: () => number): Promise<void> {
  let last = count();
  let since = performance.now();
  await eventually(() => {
    if (count() !== last) {
      last = count();
      since = performance.now();
    }
    return performance.now() - since > 600;
  });
}
