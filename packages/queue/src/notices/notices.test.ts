import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, overRedis, startTestRedis, stopAtEnd, type TestServer } from '@callplane/testing';
import { NoticeListener } from './notices.js';

let server: TestServer;
let seen: string[];
const events = {
  onLost: () => seen.push('lost'),
  onReady: () => seen.push('ready'),
  onRefused: () => seen.push('refused'),
  onInvalid: (error: Error) => seen.push(error.message),
};
const HASH = 'a'.repeat(64);
const send = (...command: [string, ...string[]]) => overRedis(server.url, (redis) => redis.call(...command));
const setUser = (...rules: string[]) => send('ACL', 'SETUSER', 'listening', 'on', '>secret', '+@all', ...rules);

beforeAll(async () => {
  server = await startTestRedis();
});
beforeEach(() => {
  seen = [];
});

function listen(): { listener: NoticeListener; heard: string[] } {
  const listener = new NoticeListener(server.url.replace(/\/\/.*@/, '//listening:secret@'), events);
  stopAtEnd(() => listener.close());
  const heard: string[] = [];
  listener.on('apiKeyRevoked', (hash) => heard.push(hash));
  listener.on('operationSettled', (id) => {
    if (id === 'op_broken') throw new Error('the handler is broken');
    heard.push(id);
  });
  return { listener, heard };
}
const listeners = async () => ((await send('PUBSUB', 'NUMSUB', 'callplane:api-key-revoked')) as [string, number])[1];

describe('a subscription', () => {
  test('that Redis refuses, at first and after a reconnection, is tried again until it is granted', async () => {
    await setUser('resetchannels');
    const { listener, heard } = listen();
    await eventually(() => listener.refusal === 'refused');
    expect(listener.isListening).toBe(false);
    for (let times = 1; times <= 2; times += 1) {
      await setUser('&*');
      await eventually(() => listener.isListening && listener.refusal === null);
      await send('PUBLISH', 'callplane:operation-settled', `op_${times}`);
      await eventually(() => heard.length === times);
      expect(seen.at(-1)).toBe('ready');
      // Redis closes connections with subscriptions that their user has lost.
      await setUser('resetchannels');
      await eventually(() => listener.refusal === 'refused');
    }
    expect(seen.filter((event) => event === 'refused')).toHaveLength(3);
    await listener.close();
  });

  test('of a channel that is added while Redis refuses it survives, too', async () => {
    await setUser('resetchannels', '&callplane:operation-settled');
    const { listener } = listen();
    await eventually(() => listener.refusal === 'refused');
    await setUser('&*');
    await eventually(async () => listener.refusal === null && (await listeners()) === 1);
    await listener.close();
  });
});

test('a payload that is not valid, or whose handler throws, is dropped and reported', async () => {
  await setUser('&*');
  const { listener, heard } = listen();
  await eventually(async () => listener.isListening && (await listeners()) === 1);
  for (const payload of ['', 'x', HASH.toUpperCase(), `${HASH}0`, HASH]) {
    await send('PUBLISH', 'callplane:api-key-revoked', payload);
  }
  await send('PUBLISH', 'callplane:operation-settled', 'op_broken');
  await send('PUBLISH', 'callplane:operation-settled', 'op_1');
  await eventually(() => heard.length === 2);
  expect(heard).toEqual([HASH, 'op_1']);
  const invalid = 'the notice apiKeyRevoked from Redis is not valid: another payload';
  expect(seen.filter((event) => event !== 'ready')).toEqual([
    ...Array.from({ length: 4 }, () => invalid),
    'the handler is broken',
  ]);
});
