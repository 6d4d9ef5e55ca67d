import { expect, test } from '@jest/globals';
import type { Answer, Caller } from './caller.js';
import { untilSettled } from './final-reads.js';

/** A service that has no open room and no open delivery, and whose removal needs some looks to end. */
function service(looks: number) {
  const read: string[] = [];
  const call = (_from: unknown, _method: string, path: string): Promise<Answer> => {
    read.push(path);
    if (!path.endsWith('/runtime-operation')) return Promise.resolve({ status: 200, body: { data: [] } });
    const count = read.filter((each) => each === path).length;
    return Promise.resolve({ status: 200, body: { status: count > looks ? 'completed' : 'pending' } });
  };
  const tenant = { name: 'a', projectId: 'proj_a', environmentId: 'env_a', key: 'key' };
  const known = { operations: new Set(['/v1/rooms/room_1/participants/part_1/runtime-operation']), recordings: null };
  return { reader: { caller: { call } as unknown as Caller, tenant, known }, read };
}

test('a service has settled once its operations have ended, also in rooms that have ended before', async () => {
  const { reader, read } = service(1);
  expect(await untilSettled([reader], 60_000)).toBe(true);
  const path = '/v1/rooms/room_1/participants/part_1/runtime-operation';
  expect(read.filter((each) => each === path)).toHaveLength(2);
});

test('a service has not settled while a removal waits for its next attempt', async () => {
  const { reader } = service(Infinity);
  expect(await untilSettled([reader], 1)).toBe(false);
});
