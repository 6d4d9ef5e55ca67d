import { beforeAll, expect, test } from '@jest/globals';
import { saveCapturePass } from '../recordings/recording-captures.js';
import { publishTracks } from '../sessions/session-tracks.js';
import { NOON, startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import {
  beginForward,
  closeDueForwards,
  deleteForward,
  giveUpForward,
  isOpeningForward,
  keepForwards,
  knownForwards,
  openedForward,
  openForwards,
} from './media-forwards.js';
import { nodeLoads, setNodeDraining } from './media-nodes.js';
import { addRoomNode, mediaNodesOfRoom, placeRoom, removeRoomNode, unplaceEmptyRooms } from './room-placement.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});
const LIMITS = { ports: [4000, 4002, 4004, 4006], environmentMax: 3 };
let names = 0;
const newName = () => `feed+${String((names += 1)).padStart(8, '0')}`;

/** A published feed. Each has a receiving server of its own, so that files share no ports. */
async function publish(roomId?: string) {
  const inRoom = roomId ?? (await rooms.newRoom());
  const { held, sessionId } = await rooms.enter(inRoom, { mediaNodeId: 'a' });
  const feedId = `${sessionId}-1-1@a`;
  const track = { trackId: 'cam', kind: 'video' as const, source: 'camera' as const, muted: false, feedId, mid: '1' };
  await publishTracks(rooms.database, held, [{ ...track, extensionId: 13 }], NOON);
  const forward = { roomId: inRoom, feedId, fromNodeId: 'a', toNodeId: `to-${sessionId}` };
  return { roomId: inRoom, held, feedId, forward };
}
const begin = (forward: Parameters<typeof beginForward>[2], name = newName(), tenant = rooms.tenant) =>
  beginForward(rooms.database.sql, tenant, forward, name, LIMITS);
const stateOf = async (name: string) =>
  (await rooms.database.prisma.mediaForward.findUnique({ where: { name } }))?.state ?? null;
const expire = (name: string) =>
  rooms.database.sql.$executeRaw`UPDATE media_forwards SET wanted_until = now() WHERE id = ${name}`;
const closing = async (unwanted = true) =>
  (await closeDueForwards(rooms.database.sql, unwanted, 100)).map(({ name }) => name);

test('one of several gateways opens a forward, with a port that no other forward of the server has', async () => {
  const { forward, feedId } = await publish();
  const { sql } = rooms.database;
  const attempts = [newName(), newName(), newName()];
  const ports = await Promise.all(attempts.map((name) => begin(forward, name)));
  expect(ports.filter((port) => port !== null)).toHaveLength(1);
  const name = attempts[ports.findIndex((port) => port !== null)]!;
  expect(await openForwards(sql, forward.toNodeId, [feedId])).toEqual([]);
  expect(await openedForward(sql, name, ['0', '1'])).toBe(true);
  expect(await openForwards(sql, forward.toNodeId, [feedId])).toEqual([
    { name, feedId, toNodeId: forward.toNodeId, mids: ['0', '1'] },
  ]);
  // A new track of the feed needs another one.
  const second = newName();
  expect(LIMITS.ports).toContain(await begin(forward, second));
  await openedForward(sql, second, ['0', '1', '2']);
  expect((await openForwards(sql, forward.toNodeId, [feedId])).map((one) => one.name)).toEqual([name, second]);
  const used = await rooms.database.prisma.mediaForward.findMany({ where: { toNodeId: forward.toNodeId } });
  expect(new Set(used.map(({ port }) => port)).size).toBe(2);
});

test('an environment gets no more forwards of a server than its share, and none of a feed that is not its own', async () => {
  const { forward, roomId } = await publish();
  const more = await Promise.all([publish(roomId), publish(roomId), publish(roomId)]);
  const ports = [await begin(forward)];
  for (const one of more) ports.push(await begin({ ...one.forward, toNodeId: forward.toNodeId }));
  expect(ports.filter((port) => port !== null)).toHaveLength(3);
  expect(ports.at(-1)).toBeNull();
  const other = await publish();
  expect(await begin(other.forward, newName(), { ...rooms.tenant, environmentId: 'env_other' })).toBeNull();
  expect(await begin({ ...other.forward, roomId })).toBeNull();
  expect(await begin({ ...other.forward, feedId: `${other.held.sessionId}-2-1@a` })).toBeNull();
});

test('a forward closes if nobody wants it, its feed has ended, or it is given up', async () => {
  const { sql } = rooms.database;
  const [wanted, unwanted, ended, failed, late] = await Promise.all([1, 2, 3, 4, 5].map(() => publish()));
  const open = async ({ forward }: Awaited<ReturnType<typeof publish>>) => {
    const name = newName();
    await begin(forward, name);
    await openedForward(sql, name, ['1']);
    return name;
  };
  const names = { wanted: await open(wanted!), unwanted: await open(unwanted!), ended: await open(ended!) };
  const [failing, slow] = [newName(), newName()];
  await begin(failed!.forward, failing);
  await begin(late!.forward, slow);
  await expire(names.wanted);
  await expire(names.unwanted);
  await expire(slow);
  expect(await keepForwards(sql, [names.wanted, failing])).toEqual(new Set([names.wanted]));
  await publishTracks(rooms.database, ended!.held, [], NOON);
  await giveUpForward(sql, failing);
  // Shortly after an outage, silence proves nothing.
  expect(await closing(false)).toEqual(expect.arrayContaining([names.ended, failing]));
  expect(await stateOf(names.unwanted)).toBe('up');
  expect(await closing()).toEqual(expect.arrayContaining([names.ended, names.unwanted, failing, slow]));
  expect(await stateOf(names.wanted)).toBe('up');
  expect(await openedForward(sql, slow, ['1'])).toBe(false);
  await deleteForward(sql, names.wanted);
  await deleteForward(sql, names.unwanted);
  expect([await stateOf(names.wanted), await stateOf(names.unwanted)]).toEqual(['up', null]);
  expect(await knownForwards(sql, [names.wanted, names.unwanted])).toEqual(new Set([names.wanted]));
});

test('a forward that is being opened stays with its gateway although its feed has ended', async () => {
  const { sql } = rooms.database;
  const { forward, held, roomId } = await publish();
  const name = newName();
  await begin(forward, name);
  await publishTracks(rooms.database, held, [], NOON);
  expect(await closing()).not.toContain(name);
  expect(await isOpeningForward(sql, roomId)).toBe(true);
  await openedForward(sql, name, ['1']);
  expect(await isOpeningForward(sql, roomId)).toBe(false);
  expect(await closing()).toContain(name);
});

test('a room gets further servers up to its limit, and gives them up', async () => {
  const { sql, prisma } = rooms.database;
  const roomId = await rooms.newRoom();
  expect(await addRoomNode(sql, roomId, 'x', 3)).toBeNull();
  const { held } = await rooms.enter(roomId, { mediaNodeId: 'home' });
  await setNodeDraining(prisma, 'drains', true);
  const versions = [];
  for (const nodeId of ['home', 'x', 'x', 'drains', 'y', 'z']) versions.push(await addRoomNode(sql, roomId, nodeId, 3));
  expect(versions).toEqual([null, 2, null, null, 3, null]);
  expect(await rooms.snapshot(roomId)).toMatchObject({ mediaNodeId: 'home', furtherNodeIds: ['x', 'y'] });
  await sql.$executeRaw`UPDATE participant_sessions SET media_node_id = 'x' WHERE id = ${held.sessionId}`;
  const loads = await nodeLoads(sql);
  expect(['home', 'x', 'y'].map((id) => [loads.get(id)?.rooms, loads.get(id)?.sessions])).toEqual([
    [1, 0],
    [1, 1],
    [1, 0],
  ]);
  expect(await mediaNodesOfRoom(sql, roomId)).toEqual(['home', 'x', 'y']);
  expect(await removeRoomNode(sql, 'x', null)).toEqual([{ roomId, version: 4 }]);
  expect(await removeRoomNode(sql, 'x', roomId)).toEqual([]);
  // A further server becomes the room's own.
  await placeRoom(sql, roomId, await rooms.snapshot(roomId), 'y');
  expect(await rooms.snapshot(roomId)).toMatchObject({ mediaNodeId: 'y', furtherNodeIds: [], mediaGeneration: 2 });
  await addRoomNode(sql, roomId, 'x', 3);
  await prisma.participantSession.updateMany({ where: { roomId }, data: { endedAt: NOON, endReason: 'left' } });
  expect(await unplaceEmptyRooms(prisma, 'x')).toBe(1);
  expect(await rooms.snapshot(roomId)).toMatchObject({ mediaNodeId: null, furtherNodeIds: [] });
});

test('a room that is being recorded spreads only to servers that record', async () => {
  const { sql } = rooms.database;
  const roomId = await rooms.newRoom();
  await rooms.enter(roomId, { mediaNodeId: 'home' });
  await sql.$executeRaw`UPDATE rooms SET recording_since = now() WHERE id = ${roomId}`;
  await saveCapturePass(sql, 'records', new Date());
  expect(await addRoomNode(sql, roomId, 'mute', 3)).toBeNull();
  expect(await addRoomNode(sql, roomId, 'records', 3)).not.toBeNull();
});
