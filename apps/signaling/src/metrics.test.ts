import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { connectClient } from './client.testkit.js';
import { startTestSignaling, type TestInstance, type TestSignaling } from './signaling.testkit.js';

let kit: TestSignaling;
let instance: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  instance = await kit.start();
});

const valueOf = (sample: string) => instance.valueOf(`callplane_signaling_${sample}`);

test('counts joins by outcome, closes by reason, messages by type, and open connections and sessions', async () => {
  const counters = [
    ...['joined', 'resumed', 'invalid_token'].map((outcome) => `joins_total{outcome="${outcome}"`),
    ...['lost', 'left'].map((reason) => `closes_total{reason="${reason}"`),
    'messages_total{type="leave"',
    'join_duration_seconds_count',
  ];
  const values = () => Promise.all(counters.map(valueOf));
  // Sessions that another test file has left at this gateway are in their grace period.
  await eventually(async () => (await valueOf('sessions{')) === 0);
  const before = await values();
  const lost = await valueOf('closes_total{reason="lost"');
  const roomId = await kit.newRoom();
  const { client, welcome } = await kit.enter(instance.url, roomId);
  expect(await valueOf('connections{')).toBe(1);
  expect(await valueOf('sessions{')).toBe(1);
  client.terminate();
  await eventually(async () => (await valueOf('closes_total{reason="lost"')) === lost + 1);
  const again = await kit.resume(instance.url, welcome);
  again.client.send({ type: 'leave' });
  await again.client.untilClosed('left');
  const stranger = await connectClient(instance.url);
  stranger.send({ type: 'join', token: 'nonsense' });
  await stranger.untilClosed('invalid_token');

  const after = await values();
  expect(after.map((value, n) => value - before[n]!)).toEqual([1, 1, 1, 1, 1, 1, 2]);
  await eventually(async () => (await valueOf('connections{')) === 0);
  expect(await valueOf('sessions{')).toBe(0);
});

test('counts refused messages by their code, also invalid ones', async () => {
  const values = () =>
    Promise.all(['invalid_sdp', 'invalid_message'].map((code) => valueOf(`refusals_total{code="${code}"`)));
  const before = await values();
  const { client } = await kit.enter(instance.url, await kit.newRoom());
  await client.ask({ type: 'publish', sdp: 'v=0', tracks: [] }, 'error');
  await client.ask({ type: 'publish', sdp: 7, tracks: [] }, 'error');
  const after = await values();
  expect(after.map((value, at) => value - before[at]!)).toEqual([1, 1]);
});

test('counts reads of rooms by their reason; a join into a room that is empty or known needs none', async () => {
  const values = () => Promise.all(['changed', 'gap'].map((why) => valueOf(`room_reads_total{why="${why}"`)));
  const before = await values();
  const roomId = await kit.newRoom();
  const [ada, bob] = [await kit.enter(instance.url, roomId), await kit.enter(instance.url, roomId)];
  await ada.client.untilOthers((others) => others.size === 1);
  expect(await values()).toEqual(before);
  await ada.client.ask({ type: 'metadata', metadata: { seat: 1 } }, 'ok');
  const removed = bob.client.untilClosed('removed');
  await kit.remove(roomId, bob.participantId);
  await removed;
  await ada.client.untilOthers((others) => others.size === 0);
  const after = await values();
  expect(after.map((value, at) => value - before[at]!)).toEqual([1, 1]);
});
