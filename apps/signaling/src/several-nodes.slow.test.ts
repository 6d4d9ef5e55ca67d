import { readdirSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { registerMediaNode, setNodeDraining } from '@callplane/db';
import { MediaNode, parseNodeUrl } from '@callplane/media';
import {
  createTestDatabase,
  eventually,
  spawnApp,
  startTestJanus,
  stopAtEnd,
  workerServers,
  type TestJanus,
} from '@callplane/testing';
import { CAM, flows, MIC, startCall, type SentTrack, type TestCall } from './call.testkit.js';
import { startTestSignaling, type TestInstance, type TestSignaling } from './signaling.testkit.js';

/** As in places.ts: for this time a gateway uses the loads of media servers that it has read. */
const LOADS_FRESH_MS = 1000;

/** For smaller pictures, the library of test peers sends one layer. */
const LAYERED: SentTrack = { ...CAM, add: (peer) => peer.addVideo({ width: 640, height: 360, layers: ['h', 'l'] }) };

/** The region of each media server. Without a region, a client is equally near to both. */
const REGIONS: Record<string, string> = { a: 'eu-west', b: 'us' };

let kit: TestSignaling;
let janus: Record<string, TestJanus>;
let one: TestInstance;
let two: TestInstance;
/** A gateway for clients of another region. */
let american: TestInstance;
/** The tests' own connections to the media servers. */
const nodes: Record<string, MediaNode> = {};
beforeAll(async () => {
  const { url: databaseUrl } = await createTestDatabase();
  const { redis } = await workerServers();
  const [a, b] = await Promise.all([startTestJanus(), startTestJanus()]);
  janus = { a, b };
  kit = await startTestSignaling({ databaseUrl });
  const secrets = { MEDIA_API_SECRET: a.apiSecret, MEDIA_ADMIN_KEY: a.adminKey };
  const settings = {
    ...secrets,
    MEDIA_NODES_PER_ROOM: '2',
    MEDIA_FORWARD_PORTS: '32000-32399',
  };
  for (const [id, { url, apiSecret, adminKey }] of Object.entries(janus)) {
    const server = { id, url: parseNodeUrl(id, url), capacity: null, region: REGIONS[id] ?? null, hasAgent: true };
    await registerMediaNode(kit.database.sql, server);
    const node = new MediaNode({ id, url, apiSecret, adminKey, random: Math.random, allowOutdated: true });
    stopAtEnd(() => node.close());
    nodes[id] = node;
  }
  const worker = { DATABASE_URL: databaseUrl, REDIS_URL: redis.url, SWEEP_INTERVAL_MS: '1000', ...secrets };
  [one, two, american] = await Promise.all([
    kit.start(settings),
    kit.start(settings),
    kit.start({ ...settings, MEDIA_REGION: 'us' }),
  ]);
  await spawnApp({ name: 'cleanup-worker', env: worker });
  await Promise.all(Object.values(nodes).map((node) => node.untilUp(60_000)));
});
const calls: TestCall[] = [];
afterEach(async () => {
  await Promise.all(calls.splice(0).map((call) => call.end()));
  const open = await kit.database.prisma.room.findMany({ where: { status: { not: 'ended' } } });
  await Promise.all(open.flatMap(({ id, status }) => (status === 'ending' ? [] : [kit.end(id)])));
  await eventually(async () => (await kit.database.prisma.room.count({ where: { status: { not: 'ended' } } })) === 0);
  await eventually(async () => (await forwards()).length === 0);
  for (const id of Object.keys(janus)) await setNodeDraining(kit.database.prisma, id, false);
  await untilFresh();
});

const enter = async (roomId: string, url = one.url, claims: object = {}) => {
  const call = startCall(kit, await kit.enter(url, roomId, { claims }));
  calls.push(call);
  return call;
};
const roomOf = (roomId: string) => kit.database.prisma.room.findUniqueOrThrow({ where: { id: roomId } });
const forwards = (where = {}) => kit.database.prisma.mediaForward.findMany({ where, orderBy: { createdAt: 'asc' } });
/** Resolves once the gateways read the loads of media servers before they choose one. */
const untilFresh = () => new Promise((resolve) => setTimeout(resolve, LOADS_FRESH_MS));
/** Ada publishes on the room's own server, which takes no more sessions then: Bob is on the further one. */
async function across(tracks = [MIC, CAM]) {
  const roomId = await kit.newRoom();
  const ada = await enter(roomId);
  await ada.publishAnew(tracks);
  const { mediaNodeId: home } = await roomOf(roomId);
  await setNodeDraining(kit.database.prisma, home!, true);
  await untilFresh();
  const bob = await enter(roomId, two.url);
  await flows(bob.subscriber, tracks.some(({ source }) => source === 'camera') ? 'video' : 'audio');
  const { furtherNodeIds } = await roomOf(roomId);
  expect(furtherNodeIds).toEqual([home === 'a' ? 'b' : 'a']);
  return { roomId, ada, bob, home: home!, further: furtherNodeIds[0]! };
}
/** Nothing of the room is left on any server. */
const untilClean = (roomId: string) =>
  eventually(async () => {
    const rooms = await Promise.all(Object.values(nodes).map((node) => node.listRooms()));
    return rooms.flat().every((room) => room.roomId !== roomId) && (await forwards({ roomId })).length === 0;
  });
const stands = (call: TestCall) => {
  let before = -1;
  return eventually(
    () => {
      const stood = call.subscriber()!.framesReceived('video') === before;
      before = call.subscriber()!.framesReceived('video');
      return stood;
    },
    { intervalMs: 700 },
  );
};

describe('a room on two media servers', () => {
  test('carries picture and sound across, in both directions, with mute and tracks that come later', async () => {
    const { ada, bob, roomId, further, home } = await across();
    await flows(bob.subscriber, 'audio');
    await bob.publishAnew([CAM]);
    await flows(ada.subscriber, 'video');
    const open = await forwards({ roomId });
    expect(open.map(({ toNodeId, fromNodeId, state, mids }) => ({ toNodeId, fromNodeId, state, mids }))).toEqual([
      { fromNodeId: home, toNodeId: further, state: 'up', mids: ['0', '1'] },
      { fromNodeId: further, toNodeId: home, state: 'up', mids: ['0'] },
    ]);
    // One copy for the node, however many receive it there.
    const eve = await enter(roomId);
    await flows(eve.subscriber, 'video');
    expect(await forwards({ roomId })).toHaveLength(2);
    await ada.client.ask({ type: 'mute', trackId: 'cam', muted: true }, 'ok');
    await bob.publish([CAM, MIC]);
    await flows(ada.subscriber, 'audio');
    await kit.end(roomId);
    await untilClean(roomId);
  });

  test('sends receivers on the other server the layers that they choose, and asks its publisher for no others', async () => {
    const { ada, bob } = await across([LAYERED]);
    const camera = { participantId: ada.participantId, trackId: 'cam' };
    for (const [spatial, width] of [
      [0, 320],
      [1, 640],
      [0, 320],
    ]) {
      await bob.client.ask({ type: 'subscribe', tracks: [{ ...camera, layer: { spatial } }] }, 'ok');
      await eventually(() => [...bob.subscriber()!.received().values()].some((one) => one.width === width));
      await eventually(() => String(ada.client.of('layersWanted').at(-1)?.tracks[0]?.layers) === String(spatial));
    }
  });

  test('says at either server who speaks', async () => {
    const { ada, bob } = await across([MIC]);
    await bob.publishAnew([MIC]);
    const hears = (call: TestCall, { participantId }: TestCall) =>
      eventually(() =>
        call.client
          .of('speakers')
          .at(-1)
          ?.speakers.some((one) => one.participantId === participantId),
      );
    await Promise.all([hears(bob, ada), hears(ada, bob)]);
  });

  test('relays nothing of a participant that is removed, on neither server', async () => {
    const { ada, bob, roomId } = await across();
    await kit.remove(roomId, ada.participantId);
    await ada.client.untilClosed('removed');
    await stands(bob);
    await eventually(async () => {
      const feeds = await Promise.all(Object.values(nodes).map((node) => node.listFeeds(roomId)));
      return feeds.flat().length === 0 && (await forwards({ roomId })).length === 0;
    });
  });

  test('sends nothing to a server on which nobody receives any more', async () => {
    const { bob, roomId, home, further } = await across();
    const [before] = await forwards({ roomId });
    await bob.end();
    await eventually(async () => (await forwards({ roomId })).length === 0);
    expect(await nodes[further]!.listFeeds(roomId)).toEqual([]);
    expect(await nodes[home]!.listFeeds(roomId)).toEqual([before!.feedId]);
    const again = await enter(roomId, two.url);
    await flows(again.subscriber, 'video');
  });

  test('continues across when a gateway that uses the forward dies', async () => {
    const { ada, bob, roomId, further } = await across();
    const [before] = await forwards({ roomId });
    bob.client.terminate();
    const back = await bob.resume(one.url);
    expect(back.media).toEqual({ state: 'up', continued: true });
    await flows(bob.subscriber, 'video');
    expect((await forwards({ roomId })).map(({ name }) => name)).toEqual([before!.name]);
    expect(further).toBe(before!.toNodeId);
    await ada.publish([MIC, CAM]);
    await flows(bob.subscriber, 'video');
  });
});

describe('of two media servers in different regions', () => {
  test('a room begins on the one near its first participant, and uses the other one for participants there', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(roomId, one.url, { region: 'us' });
    await ada.publishAnew([CAM]);
    expect(await roomOf(roomId)).toMatchObject({ mediaNodeId: 'b', furtherNodeIds: [] });
    const bob = await enter(roomId, american.url, { region: 'eu-north' });
    await flows(bob.subscriber, 'video');
    expect(await roomOf(roomId)).toMatchObject({ mediaNodeId: 'b', furtherNodeIds: ['a'] });
    expect(await forwards({ roomId })).toMatchObject([{ fromNodeId: 'b', toNodeId: 'a', state: 'up' }]);
    // A client that names no region is near its gateway, and one of a region without servers stays with the room.
    for (const [url, claims] of [
      [american.url, {}],
      [one.url, { region: 'asia' }],
      [one.url, {}],
    ] as const) {
      const eve = await enter(roomId, url, claims);
      await flows(eve.subscriber, 'video');
    }
    expect(await forwards({ roomId })).toHaveLength(1);
    await eventually(async () => {
      const sessions = await kit.database.prisma.participantSession.findMany({ where: { roomId, endedAt: null } });
      return (
        sessions
          .map(({ mediaNodeId }) => mediaNodeId)
          .sort()
          .join() === 'a,b,b,b,b'
      );
    });
  });

  test('a room begins near its gateway if the token names no region', async () => {
    const roomId = await kit.newRoom();
    await enter(roomId, american.url);
    expect(await roomOf(roomId)).toMatchObject({ mediaNodeId: 'b' });
  });
});

