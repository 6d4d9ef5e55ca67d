import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
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

  test('ends with exactly the muted tracks held back after any mutes and failures, and asks for nothing more then', async () => {
    const command = fc.oneof(
      fc.record({ type: fc.constant('mute' as const), at: fc.nat(1), muted: fc.boolean() }),
      fc.record({
        type: fc.constant('answer' as const),
        outcome: fc.constantFrom('carried out', 'carried out without an answer', 'lost', 'refused'),
      }),
      fc.record({ type: fc.constant('pause' as const), ms: fc.constantFrom(500, 2_000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 20 }), async (commands) => {
        const { feed, gate, node, mute } = await moderated();
        const held = [false, false];
        let answered = 0;
        const answer = async (outcome = 'carried out') => {
          const [, mid, muted] = /(\d) (\w+)$/.exec(node.did[answered] ?? '') ?? [];
          if (mid === undefined) return;
          answered += 1;
          if (outcome.startsWith('carried out')) held[Number(mid)] = muted === 'true';
          const failure = mediaError(outcome === 'refused' ? 'refused' : 'timeout');
          gate.open('moderate', outcome === 'carried out' ? undefined : failure);
          await settled();
        };
        for (const one of commands) {
          if (one.type === 'mute') await mute(one.at, one.muted);
          else if (one.type === 'answer') await answer(one.outcome);
          else await jest.advanceTimersByTimeAsync(one.ms);
        }
        for (let rounds = 0; rounds < 8; rounds += 1) {
          await answer();
          await jest.advanceTimersByTimeAsync(2_000);
        }
        expect(held).toEqual(feed.tracks.map(({ muted }) => muted));
        expect([node.did.length, jest.getTimerCount()]).toEqual([answered, 0]);
      }),
      { numRuns: 100 },
    );
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

  test('sends nothing for a session that another gateway holds by then', async () => {
    const { session, mute, requests, answer } = await moderated();
    await mute(0, true);
    session.isLive = false;
    await answer(mediaError('timeout'));
    await jest.advanceTimersByTimeAsync(10_000);
    expect(requests()).toEqual(['0 true']);
  });
});
