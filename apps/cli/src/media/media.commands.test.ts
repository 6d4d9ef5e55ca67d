import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock } from '@callplane/core';
import {
  acceptRoomEnd,
  Database,
  listRegisteredNodes,
  recordNodeState,
  registerMediaNode,
  setNodeDraining,
} from '@callplane/db';
import { grantMediaAgentRights } from '@callplane/migrations';
import { freePort } from '@callplane/local-servers';
import { NoticeListener, RoomBus } from '@callplane/queue';
import { systemClock } from '@callplane/runtime';
import {
  execute,
  createTestDatabase,
  createTestTenant,
  eventually,
  inviteTestParticipant,
  joinOne,
  roomRow,
  startTestJanus,
  startTestRedis,
  stopAtEnd,
  type TestTenant,
} from '@callplane/testing';
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { runCommand } from '../cli.testkit.js';

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
  await database.sql.$executeRaw`UPDATE rooms SET media_node_id = NULL`;
  await database.sql.$executeRaw`DELETE FROM media_nodes`;
  for (const id of ['m1', 'm2', 'm3'])
    await recordNodeState(database.sql, id, id === 'm3' ? 'down' : 'up', { version: '1.4.1' });
});

const rtc = (commandLine: string, env: Record<string, string> = {}, clock: Clock = systemClock) =>
  runCommand({ DATABASE_URL: url, ...env }, commandLine.split(' '), { clock });
const json = async (commandLine: string, env?: Record<string, string>) =>
  JSON.parse((await rtc(`${commandLine} --json`, env)).stdout);

/** Creates a room with one participant on a media server. */
async function roomOn(mediaNodeId: string): Promise<string> {
  const now = new Date();
  const { id: roomId } = await database.prisma.room.create({ data: roomRow(tenant) });
  const { participantId, tokenId } = await inviteTestParticipant(database.sql, tenant, roomId, now);
  const resumeSecretHash = new Uint8Array(randomBytes(32));
  const input = { tenant, roomId, participantId, tokenId, resumeSecretHash, instanceId: 'i', mediaNodeId };
  await joinOne(database, { ...input, permissions: ['room:join'] }, now);
  return roomId;
}
const nodeOf = async (id: string) => (await database.prisma.room.findUniqueOrThrow({ where: { id } })).mediaNodeId;

/** Fields of a media server that MEDIA_NODES names and a worker has just checked. */
const CONFIGURED = {
  version: '1.4.1',
  draining: false,
  checkedAt: expect.any(String),
  capacity: null,
  region: null,
  url: null,
  agent: null,
  heartbeatAt: null,
  unreached: null,
};