describe('when a server of a room on two', () => {
  test.each(['the receivers', 'the publisher'])('dies, of %s, its sessions move and the others stay', async (whose) => {
    const { ada, bob, roomId, home, further } = await across([CAM]);
    const dying = whose === 'the receivers' ? further : home;
    const staying = dying === home ? bob : ada;
    const descriptors = () => readdirSync(`/proc/${janus[dying === 'a' ? 'b' : 'a']!.pid}/fd`).length;
    const peerBefore = whose === 'the receivers' ? ada.publisher() : bob.subscriber();
    const startedAt = performance.now();
    janus[dying]!.kill('SIGKILL');
    const moved = dying === home ? ada : bob;
    await moved.client.until('mediaReset', () => true);
    await eventually(async () => (await roomOf(roomId)).mediaNodeId !== dying);
    await flows(bob.subscriber, 'video');
    process.stderr.write(`    measured: media again ${Math.round(performance.now() - startedAt)} ms after the kill\n`);
    expect(whose === 'the receivers' ? ada.publisher() : bob.subscriber()).toBe(peerBefore);
    expect([...staying.client.of('mediaReset')]).toEqual([]);
    expect(await roomOf(roomId)).toMatchObject({ mediaNodeId: dying === 'a' ? 'b' : 'a', furtherNodeIds: [] });
    await eventually(async () => (await forwards({ roomId })).length === 0);
    process.stderr.write(`    measured: ${descriptors()} descriptors on the server that lives\n`);
    await janus[dying]!.start();
    await kit.end(roomId);
    await untilClean(roomId);
    await eventually(async () => (await one.valueOf(`callplane_media_node_up{node="${dying}"`)) === 1);
    await eventually(async () => (await two.valueOf(`callplane_media_node_up{node="${dying}"`)) === 1);
  });
});
