import { beforeAll, expect, test } from '@jest/globals';
import { eventually, startTestRedis, stopAtEnd, type TestServer } from '@callplane/testing';
import { connectRedis, disconnectRedis, type RedisClient } from '../redis/redis.js';
import { publishRoomChanged, RoomBus } from './room-bus.js';

let redis: TestServer;
let publisher: RedisClient;
const silent = { onLost: () => undefined, onReady: () => undefined };
beforeAll(async () => {
  redis = await startTestRedis();
  publisher = connectRedis(redis.url, 'command', silent);
  stopAtEnd(() => disconnectRedis(publisher));
  await eventually(() => publisher.status === 'ready');
});

async function startBus(instanceId: string) {
  const received: unknown[] = [];
  const invalid: string[] = [];
  const events = { ...silent, onInvalid: ({ message }: Error) => invalid.push(message) };
  const bus = new RoomBus({ redisUrl: redis.url, instanceId, publisher, events });
  stopAtEnd(() => bus.close());
  const listen = (roomId: string) =>
    bus.subscribe(roomId, {
      changed: (version) => void received.push({ roomId, version }),
      message: (message) => void received.push({ roomId, message }),
      report: (kind, report, from) => void received.push({ roomId, kind, report, from }),
    });
  await eventually(() => bus.isListening);
  return { bus, received, invalid, listen };
}
const subscribers = async (roomId: string) => (await publisher.pubsub('NUMSUB', `callplane:room:${roomId}`))[1];

test('an instance receives only notices of its own rooms, and neither its own notices nor its own messages', async () => {
  const [one, two] = [await startBus('one'), await startBus('two')];
  one.listen('room_a');
  two.listen('room_a');
  two.listen('room_b');
  await eventually(async () => (await subscribers('room_a')) === 2 && (await subscribers('room_b')) === 1);
  const message = { from: 'part_a', to: null, text: '"ä"' };
  expect(await one.bus.publishMessage('room_a', message)).toBe(true);
  expect(await publishRoomChanged(publisher, 'room_b', 7)).toBe(true);
  expect(await one.bus.publishReport('room_a', 'speakers', [])).toBe(true);
  expect(await one.bus.publishChanged('room_a', 4)).toBe(true);
  expect(await publishRoomChanged(publisher, 'room_a', null)).toBe(true);
  await eventually(() => two.received.length === 5 && one.received.length === 1);
  expect(two.received).toEqual([
    { roomId: 'room_a', message },
    { roomId: 'room_b', version: 7 },
    { roomId: 'room_a', kind: 'speakers', report: [], from: 'one' },
    { roomId: 'room_a', version: 4 },
    { roomId: 'room_a', version: null },
  ]);
  expect(one.received).toEqual([{ roomId: 'room_a', version: null }]);
  two.bus.unsubscribe('room_a');
  await eventually(async () => (await subscribers('room_a')) === 1);
});

test('the room bus ignores payloads of another release, and drops and reports invalid ones', async () => {
  const bus = await startBus('three');
  bus.listen('room_c');
  await eventually(async () => (await subscribers('room_c')) === 1);
  const notices = [
    '',
    'null',
    '[]',
    '{"type":"changed"}',
    '{"v":1}',
    '{"v":1,"type":"changed"}',
    '{"v":1,"type":"changed","range":{"version":-1}}',
    '{"v":1,"type":"changed","range":{"version":1e999}}',
    '{"v":1,"type":"message","from":"x","message":1}',
    `{"v":1,"type":"message","from":"x","message":{"from":"part_a","to":null,"text":"${'x'.repeat(20_000)}"}}`,
    '{"v":1,"type":"report","from":"x","report":[]}',
    `"${'x'.repeat(2 ** 20)}"`,
  ];
  for (const text of ['{"v":2,"type":"message","from":"x","message":1}', ...notices]) {
    await publisher.publish('callplane:room:room_c', text);
  }
  // As gateways of an earlier release send it.
  const changes = { version: 9, sessions: [] };
  const earlier = { v: 1, from: 'old', type: 'changed', roomId: 'room_c', range: { after: 8, version: 9 }, changes };
  await publisher.publish('callplane:room:room_c', JSON.stringify(earlier));
  await eventually(() => bus.received.length > 0);
  expect(bus.received).toEqual([{ roomId: 'room_c', version: 9 }]);
  expect(bus.invalid).toHaveLength(notices.length);
});

test('the room bus fails to publish at once while Redis is stopped, and renews old and new subscriptions afterwards', async () => {
  const bus = await startBus('four');
  bus.listen('room_d');
  await eventually(async () => (await subscribers('room_d')) === 1);
  await redis.stop();
  const startedAt = performance.now();
  expect(await bus.bus.publishMessage('room_d', { from: 'part_a', to: null, text: '"lost"' })).toBe(false);
  expect(await publishRoomChanged(publisher, 'room_d', null)).toBe(false);
  expect(performance.now() - startedAt).toBeLessThan(5000);
  bus.listen('room_e');
  await redis.start();
  await eventually(async () => (await subscribers('room_d')) === 1 && (await subscribers('room_e')) === 1);
  await publishRoomChanged(publisher, 'room_d', null);
  await publishRoomChanged(publisher, 'room_e', null);
  await eventually(() => bus.received.length === 2);
});