test('lists media servers with their rooms and sessions', async () => {
  await roomOn('m1');
  const { data } = await json('media list');
  expect(data).toEqual([
    { id: 'm1', state: 'up', rooms: 1, sessions: 1, ...CONFIGURED },
    { id: 'm2', state: 'up', rooms: 0, sessions: 0, ...CONFIGURED },
    { id: 'm3', state: 'down', rooms: 0, sessions: 0, ...CONFIGURED },
  ]);
  const { stdout } = await rtc('media list');
  expect(stdout).toMatch(/^m1 +up +1\.4\.1 +in service +1 +1 +20/m);
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

test('drain --wait takes empty rooms off a media server, and fails if participants are left', async () => {
  const [busy, empty] = [await roomOn('m1'), await roomOn('m1')];
  await database.prisma.participantSession.updateMany({
    where: { roomId: empty },
    data: { endedAt: new Date(), endReason: 'left' },
  });
  const waiting = await rtc('media drain m1 --wait 1m', {}, jumpingClock());
  expect(waiting).toEqual({
    code: 1,
    stdout: 'm1 takes no new rooms. It carries 1 rooms with 1 sessions.\n',
    stderr: 'm1 still carries 1 rooms with 1 sessions after the wait.\n',
  });
  expect([await nodeOf(busy), await nodeOf(empty)]).toEqual(['m1', null]);
  const moved = { id: 'm1', draining: true, moved: 1, rooms: 0, sessions: 0 };
  const { code, stdout } = await rtc('media drain m1 --wait 1m --move --json', {}, jumpingClock());
  expect([code, JSON.parse(stdout)]).toEqual([0, moved]);
  expect(await nodeOf(busy)).toBe('m2');
  expect(await json('media drain m1 --wait')).toEqual({ ...moved, moved: 0 });
});

test('register and remove change the registry, and refuse surprising requests', async () => {
  const url = 'ws://10.0.0.7:8188/';
  expect(await json('media register m4 ws://10.0.0.7:8188 --capacity 800')).toEqual({
    id: 'm4',
    url,
    capacity: 800,
    region: null,
  });
  expect((await json('media list')).data[3]).toMatchObject({ id: 'm4', state: null, url, capacity: 800, agent: null });
  await registerMediaNode(database.sql, { id: 'm4', url, capacity: null, region: null, hasAgent: true });
  for (const [command, code, reason] of [
    ['media register m4 ws://10.0.0.8:8188', 1, /An agent runs for m4/],
    ['media register M4 ws://10.0.0.8:8188', 2, /name of a media server/],
    ['media register m5 http://10.0.0.8', 2, /m5 must have a ws:/],
    ['media register m5 ws://me:hush@10.0.0.8', 2, /must not contain credentials/],
    ['media register m5 ws://10.0.0.8 --capacity 0', 2, /from 1 to 1000000/],
    ['media agent m5 ws://10.0.0.8', 2, /MEDIA_API_SECRET/],
    ['media remove m4', 1, /The agent of m4 runs/],
    ['media remove m1', 1, /is in MEDIA_NODES of running/],
    ['media remove m9', 2, /rtc media list/],
  ] as const) {
    const { stderr, ...result } = await rtc(command);
    expect([command, result.code, stderr]).toEqual([command, code, expect.stringMatching(reason)]);
    expect(stderr).not.toContain('hush');
  }
  await database.sql.$executeRaw`UPDATE media_nodes SET heartbeat_at = now() - interval '1 minute' WHERE id = 'm4'`;
  const roomId = await roomOn('m4');
  expect((await rtc('media remove m4')).stderr).toMatch(/m4 carries 1 rooms with 1 sessions: run "rtc media drain/);
  expect(await json('media remove m4 --force')).toEqual({ id: 'm4', rooms: 1, sessions: 1 });
  expect(await nodeOf(roomId)).toBe('m4');
  expect(await listRegisteredNodes(database.sql)).toEqual([]);
});

test('an agent with its own database role registers the Janus beside it, notifies the gateways, and drains it at the end', async () => {
  const [janus, redis] = await Promise.all([startTestJanus(), startTestRedis()]);
  const heard = new NoticeListener(redis.url, { onLost: () => undefined, onReady: () => undefined });
  stopAtEnd(() => heard.close());
  let notices = 0;
  heard.on('mediaNodesChanged', () => (notices += 1));
  await eventually(() => heard.isListening);
  const mediaUrl = new URL(url);
  Object.assign(mediaUrl, { username: `agent_${randomBytes(4).toString('hex')}`, password: 'agent' });
  const role = await grantMediaAgentRights({ databaseUrl: url }, mediaUrl.href);
  stopAtEnd(() => dropRole(role));
  await registerMediaNode(database.sql, {
    id: 'm4',
    url: 'ws://10.0.0.7/',
    capacity: null,
    region: null,
    hasAgent: false,
  });
  await setNodeDraining(database.prisma, 'm4', true);
  // The agent itself answers at this address, and nothing at the other one.
  for (const [id, host] of Object.entries({ near: '127.0.0.1', far: '192.0.2.1' })) {
    const other = { id, url: `ws://${host}:8188/`, capacity: null, region: null, hasAgent: false };
    await registerMediaNode(database.sql, other);
  }
  const environment = {
    DATABASE_URL: mediaUrl.href,
    REDIS_URL: redis.url,
    MEDIA_API_SECRET: janus.apiSecret,
    MEDIA_ADMIN_KEY: janus.adminKey,
    MEDIA_NODES_PER_ROOM: '2',
    MEDIA_FORWARD_PORTS: '28800-28999',
  };
  const runningFile = join(mkdtempSync(join(tmpdir(), 'callplane-agent-')), 'running');
  const running = rtc(
    `media agent m4 ${janus.url} --capacity 50 --region eu-west --drain-on-stop 1m --running-file ${runningFile}`,
    environment,
  );
  const row = async () => (await json('media list')).data.find(({ id }: { id: string }) => id === 'm4');
  await eventually(async () => (await row()).agent === 'running');
  await eventually(() => notices > 0);
  expect(await row()).toMatchObject({ url: `${janus.url}/`, capacity: 50, region: 'eu-west', draining: false });
  expect((await row()).unreached).toContain('far');
  expect((await row()).unreached).not.toContain('near');
  expect(existsSync(runningFile)).toBe(true);
  const roomId = await roomOn('m4');
  await database.prisma.participantSession.updateMany({
    where: { roomId },
    data: { endedAt: new Date(), endReason: 'left' },
  });
  process.emit('SIGTERM');
  const { code, stdout } = await running;
  expect([code, stdout]).toEqual([
    0,
    `m4 is registered with ${janus.url}/.\nm4 takes no new rooms. Waiting for the end of its calls.\n` +
      '0 rooms were moved. m4 carries 0 rooms with 0 sessions.\n',
  ]);
  expect([(await row()).draining, await nodeOf(roomId), existsSync(runningFile)]).toEqual([true, null, false]);
});

test('an agent that records serves its metrics', async () => {
  const [janus, port] = await Promise.all([startTestJanus(), freePort()]);
  const folderOf = () => mkdtempSync(join(tmpdir(), 'callplane-agent-'));
  const running = rtc(`media agent m4 ${janus.url}`, {
    MEDIA_API_SECRET: janus.apiSecret,
    MEDIA_ADMIN_KEY: janus.adminKey,
    MEDIA_CAPTURE_FOLDER: folderOf(),
    RECORDINGS_FOLDER: folderOf(),
    METRICS_PORT: String(port),
  });
  const scrape = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  await eventually(async () => /^callplane_capture_free_bytes\{app="media-agent"\} \d{6,}/m.test(await scrape()));
  for (const sample of ['behind_seconds{', 'failures_total{what="pass",', 'shipped_bytes_total{kind="audio",']) {
    expect(await scrape()).toMatch(new RegExp(`^callplane_capture_${sample}.*} 0$`, 'm'));
  }
  process.emit('SIGTERM');
  expect((await running).code).toBe(0);
  await expect(scrape()).rejects.toThrow();
});

/** A clock that is two minutes later each time. */
function jumpingClock(): Clock {
  let atMs = Date.now();
  return { ...systemClock, now: () => new Date((atMs += 120_000)) };
}

async function dropRole(role: string): Promise<void> {
  await execute(database, `DROP OWNED BY ${role}`);
  await execute(database, `DROP ROLE ${role}`);
}
