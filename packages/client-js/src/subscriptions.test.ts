import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { CallplaneError, type CallplaneErrorCode } from './errors.js';
import type { ClientMessage } from './protocol.generated.js';
import type { Session } from './signaling/session.js';
import { Subscriptions, type Display } from './subscriptions.js';

const track = (participantId: string) => ({ participantId, trackId: 'camera' });
const display = (maxSpatial: number, isHidden = false): Display => ({ maxSpatial, isHidden, pixels: 100 });
const PAUSED = { layer: { spatial: 0 }, isPaused: true };

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function setUp(autoSubscribe = true) {
  const sent: ClientMessage[] = [];
  const missing = new Set<string>();
  const failures: CallplaneErrorCode[] = [];
  const session = {
    state: 'connected',
    request: (message: ClientMessage) => {
      sent.push(message);
      const isMissing = message.type === 'subscribe' && message.tracks.some((one) => missing.has(one.participantId));
      const code = isMissing ? 'not_found' : failures.shift();
      return code === undefined ? Promise.resolve({ type: 'ok' }) : Promise.reject(new CallplaneError(code, 'No.'));
    },
  };
  const subscriptions = new Subscriptions(session as unknown as Session, autoSubscribe);
  /** What was sent since the last call, once the present tick is over. */
  const take = async () => {
    await jest.advanceTimersByTimeAsync(0);
    return sent.splice(0).map((message) => ('tracks' in message ? [message.type, message.tracks] : message));
  };
  return { subscriptions, session, take, missing, failures };
}

describe('what is displayed and what the network carries', () => {
  test('is requested together for all tracks of a tick, and nothing twice', async () => {
    const { subscriptions, take } = setUp();
    subscriptions.display(track('ada'), display(1));
    subscriptions.display(track('eve'), display(0, true));
    subscriptions.display(track('ada'), display(2));
    expect(await take()).toEqual([
      [
        'subscribe',
        [
          { ...track('ada'), layer: { spatial: 2 }, paused: false },
          { ...track('eve'), layer: { spatial: 0 }, paused: true },
        ],
      ],
    ]);
    subscriptions.display(track('ada'), { ...display(2), pixels: 200 });
    subscriptions.limit(track('bob'), undefined);
    expect(await take()).toEqual([]);
    expect(subscriptions.displayOf(track('ada'))?.pixels).toBe(200);
  });

  test('gives the lower of two layers, and pauses what is hidden or does not fit', async () => {
    const { subscriptions, take } = setUp();
    const wanted = async () => (await take()).map((message) => (message as never[])[1]);
    subscriptions.display(track('ada'), display(1));
    expect(await wanted()).toEqual([[{ ...track('ada'), layer: { spatial: 1 }, paused: false }]]);
    subscriptions.limit(track('ada'), { layer: { spatial: 0, temporal: 1 }, isPaused: false });
    expect(await wanted()).toEqual([[{ ...track('ada'), layer: { spatial: 0, temporal: 1 }, paused: false }]]);
    subscriptions.limit(track('ada'), PAUSED);
    expect(await wanted()).toEqual([[{ ...track('ada'), layer: { spatial: 0 }, paused: true }]]);
    subscriptions.limit(track('ada'), undefined);
    expect(await wanted()).toEqual([[{ ...track('ada'), layer: { spatial: 1 }, paused: false }]]);
    subscriptions.gone(track('ada'), 'hidden');
    expect(await wanted()).toEqual([[{ ...track('ada'), layer: { spatial: 1 }, paused: true }]]);
  });

  test('is requested again if a request fails, with what is wanted by then, and not after the call', async () => {
    const { subscriptions, session, take, failures } = setUp();
    failures.push('connection_lost', 'no_answer');
    subscriptions.display(track('ada'), display(0));
    subscriptions.display(track('eve'), display(0));
    expect(await take()).toHaveLength(1);
    subscriptions.gone(track('eve'), 'left');
    subscriptions.limit(track('ada'), PAUSED);
    const paused = ['subscribe', [{ ...track('ada'), layer: { spatial: 0 }, paused: true }]];
    expect(await take()).toEqual([paused]);
    await jest.advanceTimersByTimeAsync(1_000);
    expect((await take())[0]).toMatchObject(['subscribe', expect.arrayContaining(paused[1] as object[])]);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await take()).toEqual([]);
    failures.push('closed');
    session.state = 'closed';
    subscriptions.display(track('ada'), display(1));
    await take();
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await take()).toEqual([]);
  });
});

describe('what the application chooses', () => {
  test('is the highest layer that display and network get', async () => {
    const { subscriptions, take } = setUp();
    await subscriptions.subscribe([
      { ...track('ada'), layer: { spatial: 1 } },
      { ...track('bob'), layer: { spatial: 1, temporal: 1 } },
    ]);
    await take();
    subscriptions.display(track('ada'), display(2));
    subscriptions.limit(track('bob'), { layer: { spatial: 1, temporal: 0 }, isPaused: false });
    expect(await take()).toEqual([
      ['subscribe', [{ ...track('bob'), layer: { spatial: 1, temporal: 0 }, paused: false }]],
    ]);
    expect(subscriptions.layerOf(track('ada'))).toEqual({ spatial: 1 });
  });

  test('without autoSubscribe, is all that is requested', async () => {
    const { subscriptions, take } = setUp(false);
    subscriptions.display(track('ada'), display(0, true));
    expect(await take()).toEqual([]);
    await subscriptions.subscribe([track('ada')]);
    expect(await take()).toEqual([['subscribe', [{ ...track('ada'), layer: { spatial: 0 }, paused: true }]]]);
  });

  test('is requested again at once after a reset, and one by one if a track is gone', async () => {
    const { subscriptions, take, missing } = setUp();
    const full = (id: string) => ({ ...track(id), paused: false });
    await subscriptions.subscribe([track('ada'), track('eve')]);
    await subscriptions.unsubscribe([track('bob')]);
    await take();
    await subscriptions.renew();
    expect(await take()).toEqual([
      ['subscribe', [full('ada'), full('eve')]],
      ['unsubscribe', [track('bob')]],
    ]);
    missing.add('ada');
    await subscriptions.renew();
    expect((await take()).slice(1, 3)).toEqual([
      ['subscribe', [full('ada')]],
      ['subscribe', [full('eve')]],
    ]);
    for (const id of ['ada', 'eve', 'bob']) subscriptions.gone(track(id), 'unpublished');
    await subscriptions.renew();
    expect(await take()).toEqual([]);
  });

  test('stays when the participant leaves, unlike display and limit', async () => {
    const { subscriptions, take } = setUp();
    await subscriptions.subscribe([{ ...track('ada'), layer: { spatial: 1 } }]);
    for (const id of ['ada', 'eve']) subscriptions.limit(track(id), PAUSED);
    await take();
    for (const id of ['ada', 'eve', 'unknown']) subscriptions.gone(track(id), 'left');
    await subscriptions.renew();
    expect(await take()).toEqual([['subscribe', [{ ...track('ada'), layer: { spatial: 1 }, paused: false }]]]);
  });
});
