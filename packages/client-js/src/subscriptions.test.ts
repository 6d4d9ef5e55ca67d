import { describe, expect, test } from '@jest/globals';
import { CallplaneError } from './errors.js';
import type { ClientMessage } from './protocol.generated.js';
import type { Session } from './signaling/session.js';
import { Subscriptions } from './subscriptions.js';

const track = (participantId: string) => ({ participantId, trackId: 'camera' });

function setUp(autoSubscribe = true) {
  const sent: ClientMessage[] = [];
  const missing = new Set<string>();
  const session = {
    connected: () => Promise.resolve(),
    request: (message: ClientMessage) => {
      sent.push(message);
      const isMissing = message.type === 'subscribe' && message.tracks.some((one) => missing.has(one.participantId));
      return isMissing ? Promise.reject(new CallplaneError('not_found', 'No.')) : Promise.resolve({ type: 'ok' });
    },
  };
  const subscriptions = new Subscriptions(session as unknown as Session, autoSubscribe);
  const take = () => sent.splice(0).map((message) => ('tracks' in message ? [message.type, message.tracks] : message));
  return { subscriptions, take, missing };
}

describe('subscriptions', () => {
  test('adapt all tracks with one request, and never above the layer of the application', async () => {
    const { subscriptions, take } = setUp();
    await subscriptions.subscribe([
      { ...track('ada'), layer: { spatial: 1 } },
      { ...track('bob'), layer: { spatial: 1, temporal: 1 } },
    ]);
    take();
    await subscriptions.adapt([
      { ...track('ada'), layer: { spatial: 2 }, paused: false },
      { ...track('bob'), layer: { spatial: 1, temporal: 0 }, paused: false },
      { ...track('eve'), layer: { spatial: 0 }, paused: true },
    ]);
    expect(take()).toEqual([
      [
        'subscribe',
        [
          { ...track('ada'), layer: { spatial: 1 }, paused: false },
          { ...track('bob'), layer: { spatial: 1, temporal: 0 }, paused: false },
          { ...track('eve'), layer: { spatial: 0 }, paused: true },
        ],
      ],
    ]);
  });

  test('never adapt a track that the application has unsubscribed from', async () => {
    const { subscriptions, take } = setUp();
    await subscriptions.unsubscribe([track('ada')]);
    take();
    await subscriptions.adapt([{ ...track('ada'), paused: false }]);
    expect(take()).toEqual([]);
  });

  test('without autoSubscribe adapt no track before the application subscribes to it', async () => {
    const { subscriptions, take } = setUp(false);
    await subscriptions.adapt([{ ...track('ada'), layer: { spatial: 0 }, paused: true }]);
    expect(take()).toEqual([]);
    await subscriptions.subscribe([track('ada')]);
    expect(take()).toEqual([['subscribe', [{ ...track('ada'), layer: { spatial: 0 }, paused: true }]]]);
  });

  test('adapt the other tracks if one of them is gone', async () => {
    const { subscriptions, take, missing } = setUp();
    missing.add('ada');
    await subscriptions.adapt([
      { ...track('ada'), paused: true },
      { ...track('eve'), paused: true },
    ]);
    expect(take().at(-1)).toEqual(['subscribe', [{ ...track('eve'), paused: true }]]);
  });

  test('are repeated at once after a reset, and one by one if a track is gone', async () => {
    const { subscriptions, take, missing } = setUp();
    await subscriptions.subscribe([track('ada'), track('eve')]);
    await subscriptions.unsubscribe([track('bob')]);
    take();
    await subscriptions.renew();
    expect(take()).toEqual([
      ['subscribe', [track('ada'), track('eve')]],
      ['unsubscribe', [track('bob')]],
    ]);
    missing.add('ada');
    await subscriptions.renew();
    expect(take().slice(1, 3)).toEqual([
      ['subscribe', [track('ada')]],
      ['subscribe', [track('eve')]],
    ]);
    subscriptions.forget(track('ada'));
    subscriptions.forget(track('eve'));
    subscriptions.forget(track('bob'));
    await subscriptions.renew();
    expect(take()).toEqual([]);
  });

  test('keep of those who leave only what the application has chosen', async () => {
    const { subscriptions, take } = setUp();
    await subscriptions.subscribe([{ ...track('ada'), layer: { spatial: 1 } }]);
    await subscriptions.adapt([
      { ...track('ada'), paused: true },
      { ...track('eve'), paused: true },
    ]);
    take();
    for (const id of ['ada', 'eve', 'unknown']) subscriptions.forgetAdaptation(track(id));
    await subscriptions.renew();
    expect(take()).toEqual([['subscribe', [{ ...track('ada'), layer: { spatial: 1 } }]]]);
  });
});
