import { beforeAll, expect, test } from '@jest/globals';
import { eventually, startTestRedis, stopAtEnd, type TestServer } from '@callplane/testing';
import type { Redis } from 'ioredis';
import { connectRedis, disconnectRedis } from '../redis/redis.js';
import { publishRoomChanged, RoomBus } from './room-bus.js';

let redis: TestServer;
let publisher: Redis;
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
  const heard: unknown[] = [];
  const listen = (roomId: string) =>
    bus.subscribe(roomId, {
      changed: (sequence) => heard.push({ roomId, sequence }),
      message: (message, from) => heard.push({ roomId, message, from }),
    });
  await eventually(() => bus.isListening);
  return { bus, heard, listen };
}
const subscribers = async (roomId: string) => (await publisher.pubsub('NUMSUB', `callplane:room:${roomId}`))[1];

test('an instance hears of its own rooms only, and its own messages do not come back', async () => {
  const [one, two] = [await startBus('one'), await startBus('two')];
  one.listen('room_a');
  two.listen('room_a');
  two.listen('room_b');
  await eventually(async () => (await subscribers('room_a')) === 2 && (await subscribers('room_b')) === 1);
  expect(await one.bus.publishMessage('room_a', { hello: 'ä' })).toBe(true);
  expect(await publishRoomChanged(publisher, 'room_b', 7)).toBe(true);
  expect(await one.bus.publishChanged('room_a')).toBe(true);
  await eventually(() => two.heard.length === 3 && one.heard.length === 1);
  expect(two.heard).toEqual([
    { roomId: 'room_a', message: { hello: 'ä' }, from: 'one' },
    { roomId: 'room_b', sequence: 7 },
    { roomId: 'room_a', sequence: null },
  ]);
  expect(one.heard).toEqual([{ roomId: 'room_a', sequence: null }]);
  two.bus.unsubscribe('room_a');
  await eventually(async () => (await subscribers('room_a')) === 1);
});

test('what is no notice is ignored', async () => {
  const bus = await startBus('three');
  bus.listen('room_c');
  await eventually(async () => (await subscribers('room_c')) === 1);
  for (const text of ['', 'null', '[]', '{"type":"message"}', '{"type":"later"}']) {
    await publisher.publish('callplane:room:room_c', text);
  }
  await publishRoomChanged(publisher, 'room_c');
  await eventually(() => bus.heard.length > 0);
  expect(bus.heard).toEqual([{ roomId: 'room_c', sequence: null }]);
});

test('subscriptions are renewed after a reconnection, those made meanwhile too; publishing fails at once', async () => {
  const bus = await startBus('four');
  bus.listen('room_d');
  await eventually(async () => (await subscribers('room_d')) === 1);
  await redis.stop();
  const startedAt = performance.now();
  expect(await bus.bus.publishMessage('room_d', 'lost')).toBe(false);
  expect(await publishRoomChanged(publisher, 'room_d')).toBe(false);
  expect(performance.now() - startedAt).toBeLessThan(500);
  bus.listen('room_e');
  await redis.start();
  await eventually(async () => (await subscribers('room_d')) === 1 && (await subscribers('room_e')) === 1);
  await publishRoomChanged(publisher, 'room_d');
  await publishRoomChanged(publisher, 'room_e');
  await eventually(() => bus.heard.length === 2);
});

test('a frozen Redis holds a publisher up for no longer than a command may take', async () => {
  redis.freeze();
  try {
    const startedAt = performance.now();
    expect(await publishRoomChanged(publisher, 'room_f')).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(600);
  } finally {
    redis.thaw();
  }
});
