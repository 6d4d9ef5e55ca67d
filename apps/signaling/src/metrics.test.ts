import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { connectClient } from './client.testkit.js';
import { startTestSignaling, type TestInstance, type TestSignaling } from './signaling.testkit.js';

let kit: TestSignaling;
let instance: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  instance = await kit.start();
});
afterAll(() => kit.close());

test('joins by outcome, connections by reason, messages by type, and what is held', async () => {
  const valueOf = async (sample: string): Promise<number> => {
    const line = (await instance.metrics()).split('\n').find((each) => each.startsWith(sample));
    return line === undefined ? 0 : Number(line.split(' ').at(-1));
  };
  const roomId = await kit.newRoom();
  const { client, welcome } = await kit.enter(instance.url, roomId);
  expect(await valueOf('callplane_signaling_connections{')).toBe(1);
  expect(await valueOf('callplane_signaling_sessions{')).toBe(1);
  client.terminate();
  await eventually(async () => (await valueOf('callplane_signaling_closes_total{reason="lost"')) === 1);
  const again = await kit.resume(instance.url, welcome);
  again.client.send({ type: 'leave' });
  await again.client.untilClosed('left');
  const stranger = await connectClient(instance.url);
  stranger.send({ type: 'join', token: 'nonsense' });
  await stranger.untilClosed('invalid_token');

  expect(await valueOf('callplane_signaling_joins_total{outcome="joined"')).toBe(1);
  expect(await valueOf('callplane_signaling_joins_total{outcome="resumed"')).toBe(1);
  expect(await valueOf('callplane_signaling_joins_total{outcome="invalid_token"')).toBe(1);
  expect(await valueOf('callplane_signaling_join_duration_seconds_count')).toBe(2);
  expect(await valueOf('callplane_signaling_closes_total{reason="left"')).toBe(1);
  expect(await valueOf('callplane_signaling_messages_total{type="leave"')).toBe(1);
  await eventually(async () => (await valueOf('callplane_signaling_connections{')) === 0);
  expect(await valueOf('callplane_signaling_sessions{')).toBe(0);
});
