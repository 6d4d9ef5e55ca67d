import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { acceptRoomEnd, beat, publishTracks, type HeldSession } from '@callplane/db';
import { MediaNodes, type MediaNode } from '@callplane/media';
import {
  endOne,
  eventually,
  hasMediaRoom,
  inviteTestParticipant,
  joinOne,
  startTestJanus,
  stopAtEnd,
  type TestApp,
  type TestJanus,
} from '@callplane/testing';
import { measured, startStack, type Stack } from './faults.testkit.js';

let stack: Stack;
let janus: TestJanus;
let node: MediaNode;
const workers: TestApp[] = [];
beforeAll(async () => {
  [stack, janus] = await Promise.all([startStack(), startTestJanus()]);
  const { url, apiSecret, adminKey } = janus;
  const media = MediaNodes.open({ addresses: [{ id: 'm1', url }], apiSecret, adminKey, random: Math.random });
  stopAtEnd(() => media.close());
  node = media.get('m1')!;
  await node.untilUp(60_000);
  // Otherwise workers end the sessions of this instance if a test takes long.
  const heartbeat = setInterval(() => void beat(stack.database.sql, 'instance').catch(() => undefined), 1000);
  stopAtEnd(async () => clearInterval(heartbeat));
});
afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.stop())));

async function spawnWorker(env: Record<string, string> = {}): Promise<TestApp> {
  const worker = await stack.spawnWorker({
    MEDIA_NODES: `m1=${janus.url}`,
    MEDIA_API_SECRET: janus.apiSecret,
    MEDIA_ADMIN_KEY: janus.adminKey,
    LEASE_MS: '6000',
    ...env,
  });
  workers.push(worker);
  return worker;
}

interface Guest extends HeldSession {
  participantId: string;
  feedId: string;
}

/** A room on the media server with publishing participants, as a signaling instance creates it. */
async function liveRoom(people: number, instanceId = 'instance'): Promise<{ roomId: string; guests: Guest[] }> {
  const now = new Date();
  const { database, tenant } = stack;
  const { environmentId } = tenant;
  const roomId = newId('room');
  await database.prisma.room.create({
    data: {
      id: roomId,
      environmentId,
      name: 'Room',
      metadata: {},
      status: 'created',
      maxParticipants: 200,
      createdAt: now,
    },
  });
  await beat(database.sql, instanceId);
  const guests: Guest[] = [];
  for (let n = 0; n < people; n += 1) {
    const { participantId, tokenId } = await inviteTestParticipant(database.sql, tenant, roomId, now);
    const input = { tenant, roomId, participantId, tokenId, instanceId, mediaNodeId: 'm1' };
    const joined = await joinOne(
      database,
      { ...input, permissions: ['audio:publish'], resumeSecretHash: new Uint8Array(32) },
      now,
    );
    if (joined.outcome !== 'joined') throw new Error(joined.outcome);
    const feedId = `${joined.sessionId}-1`;
    guests.push({ sessionId: joined.sessionId, connection: joined.connection, participantId, feedId });
  }
  // Not before the first join has placed the room on this media server: workers destroy rooms that belong elsewhere.
  await node.ensureRoom(roomId);
  const session = await node.openSession();
  await Promise.all(guests.map(({ feedId }) => session.attachPublisher(roomId, feedId)));
  for (const guest of guests) {
    const { feedId } = guest;
    const track = { trackId: 'a', kind: 'audio', source: 'microphone', muted: false, feedId, mid: '0' } as const;
    await publishTracks(database, guest, [track], now);
  }
  return { roomId, guests };
}

/** The number of events of the room by type and reason. */
async function countsOf(roomId: string): Promise<Record<string, number>> {
  const rows = await stack.database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
  expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, index) => index + 1));
  const counts: Record<string, number> = {};
  for (const { type, body } of rows) {
    const { reason } = (JSON.parse(body) as { data: { reason?: string } }).data;
    const key = reason === undefined ? type : `${type} ${reason}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}
const END_OF_THREE = {
  'room.started': 1,
  'participant.joined': 3,
  'track.published': 3,
  'track.unpublished': 3,
  'participant.left room_ended': 3,
  'room.ended': 1,
};
const askForEnd = async (roomId: string) => {
  const accepted = await acceptRoomEnd(stack.database, stack.tenant, roomId, new Date());
  await stack.producer.wakeOperations([accepted!.wake!]);
};

test('rooms that a media server kept while it was unreachable are destroyed within a minute of its return', async () => {
  const worker = await spawnWorker({ SWEEP_INTERVAL_MS: '5000', LEASE_MS: '20000' });
  const { roomId } = await liveRoom(3);
  const lost = 'room_forgotten';
  await node.ensureRoom(lost);
  janus.freeze();
  try {
    await askForEnd(roomId);
    await worker.waitForLog(({ message, outcome }) => message === 'operation attempt' && outcome === 'retry');
  } finally {
    janus.thaw();
  }
  const thawedAt = performance.now();
  await node.untilUp(60_000);
  // Recreates the room, as a gateway would that was frozen together with Janus. (Earlier requests may have reached
  // Janus.)
  await node.ensureRoom(roomId);
  await eventually(async () => !(await hasMediaRoom(node, roomId)) && !(await hasMediaRoom(node, lost)));
  await stack.completed(roomId);
  measured({ 'ms until orphans were destroyed': performance.now() - thawedAt });
  expect(await countsOf(roomId)).toEqual(END_OF_THREE);
});

test('participants of a dead signaling instance have left within 30 seconds, once each, with two workers', async () => {
  const pair = [await spawnWorker({ SWEEP_INTERVAL_MS: '5000' }), await spawnWorker({ SWEEP_INTERVAL_MS: '5000' })];
  const { roomId } = await liveRoom(20, 'dying');
  await beat(stack.database.sql, 'dying');
  const diedAt = performance.now();
  await eventually(
    async () => (await stack.database.prisma.participantSession.count({ where: { roomId, endedAt: null } })) === 0,
  );
  measured({ 'ms until its 20 participants had left': performance.now() - diedAt });
  expect(await countsOf(roomId)).toMatchObject({ 'participant.left connection_lost': 20, 'track.unpublished': 20 });
  await eventually(async () => (await node.listFeeds(roomId)).length === 0);
  await eventually(async () => (await stack.database.prisma.signalingInstance.count({ where: { id: 'dying' } })) === 0);
  const lines = pair.flatMap(({ logs }) => logs.filter(({ message }) => message === 'lost sessions ended'));
  expect(lines.some((line) => (line['roomIds'] as string[]).includes(roomId))).toBe(true);
});

test('a room ends by itself after it has been empty for the configured time', async () => {
  const { roomId, guests } = await liveRoom(1);
  await spawnWorker({ ROOM_EMPTY_TIMEOUT_SECONDS: '1' });
  const waitedAt = performance.now();
  await endOne(stack.database, guests[0]!, 'left', new Date());
  await stack.completed(roomId);
  expect(performance.now() - waitedAt).toBeGreaterThan(1000);
  expect(await countsOf(roomId)).toMatchObject({ 'participant.left left': 1, 'room.ended': 1 });
  expect(await hasMediaRoom(node, roomId)).toBe(false);
});
