import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Feed } from './feed.js';
import { asNode, FakeNode, FakeSession, Gate, mediaError, placesOn } from './media.testkit.js';

/** A feed with two microphones, both not muted. */
async function attach() {
  const gate = new Gate();
  const [node, session] = [new FakeNode(gate), new FakeSession(gate)];
  const place = { node: asNode(node), generation: 1, session: () => node.openSession() as never };
  const at = { node: asNode(node), feedId: 'feed', peerConnection: 'peer connection' };
  const listener = { onConnected: () => undefined, onEnded: () => undefined };
  const feed = new Feed(session.deps(placesOn(node)), session.asOwner, at, listener);
  await feed.attach(place);
  feed.tracks = ['mic', 'second mic'].map((trackId, at) => ({
    trackId,
    mid: String(at),
    kind: 'audio',
    source: 'microphone',
    muted: false,
  }));
  return { gate, node, session, feed };
}

test('the tracks of a feed carry no speech any more once the feed is closed, and are reported once', async () => {
  const { session, feed } = await attach();
  feed.forget();
  await feed.close();
  expect(session.spoken).toEqual([
    ['part_1/mic', null],
    ['part_1/second mic', null],
  ]);
});

describe('the moderation of a feed', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });
  const settled = () => jest.advanceTimersByTimeAsync(0);
  /** Attaches the feed, and returns functions that mute a track, and that list the requests since the last call. */
  async function moderated() {
    const all = await attach();
    all.gate.hold('moderate');
    const mute = async (at: number, muted: boolean) => {
      all.feed.tracks[at]!.muted = muted;
      void all.feed.moderation.agree();
      await settled();
    };
    const requests = () => all.node.did.splice(0).map((what) => what.replace(`moderate ${all.feed.feedId}/`, ''));
    const answer = async (outcome?: Error) => {
      all.gate.open('moderate', outcome);
      await settled();
    };
    return { ...all, mute, requests, answer };
  }

  test('relays a track again that is unmuted after a mute without an answer, because the mute may have happened', async () => {
    const { mute, requests, answer } = await moderated();
    await mute(0, true);
    await answer(mediaError('timeout'));
    await mute(0, false);
    expect(requests()).toEqual(['0 true', '0 false']);
    await answer();
    // Now the media server and the room agree.
    await jest.advanceTimersByTimeAsync(10_000);
    expect(requests()).toEqual([]);
  });

  test('mutes a track although the request for another one fails, and repeats only what failed', async () => {
    const { feed, mute, requests, answer } = await moderated();
    feed.tracks[0]!.muted = true;
    await mute(1, true);
    expect(requests()).toEqual(['0 true', '1 true']);
    await answer(mediaError('refused'));
    await answer();
    await jest.advanceTimersByTimeAsync(2_000);
    expect(requests()).toEqual(['0 true']);
    await answer();
  });

  test('repeats once after any number of failures, and ends with the feed', async () => {
    const { feed, mute, requests, answer } = await moderated();
    for (const muted of [true, false, true]) {
      await mute(0, muted);
      await answer(mediaError('timeout'));
    }
    expect(requests()).toHaveLength(3);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(requests()).toEqual(['0 true']);
    await answer(mediaError('timeout'));
    expect(jest.getTimerCount()).toBe(1);
    feed.forget();
    await jest.advanceTimersByTimeAsync(10_000);
    expect([requests(), jest.getTimerCount()]).toEqual([[], 0]);
  });

  test('repeats what is refused every two seconds, and sends a change at once', async () => {
    const { mute, requests, answer } = await moderated();
    await mute(0, true);
    for (let times = 0; times < 3; times += 1) {
      await answer(mediaError('refused'));
      await jest.advanceTimersByTimeAsync(1_999);
      expect(requests()).toEqual(['0 true']);
      await jest.advanceTimersByTimeAsync(1);
    }
    await answer(mediaError('refused'));
    await mute(1, true);
    expect(requests()).toEqual(['0 true', '0 true', '1 true']);
    await answer();
    await answer();
    expect(jest.getTimerCount()).toBe(0);
  });

  test('repeats nothing for a feed that the media server does not have, until the next change', async () => {
    const { mute, requests, answer } = await moderated();
    await mute(0, true);
    await answer(mediaError('no_such_feed'));
    expect([requests(), jest.getTimerCount()]).toEqual([['0 true'], 0]);
    await mute(0, false);
    expect(requests()).toEqual(['0 false']);
    await answer();
  });

  test('sends the latest state once after any number of changes during a request', async () => {
    const { mute, requests, answer } = await moderated();
    for (const muted of [true, false, true, false]) await mute(0, muted);
    expect(requests()).toEqual(['0 true']);
    await answer(mediaError('timeout'));
    expect(requests()).toEqual(['0 false']);
    await answer(mediaError('timeout'));
    await settled();
    expect(requests()).toEqual([]);
  });

  test('sends nothing for a session that another gateway holds by then', async () => {
    const { session, mute, requests, answer } = await moderated();
    await mute(0, true);
    session.isLive = false;
    await answer(mediaError('timeout'));
    await jest.advanceTimersByTimeAsync(10_000);
    expect(requests()).toEqual(['0 true']);
  });
});
