import { expect, test } from '@jest/globals';
import { janusForwards } from './forwards.js';
import type { JanusHandle } from './handle.js';

test('a node receives a feed once its room lists it, which Janus does some time after its answer', async () => {
  const name = 'ada+00000001';
  const lists = [[], ['eve+00000001'], [name], ['never read']];
  const requests: string[] = [];
  const control = {
    request: (body: { request: string }) => {
      requests.push(body.request);
      return Promise.resolve({ data: {}, sdp: undefined });
    },
  };
  const { receive } = janusForwards(
    control as unknown as JanusHandle,
    'key',
    (room) => ({ room, secret: '' }),
    () => Promise.resolve(lists.shift() ?? []),
  );
  await receive('room', { name, port: 1024, extensionIds: new Map() }, [], 'b');
  expect(requests).toEqual(['add_remote_publisher']);
  expect(lists).toEqual([['never read']]);
});
