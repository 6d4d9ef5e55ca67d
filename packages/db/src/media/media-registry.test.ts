import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { listMediaNodes, recordNodeState, setNodeDraining } from './media-nodes.js';
import {
  listRegisteredNodes,
  registerMediaNode,
  REGISTERED_NODES_MAX,
  removeMediaNode,
  removeSilentNodes,
} from './media-registry.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});
beforeEach(async () => {
  await rooms.database.sql.$executeRaw`UPDATE rooms SET media_node_id = NULL`;
  await rooms.database.sql.$executeRaw`DELETE FROM media_nodes`;
});
const register = (
  id: string,
  url: string,
  hasAgent = true,
  capacity: number | null = null,
  region: string | null = null,
) => registerMediaNode(rooms.database.sql, { id, url, hasAgent, capacity, region });
const nodeOf = async (id: string) => (await listMediaNodes(rooms.database.sql)).find((node) => node.id === id);
/** Moves the last heartbeat into the past. */
const silence = (id: string, seconds: number) =>
  rooms.database.sql
    .$executeRaw`UPDATE media_nodes SET heartbeat_at = now() - ${seconds}::int * interval '1 second' WHERE id = ${id}`;

test('registers a media server once, and tells heartbeats from changes of its address', async () => {
  await setNodeDraining(rooms.database.prisma, 'm1', true);
  expect(await register('m1', 'ws://a/', true, 200, 'eu-west')).toBe('registered');
  expect(await nodeOf('m1')).toMatchObject({ capacity: 200, region: 'eu-west' });
  expect(await register('m1', 'ws://a/')).toBe('known');
  expect(await nodeOf('m1')).toMatchObject({
    url: 'ws://a/',
    capacity: null,
    region: null,
    draining: true,
    agent: 'running',
    heartbeatAt: expect.any(Date),
    state: null,
  });
  expect(await register('m1', 'ws://b/')).toBe('taken');
  await silence('m1', 31);
  expect(await nodeOf('m1')).toMatchObject({ agent: 'silent' });
  expect(await register('m1', 'ws://b/', false)).toBe('registered');
  expect(await nodeOf('m1')).toMatchObject({ url: 'ws://b/', agent: null });
  expect(await listRegisteredNodes(rooms.database.sql)).toEqual([{ id: 'm1', url: 'ws://b/' }]);
});

test('refuses registrations beyond the limit, but no repeated one', async () => {
  for (let n = 0; n < REGISTERED_NODES_MAX; n += 1) await register(`n${n}`, 'ws://a/');
  await recordNodeState(rooms.database.sql, 'configured', 'up');
  expect(await register('more', 'ws://a/')).toBe('full');
  expect(await register('configured', 'ws://a/')).toBe('full');
  expect(await register('n7', 'ws://a/')).toBe('known');
  expect(await removeMediaNode(rooms.database.prisma, 'n7')).toBe(true);
  expect(await removeMediaNode(rooms.database.prisma, 'n7')).toBe(false);
  expect(await register('more', 'ws://a/')).toBe('registered');
});

test('a worker that still knows a removed media server does not bring it back', async () => {
  const record = (isConfigured: boolean) => recordNodeState(rooms.database.sql, 'm1', 'up', { isConfigured });
  expect([await record(false), await nodeOf('m1')]).toEqual([false, undefined]);
  await register('m1', 'ws://a/');
  expect([await record(false), await record(false)]).toEqual([true, false]);
});

test('removes a silent media server only if workers fail to reach it and it carries no rooms', async () => {
  const roomId = await rooms.newRoom();
  await rooms.enter(roomId, { mediaNodeId: 'carries' });
  for (const id of ['carries', 'reached', 'beats', 'gone', 'unseen', 'long-unseen']) await register(id, 'ws://a/');
  await register('by-hand', 'ws://a/', false);
  for (const id of ['carries', 'reached', 'gone', 'unseen', 'long-unseen']) await silence(id, 3601);
  await silence('beats', 3599);
  await recordNodeState(rooms.database.sql, 'reached', 'up');
  for (const id of ['carries', 'beats', 'gone', 'long-unseen']) await recordNodeState(rooms.database.sql, id, 'down');
  await rooms.database.sql
    .$executeRaw`UPDATE media_nodes SET checked_at = now() - interval '1 hour' WHERE id = 'long-unseen'`;
  expect(await removeSilentNodes(rooms.database.sql)).toEqual(['gone']);
  expect((await listRegisteredNodes(rooms.database.sql)).map(({ id }) => id)).toEqual([
    'beats',
    'by-hand',
    'carries',
    'long-unseen',
    'reached',
    'unseen',
  ]);
});
