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

async function valueOf(sample: string): Promise<number> {
  const line = (await instance.metrics()).split('\n').find((each) => each.startsWith(sample));
  return line === undefined ? 0 : Number(line.split(' ').at(-1));
}

test('counts joins by outcome, closes by reason, messages by type, and open connections and sessions', async () => {
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

test('counts reads of rooms by their reason, and frames by whether several clients get the same text', async () => {
  const values = () =>
    Promise.all(
      ['room_reads_total{why="changed"', 'frames_total{shared="true"', 'frames_total{shared="false"'].map((sample) =>
        valueOf(`callplane_signaling_${sample}`),
      ),
    );
  const [reads, shared, own] = await values();
  const roomId = await kit.newRoom();
  const [ada, bob] = [await kit.enter(instance.url, roomId), await kit.enter(instance.url, roomId)];
  await ada.client.until('participantJoined');
  await ada.client.ask({ type: 'ping' }, 'pong');
  const removed = bob.client.untilClosed('removed');
  await kit.remove(roomId, bob.participantId);
  await removed;
  await ada.client.until('participantLeft');
  // Frames of their own: two welcomes, a pong and a close reason. Shared: participantJoined and participantLeft.
  const after = await values();
  expect(after.map((value, at) => value - [reads, shared, own][at]!)).toEqual([2, 2, 4]);
  expect(await valueOf('callplane_signaling_room_reads_total{why="gap"')).toBe(1);
  expect(await valueOf('callplane_signaling_room_reads_total{why="complete"')).toBe(0);
});
