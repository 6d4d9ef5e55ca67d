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
  const bus = new RoomBus({ redisUrl: redis.url, instanceId, publisher, events: silent });
  stopAtEnd(() => bus.close());
  const received: unknown[] = [];
  const listen = (roomId: string) =>
    bus.subscribe(roomId, {
      changed: (notice) => received.push({ roomId, ...notice }),
      message: (message, from) => received.push({ roomId, message, from }),
      report: (kind, report, from) => received.push({ roomId, kind, report, from }),
    });
  await eventually(() => bus.isListening);
  return { bus, received, listen };
}
const subscribers = async (roomId: string) => (await publisher.pubsub('NUMSUB', `callplane:room:${roomId}`))[1];

test('an instance receives only notices of its own rooms, and neither its own notices nor its own messages', async () => {
  const [one, two] = [await startBus('one'), await startBus('two')];
  one.listen('room_a');
  two.listen('room_a');
  two.listen('room_b');
  await eventually(async () => (await subscribers('room_a')) === 2 && (await subscribers('room_b')) === 1);
  expect(await one.bus.publishMessage('room_a', { hello: 'ä' })).toBe(true);
  expect(await publishRoomChanged(publisher, 'room_b', 7)).toBe(true);
  expect(await one.bus.publishReport('room_a', 'speakers', [])).toBe(true);
  const notice = { range: { after: 3, version: 4 }, changes: { some: ['change'] } };
  expect(await one.bus.publishChanged('room_a', notice)).toBe(true);
  expect(await publishRoomChanged(publisher, 'room_a', null)).toBe(true);
  await eventually(() => two.received.length === 5 && one.received.length === 1);
  expect(two.received).toEqual([
    { roomId: 'room_a', message: { hello: 'ä' }, from: 'one' },
    { roomId: 'room_b', range: { after: null, version: 7 } },
    { roomId: 'room_a', kind: 'speakers', report: [], from: 'one' },
    { roomId: 'room_a', ...notice },
    { roomId: 'room_a', range: { after: null, version: null } },
  ]);
  expect(one.received).toEqual([{ roomId: 'room_a', range: { after: null, version: null } }]);
  two.bus.unsubscribe('room_a');
  await eventually(async () => (await subscribers('room_a')) === 1);
});

test('a notice that is too long is sent without its changes', async () => {
  const [one, two] = [await startBus('long-one'), await startBus('long-two')];
  two.listen('room_g');
  await eventually(async () => (await subscribers('room_g')) === 1);
  const range = { after: 1, version: 2 };
  await one.bus.publishChanged('room_g', { range, changes: 'x'.repeat(64 * 1024) });
  await eventually(() => two.received.length === 1);
  expect(two.received).toEqual([{ roomId: 'room_g', range }]);
});

test('the room bus ignores payloads of another release', async () => {
  const bus = await startBus('three');
  bus.listen('room_c');
  await eventually(async () => (await subscribers('room_c')) === 1);
  for (const text of ['', 'null', '[]', '{"v":2,"type":"message","from":"x","message":1}', '{"type":"changed"}']) {
    await publisher.publish('callplane:room:room_c', text);
  }
  await publishRoomChanged(publisher, 'room_c', null);
  await eventually(() => bus.received.length > 0);
  expect(bus.received).toEqual([{ roomId: 'room_c', range: { after: null, version: null } }]);
});

test('the room bus fails to publish at once while Redis is stopped, and renews old and new subscriptions afterwards', async () => {
  const bus = await startBus('four');
  bus.listen('room_d');
  await eventually(async () => (await subscribers('room_d')) === 1);
  await redis.stop();
  const startedAt = performance.now();
  expect(await bus.bus.publishMessage('room_d', 'lost')).toBe(false);
  expect(await publishRoomChanged(publisher, 'room_d', null)).toBe(false);
  expect(performance.now() - startedAt).toBeLessThan(5000);
  bus.listen('room_e');
  await redis.start();
  await eventually(async () => (await subscribers('room_d')) === 1 && (await subscribers('room_e')) === 1);
  await publishRoomChanged(publisher, 'room_d', null);
  await publishRoomChanged(publisher, 'room_e', null);
  await eventually(() => bus.received.length === 2);
});
