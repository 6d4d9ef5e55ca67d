import { beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { addRoomNode, beginForward, giveUpForward, openedForward, openForwards, placeRoom } from '@callplane/db';
import { MediaError, MediaNodes, type MediaNode } from '@callplane/media';
import { createRtcPeer, eventually, hasMediaRoom, startTestJanus, stopAtEnd, type TestJanus } from '@callplane/testing';
import { startTestWorker, workOnOperation, type TestWorker } from '../worker.testkit.js';
import { Forwards } from './forwards.js';
import { MediaOrphans } from './media-orphans.js';

let receiving: TestJanus;
let worker: TestWorker;
let forwards: Forwards;
let a: MediaNode;
let b: MediaNode;
beforeAll(async () => {
  const [sending, second] = await Promise.all([startTestJanus(), startTestJanus()]);
  receiving = second;
  const { apiSecret, adminKey } = receiving;
  const addresses = [
    { id: 'a', url: sending.url },
    { id: 'b', url: receiving.url },
  ];
  const media = MediaNodes.open({ addresses, apiSecret, adminKey, random: Math.random, allowOutdated: true });
  stopAtEnd(() => media.close());
  worker = await startTestWorker({ media });
  forwards = new Forwards(worker.deps);
  [a, b] = media.all() as [MediaNode, MediaNode];
});
beforeEach(() => Promise.all([a.untilUp(60_000), b.untilUp(60_000)]));

const LIMITS = { ports: Array.from({ length: 50 }, (_, at) => 32_600 + 2 * at), environmentMax: 50 };
let names = 0;

/** A room on both servers, with a publisher on the first one and a forward to the second one. */
async function forwarded() {
  const { sql } = worker.deps.database;
  const roomId = await worker.newRoom('active');
  await a.ensureRoom(roomId);
  const { feedId } = await worker.enter(roomId, { mediaNodeId: 'a' });
  await addRoomNode(sql, roomId, 'b', 2);
  const session = await a.openSession();
  const publisher = await session.attachPublisher(roomId, feedId);
  const peer = await createRtcPeer();
  peer.addAudio();
  const connected = new Promise<void>((resolve) => publisher.once('connected', () => resolve()));
  await peer.acceptAnswer(await publisher.publish(await peer.offer()));
  peer.onCandidate((candidate) => void publisher.addCandidate(candidate).catch(() => undefined));
  await connected;
  const begin = async () => {
    const name = `${feedId}+${String((names += 1)).padStart(8, '0')}`;
    const wanted = { roomId, feedId, fromNodeId: 'a', toNodeId: 'b' };
    return { name, port: (await beginForward(sql, worker.tenant, wanted, name, LIMITS))! };
  };
  const open = async (): Promise<string> => {
    const { name, port } = await begin();
    await openedForward(sql, name, await b.receiveFrom(a, roomId, feedId, { name, port, extensionIds: new Map() }));
    return name;
  };
  return { roomId, feedId, begin, open, name: await open() };
}
const unwanted = (name: string) => worker.sql(`UPDATE media_forwards SET wanted_until = now() WHERE id = '${name}'`);
const stateOf = async (name: string) =>
  (await worker.deps.database.prisma.mediaForward.findUnique({ where: { name } }))?.state ?? null;
const feedsOf = (roomId: string) => b.listFeeds(roomId);

test('an unwanted forward ends on both servers, and nothing else does', async () => {
  const { roomId, feedId, open, name } = await forwarded();
  const wanted = await open();
  await unwanted(name);
  await forwards.close();
  await eventually(async () => (await feedsOf(roomId)).join() === wanted);
  expect([await stateOf(name), await stateOf(wanted)]).toEqual([null, 'up']);
  expect(await a.forwards.stopSending(roomId, feedId, name)).toBe('absent');
  expect(await a.listFeeds(roomId)).toEqual([feedId]);
  expect(await openForwards(worker.deps.database.sql, 'b', [feedId])).toMatchObject([{ name: wanted }]);
});

test('a forward to a frozen server stays until the server answers', async () => {
  const { roomId, name } = await forwarded();
  await unwanted(name);
  receiving.freeze();
  try {
    await forwards.close();
    expect(await stateOf(name)).toBe('closing');
  } finally {
    receiving.thaw();
  }
  await b.untilUp(60_000);
  await eventually(async () => {
    await forwards.close();
    return (await stateOf(name)) === null;
  });
  expect(await feedsOf(roomId)).toEqual([]);
});

test('a server that refuses to end forwards delays no others', async () => {
  const { name, begin } = await forwarded();
  const { sql } = worker.deps.database;
  const refused = new Set<string>();
  // More than are ended at once, and older.
  for (let count = 0; count < 20; count += 1) {
    const { name: one } = await begin();
    refused.add(one);
    await giveUpForward(sql, one);
  }
  await worker.sql("UPDATE media_forwards SET created_at = created_at - interval '1 minute' WHERE state = 'closing'");
  await unwanted(name);
  const { stopReceiving } = b.forwards;
  const refusing = jest
    .spyOn(b.forwards, 'stopReceiving')
    .mockImplementation(async (roomId, one) =>
      refused.has(one) ? Promise.reject(new MediaError('refused', 'no')) : stopReceiving(roomId, one),
    );
  try {
    await forwards.close();
  } finally {
    refusing.mockRestore();
  }
  expect([await stateOf(name), await stateOf([...refused][0]!)]).toEqual([null, 'closing']);
  expect(worker.lines).toContainEqual(expect.objectContaining({ message: 'forward not ended', toNodeId: 'b' }));
  await forwards.close();
  expect(await stateOf([...refused][0]!)).toBeNull();
});

test('a feed that is received without a row is removed by the second pass that finds it', async () => {
  const { roomId, name, open } = await forwarded();
  const stray = await open();
  await worker.sql(`DELETE FROM media_forwards WHERE id = '${stray}'`);
  const orphans = new MediaOrphans(worker.deps);
  await orphans.pass();
  expect((await feedsOf(roomId)).sort()).toEqual([name, stray].sort());
  await orphans.pass();
  await eventually(async () => (await feedsOf(roomId)).join() === name);
  expect(worker.lines).toContainEqual(expect.objectContaining({ message: 'stray forward removed', feedId: stray }));
});

test('a worker looks for forwards while a room may use several servers, and until the last one is closed', async () => {
  await worker.sql('UPDATE media_forwards SET wanted_until = now()');
  await forwards.close();
  await worker.sql("UPDATE rooms SET further_node_ids = '{}'");
  const own = new Forwards(worker.deps);
  const orphans = new MediaOrphans(worker.deps, own);
  expect(own.arePossible).toBe(true);
  await own.close();
  await orphans.pass();
  expect(own.arePossible).toBe(false);
  const { roomId, name } = await forwarded();
  await orphans.pass();
  expect(own.arePossible).toBe(true);
  await own.close();
  await worker.sql(`UPDATE rooms SET further_node_ids = '{}' WHERE id = '${roomId}'`);
  await orphans.pass();
  expect(own.arePossible).toBe(true);
  await unwanted(name);
  await own.close();
  expect(own.arePossible).toBe(false);
});

test('the end of a room destroys it on all servers that it or its forwards name', async () => {
  const { roomId } = await forwarded();
  const { sql, prisma } = worker.deps.database;
  // The room has left both servers a moment ago: only its forward names them.
  const { mediaNodeId, mediaGeneration } = await prisma.room.findUniqueOrThrow({ where: { id: roomId } });
  await placeRoom(sql, roomId, { mediaNodeId, mediaGeneration }, 'b');
  const { operation } = await worker.endRoom(roomId);
  await workOnOperation(worker.deps, operation.id);
  expect(await worker.row(operation.id)).toMatchObject({ status: 'completed' });
  expect([await hasMediaRoom(a, roomId), await hasMediaRoom(b, roomId)]).toEqual([false, false]);
  await forwards.close();
  expect(await prisma.mediaForward.count({ where: { roomId } })).toBe(0);
});

// Janus 1.4.1 would keep the ports.
test.each(['opened', 'left'])('the end of a room waits for a forward that is being %s', async (how) => {
  const { roomId, begin } = await forwarded();
  const { sql } = worker.deps.database;
  const { name } = await begin();
  const { operation } = await worker.endRoom(roomId);
  const startedMs = performance.now();
  const destroyed: { state: string | null; afterMs: number }[] = [];
  const destroy = b.destroyRoom.bind(b);
  const destroying = jest.spyOn(b, 'destroyRoom').mockImplementation(async (id) => {
    destroyed.push({ state: await stateOf(name), afterMs: performance.now() - startedMs });
    return destroy(id);
  });
  try {
    const working = workOnOperation(worker.deps, operation.id);
    await eventually(async () => (await worker.row(operation.id)).runAttempts > 0);
    if (how === 'opened') await openedForward(sql, name, ['0']);
    await working;
  } finally {
    destroying.mockRestore();
  }
  expect(await worker.row(operation.id)).toMatchObject({ status: 'completed' });
  expect(destroyed.filter(({ state, afterMs }) => state === 'opening' && afterMs < 1000)).toEqual([]);
  expect(await hasMediaRoom(b, roomId)).toBe(false);
});
