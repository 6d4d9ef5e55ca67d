import { randomBytes } from 'node:crypto';
import { newId } from '@callplane/core';
import { Database, recordNodeState, acceptRoomEnd } from '@callplane/db';
import { RoomBus } from '@callplane/queue';
import { systemClock } from '@callplane/runtime';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  inviteTestParticipant,
  joinOne,
  startTestRedis,
  stopAtEnd,
  type TestTenant,
} from '@callplane/testing';
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { run } from './program.js';

let url: string;
let database: Database;
let tenant: TestTenant;
beforeAll(async () => {
  ({ url } = await createTestDatabase());
  database = new Database({ url, poolMax: 2 });
  stopAtEnd(() => database.close());
  tenant = await createTestTenant(database);
});
beforeEach(async () => {
  await database.prisma.$executeRaw`UPDATE rooms SET media_node_id = NULL`;
  await database.prisma.$executeRaw`DELETE FROM media_nodes`;
  for (const id of ['m1', 'm2', 'm3']) await recordNodeState(database.sql, id, id === 'm3' ? 'down' : 'up');
});

async function rtc(commandLine: string, env: Record<string, string> = {}) {
  let stdout = '';
  const cli = {
    environment: { DATABASE_URL: url, ...env },
    clock: systemClock,
    write: (text: string) => {
      stdout += text;
    },
  };
  const failure = await run(cli, commandLine.split(' '));
  return { code: failure?.exitCode ?? 0, stdout, stderr: failure?.line ?? '' };
}
const json = async (commandLine: string, env?: Record<string, string>) =>
  JSON.parse((await rtc(`${commandLine} --json`, env)).stdout);

/** Creates a room with one participant on a media server. */
async function roomOn(mediaNodeId: string): Promise<string> {
  const now = new Date();
  const roomId = newId('room');
  const { environmentId } = tenant;
  await database.prisma.room.create({
    data: {
      id: roomId,
      environmentId,
      name: 'Room',
      metadata: {},
      status: 'created',
      maxParticipants: 9,
      createdAt: now,
    },
  });
  const { participantId, tokenId } = await inviteTestParticipant(database.sql, tenant, roomId, now);
  const resumeSecretHash = new Uint8Array(randomBytes(32));
  const input = { tenant, roomId, participantId, tokenId, resumeSecretHash, instanceId: 'i', mediaNodeId };
  await joinOne(database, { ...input, permissions: ['room:join'] }, now);
  return roomId;
}
const nodeOf = async (id: string) => (await database.prisma.room.findUniqueOrThrow({ where: { id } })).mediaNodeId;

test('lists media servers with their rooms and sessions', async () => {
  await roomOn('m1');
  const { data } = await json('media list');
  expect(data).toEqual([
    { id: 'm1', state: 'up', draining: false, rooms: 1, sessions: 1, checkedAt: expect.any(String) },
    { id: 'm2', state: 'up', draining: false, rooms: 0, sessions: 0, checkedAt: expect.any(String) },
    { id: 'm3', state: 'down', draining: false, rooms: 0, sessions: 0, checkedAt: expect.any(String) },
  ]);
  const { stdout } = await rtc('media list');
  expect(stdout).toMatch(/^m1 {2}up {4}in service {2}1 rooms {2}1 sessions {2}seen 20/);
});

test('drain marks a media server as draining and keeps its rooms, and undrain reverses it', async () => {
  const roomId = await roomOn('m1');
  expect(await json('media drain m1')).toEqual({ id: 'm1', draining: true, moved: 0, rooms: 1, sessions: 1 });
  expect((await json('media list')).data[0]).toMatchObject({ id: 'm1', draining: true });
  expect(await nodeOf(roomId)).toBe('m1');
  expect((await rtc('media drain m1')).stdout).toBe('m1 takes no new rooms. It carries 1 rooms with 1 sessions.\n');
  expect(await json('media undrain m1')).toEqual({ id: 'm1', draining: false, rooms: 1, sessions: 1 });
  expect((await json('media list')).data[0]).toMatchObject({ id: 'm1', draining: false });
});

test('drain --move moves rooms to a media server that is up, and notifies the gateways', async () => {
  const redis = await startTestRedis();
  const roomId = await roomOn('m1');
  const ending = await roomOn('m1');
  await acceptRoomEnd(database, tenant, ending, new Date());
  const silent = { onLost: () => undefined, onReady: () => undefined };
  const bus = new RoomBus({ redisUrl: redis.url, instanceId: 'i', publisher: null as never, events: silent });
  stopAtEnd(() => bus.close());
  let changed = 0;
  bus.subscribe(roomId, { changed: () => (changed += 1), message: () => undefined });
  await eventually(() => bus.isListening);
  expect(await json('media drain m1 --move', { REDIS_URL: redis.url })).toEqual({
    id: 'm1',
    draining: true,
    moved: 1,
    rooms: 1,
    sessions: 1,
  });
  expect([await nodeOf(roomId), await nodeOf(ending)]).toEqual(['m2', 'm1']);
  await eventually(() => changed === 1);
});

test('drain --move fails and moves nothing if no other media server is up', async () => {
  const roomId = await roomOn('m1');
  await recordNodeState(database.sql, 'm2', 'down');
  const { code, stderr } = await rtc('media drain m1 --move');
  expect([code, stderr]).toEqual([1, expect.stringContaining('No other media server is up')]);
  expect(await nodeOf(roomId)).toBe('m1');
});

test('drain and undrain exit with 2 for an unknown media server', async () => {
  for (const command of ['media drain m9', 'media undrain m9']) {
    expect(await rtc(command)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('rtc media list'),
    });
  }
});
