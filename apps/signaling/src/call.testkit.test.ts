import { expect, test } from '@jest/globals';
import { createRtcPeer, eventually } from '@callplane/testing';
import { startCall, type SentTrack } from './call.testkit.js';
import type { ServerMessage } from '@callplane/protocol';
import type { Joined, TestSignaling } from './signaling.testkit.js';

const SILENT: SentTrack = { trackId: 'mic', source: 'microphone', add: (peer) => peer.addAudio({ sends: false }) };

/** A call without a gateway: the test sends the client its messages. */
function startAlone() {
  const sent: { type: string; offerId?: number }[] = [];
  let listener: (message: ServerMessage) => void = () => undefined;
  const client = {
    closed: null as object | null,
    all: (one: typeof listener) => (listener = one),
    send: (message: { type: string }) => sent.push(message),
    request: (message: { type: string }) => {
      sent.push(message);
      return Promise.reject(new Error('no answer yet'));
    },
    leave: () => {
      client.closed = {};
    },
  };
  const call = startCall({} as TestSignaling, { client } as unknown as Joined);
  const receive = (message: object) => listener(message as ServerMessage);
  return { call, sent, receive };
}

test('a message that the client cannot process fails the end of the call, which closes its peers, and no later message', async () => {
  const { call, sent, receive } = startAlone();
  const other = await createRtcPeer();
  SILENT.add(other);
  receive({ type: 'offer', offerId: 1, sdp: 'nonsense' });
  receive({ type: 'offer', offerId: 2, sdp: await other.offer() });
  await eventually(() => sent.some(({ type, offerId }) => type === 'answer' && offerId === 2));
  const peer = call.subscriber()!;
  await expect(call.end()).rejects.toThrow('could not process');
  expect([peer.connectionState(), call.subscriber()]).toEqual(['closed', undefined]);
});

test('a publication in flight leaves no peer open after the end of the call, and none begins', async () => {
  const { call, sent } = startAlone();
  const refused = expect(call.publish([SILENT])).rejects.toThrow('instead of published');
  await eventually(() => sent.some(({ type }) => type === 'publish'));
  await call.end();
  await refused;
  expect(call.publisher()?.connectionState()).toBe('closed');
  await expect(call.publishAnew([SILENT])).rejects.toThrow('has ended');
});
