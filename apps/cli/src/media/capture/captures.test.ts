import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
  appendFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { captureChunkKey, newId } from '@callplane/core';
import { Database, lackOf, openMediaServers, RECORDER_TASK, seeRecordingEnd, takeSweep } from '@callplane/db';
import { FolderStore } from '@callplane/store';
import {
  createTestDatabase,
  createTestTenant,
  execute,
  onSmallDisk,
  stopAtEnd,
  type TestTenant,
} from '@callplane/testing';
import { Captures, type CaptureDeps } from './captures.js';

const scratch = mkdtempSync(join(tmpdir(), 'callplane-captures-'));
afterAll(() => rmSync(scratch, { recursive: true }));

let database: Database;
let tenant: TestTenant;
beforeAll(async () => {
  database = new Database({ url: (await createTestDatabase()).url, poolMax: 2 });
  stopAtEnd(() => database.close());
  tenant = await createTestTenant(database);
});

/** Requests of the agent to the media server. */
let asked: string[];
let folder: string;
let store: FolderStore;
let nowMs: number;
let deps: CaptureDeps;
beforeEach(async () => {
  await execute(database, 'TRUNCATE recordings, recording_captures');
  asked = [];
  folder = mkdtempSync(join(scratch, 'captures-'));
  store = new FolderStore(mkdtempSync(join(scratch, 'store-')));
  nowMs = Date.now();
  deps = {
    db: database.sql,
    record: (_roomId, how) => {
      asked.push(how === null ? 'stop' : `record ${how.keyFrameSeconds}`);
      return Promise.resolve(true);
    },
    store,
    nodeId: 'm1',
    folder,
    nowMs: () => nowMs,
  };
});

async function newRoom(): Promise<string> {
  const id = newId('room');
  const room = {
    id,
    environmentId: tenant.environmentId,
    name: 'Room',
    metadata: {},
    status: 'active',
    mediaNodeId: 'm1',
  };
  await database.prisma.room.create({
    data: { ...room, maxParticipants: 9, createdAt: new Date(), startedAt: new Date() },
  });
  return id;
}

async function record(roomId: string): Promise<string> {
  const id = newId('recording');
  const { environmentId } = tenant;
  const recording = { id, environmentId, roomId, mode: 'tracks', audioOnly: false, metadata: {}, status: 'recording' };
  await database.prisma.recording.create({ data: { ...recording, maxDurationSeconds: 600, startedAt: new Date() } });
  return id;
}

const end = (id: string, status = 'processing', endedAt = new Date()) =>
  database.prisma.recording.update({
    where: { id },
    data: { status, endedAt, completedAt: status === 'completed' ? new Date() : null },
  });
/** Whether a recorder would wait for the agent. */
const isOpen = async (roomId: string) => {
  const { id } = await database.prisma.recording.findFirstOrThrow({ where: { roomId } });
  return (await openMediaServers(database.sql, roomId, await seeRecordingEnd(database.sql, id))).length > 0;
};

const NAME = 'videoroom-room-user-sess_1-1-1-1795902233244954-audio-0';
/** A file as Janus begins it, with the first packet's arrival. */
function begin(roomId: string, name = NAME, atMs = nowMs): string {
  mkdirSync(join(folder, roomId), { recursive: true });
  const path = join(folder, roomId, `${name}.mjr.part`);
  const header = Buffer.from(JSON.stringify({ t: 'a', c: 'opus', s: atMs * 1000, u: atMs * 1000 }));
  writeFileSync(path, Buffer.concat([Buffer.from('MJR00002'), Buffer.from([0, header.length]), header]));
  return path;
}

const rows = () => database.prisma.recordingCapture.findMany({ orderBy: { name: 'asc' } });
async function stored(roomId: string): Promise<string> {
  const [row] = await rows();
  const chunks = Array.from({ length: row?.chunks ?? 0 }, (_, n) =>
    captureChunkKey({ roomId, nodeId: 'm1', name: NAME }, n),
  );
  const parts = await Promise.all(chunks.map(async (chunk) => buffer(await store.read(chunk))));
  return Buffer.concat(parts).toString('latin1');
}

describe('the agent', () => {
  test('records the rooms that want it, and asks for key frames often at first', async () => {
    const roomId = await newRoom();
    await record(roomId);
    const captures = new Captures(deps);
    const outcome = { absent: 0, isDiskFull: false, failure: null };
    for (let pass = 0; pass < 6; pass += 1) expect(await captures.pass()).toEqual(outcome);
    expect(asked).toEqual([...Array<string>(5).fill('record 1'), 'record 10']);
  });

  test('begins the files anew with each recording of the room, and stops with the last one', async () => {
    const roomId = await newRoom();
    const captures = new Captures(deps);
    const ids = [await record(roomId)];
    await captures.pass();
    ids.push(await record(roomId));
    await captures.pass();
    await end(ids[0]!);
    await captures.pass();
    await end(ids[1]!);
    await captures.pass();
    expect(asked).toEqual(['record 1', 'stop', 'record 1', 'stop', 'record 1', 'stop']);
  });

  test('looks for a room that is not there yet again, and says so', async () => {
    await record(await newRoom());
    deps = { ...deps, record: () => Promise.resolve(false) };
    expect(await new Captures(deps).pass()).toMatchObject({ absent: 1 });
  });
});

describe('a file that grows', () => {
  test('is shipped at once, every 30 s, and with the end of the recording', async () => {
    const roomId = await newRoom();
    const id = await record(roomId);
    const captures = new Captures(deps);
    const path = begin(roomId);
    await captures.pass();
    const [first] = await rows();
    expect(first).toMatchObject({
      roomId,
      nodeId: 'm1',
      kind: 'audio',
      feedId: 'sess_1-1-1',
      section: 0,
      closed: false,
    });
    appendFileSync(path, 'more');
    await captures.pass();
    expect(await rows()).toMatchObject([{ chunks: 1 }]);
    nowMs += 30_000;
    await captures.pass();
    expect(await rows()).toMatchObject([{ chunks: 2 }]);
    appendFileSync(path, ' again');
    await end(id);
    renameSync(path, path.replace('.part', ''));
    await captures.pass();
    expect(await rows()).toMatchObject([{ chunks: 3, closed: true }]);
    expect(await stored(roomId)).toMatch(/^MJR00002.*more again$/s);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('is waited for if a pass has begun after the time of the end and before its commit', async () => {
    const roomId = await newRoom();
    const id = await record(roomId);
    const captures = new Captures(deps);
    const path = begin(roomId);
    await captures.pass();
    appendFileSync(path, 'more');
    // The API waits for PostgreSQL, or its clock is behind.
    const endedAt = new Date(Date.now() - 5000);
    await captures.pass();
    await end(id, 'processing', endedAt);
    expect([await isOpen(roomId), (await rows())[0]?.chunks]).toEqual([true, 1]);
    renameSync(path, path.replace('.part', ''));
    await captures.pass();
    expect(await isOpen(roomId)).toBe(false);
    expect(await stored(roomId)).toMatch(/more$/);
  });

  test('of a media server that does not answer is shipped, and stays open until it answers', async () => {
    const roomId = await newRoom();
    const id = await record(roomId);
    const path = begin(roomId);
    let isDown = false;
    const answer = deps.record;
    deps = { ...deps, record: (...args) => (isDown ? Promise.reject(new Error('down')) : answer(...args)) };
    const captures = new Captures(deps);
    await captures.pass();
    appendFileSync(path, 'more');
    isDown = true;
    await end(id);
    nowMs += 30_000;
    await expect(captures.pass()).rejects.toThrow('down');
    expect(await rows()).toMatchObject([{ chunks: 2, closed: false }]);
    isDown = false;
    await captures.pass();
    expect(await rows()).toMatchObject([{ chunks: 2, closed: true }]);
  });

  test('has its begin by the clock of PostgreSQL', async () => {
    const roomId = await newRoom();
    const id = await record(roomId);
    nowMs += 3_600_000;
    begin(roomId);
    await end(id);
    await new Captures(deps).pass();
    const [row] = await rows();
    expect(Math.abs(row!.startedAt.getTime() - Date.now())).toBeLessThan(60_000);
  });

  test('is continued by the next agent from the size that the row has', async () => {
    const roomId = await newRoom();
    const id = await record(roomId);
    const captures = new Captures(deps);
    const path = begin(roomId);
    await captures.pass();
    nowMs += 30_000;
    await captures.pass();
    appendFileSync(path, 'after the restart');
    await end(id);
    await new Captures(deps).pass();
    expect(await stored(roomId)).toMatch(/^MJR00002.*}after the restart$/s);
  });

  test('stays on the disk while the store is away, and the pass does not count', async () => {
    const roomId = await newRoom();
    const id = await record(roomId);
    const path = begin(roomId);
    await end(id);
    const put = () => Promise.reject(new Error('away'));
    const away = { ...deps, store: { put } as unknown as FolderStore };
    await database.prisma.mediaNode.deleteMany();
    await expect(new Captures(away).pass()).rejects.toThrow('away');
    expect(existsSync(path)).toBe(true);
    expect(await database.prisma.mediaNode.findMany()).toEqual([]);
    await new Captures(deps).pass();
    expect(existsSync(path)).toBe(false);
    expect(await rows()).toMatchObject([{ closed: true }]);
  });

  test('stays on the disk while the media server does not answer: it may still write', async () => {
    const roomId = await newRoom();
    const id = await record(roomId);
    const path = begin(roomId);
    await end(id);
    const silent = { ...deps, record: () => Promise.reject(new Error('no answer')) };
    await expect(new Captures(silent).pass()).rejects.toThrow('no answer');
    expect(existsSync(path)).toBe(true);
  });
});

describe('a file that cannot be shipped', () => {
  const otherName = NAME.replace('audio-0', 'audio-1');
  test('delays its room alone, and no other file of it', async () => {
    const [bad, good] = [await newRoom(), await newRoom()];
    for (const roomId of [bad, good]) {
      const id = await record(roomId);
      begin(roomId);
      await end(id);
      expect(await isOpen(roomId)).toBe(true);
    }
    begin(bad, otherName);
    let isRefused = true;
    const put: FolderStore['put'] = (name, object) =>
      isRefused && name.includes(bad) && name.includes(NAME)
        ? Promise.reject(new Error('refused'))
        : store.put(name, object);
    const captures = new Captures({ ...deps, store: { put } });
    const began = nowMs;
    for (let pass = 1; pass <= 3; pass += 1) {
      nowMs += 10_000;
      expect((await captures.pass()).failure?.message).toBe('refused');
      expect([await isOpen(bad), await isOpen(good)]).toEqual([true, false]);
    }
    const closed = (await rows()).filter((row) => row.closed).map(({ roomId, name }) => `${roomId} ${name}`);
    expect(closed.sort()).toEqual([`${bad} ${otherName}`, `${good} ${NAME}`].sort());
    expect(captures.figures).toMatchObject({ failures: { pass: 0, room: 3 }, behindSinceMs: began + 10_000 });
    isRefused = false;
    expect((await captures.pass()).failure).toBeNull();
    expect([await isOpen(bad), readdirSync(folder)]).toEqual([false, []]);
    const bytes = (await rows()).reduce((sum, row) => sum + Number(row.bytes), 0);
    expect(captures.figures).toMatchObject({ shippedBytes: { audio: bytes, video: 0 }, behindSinceMs: null });
  });

  test('delays nobody although the service works for nobody else', async () => {
    const [bad, good] = [await newRoom(), await newRoom()];
    await end(await record(good));
    await end(await record(bad));
    for (const roomId of [good, bad]) expect(await isOpen(roomId)).toBe(true);
    mkdirSync(join(begin(bad, otherName), '..', NAME));
    const captures = new Captures(deps);
    expect((await captures.pass()).failure).toMatchObject({ code: 'EISDIR' });
    expect([await isOpen(bad), await isOpen(good)]).toEqual([true, false]);
  });

  test('counts as an outage of the store if the store takes nothing for half a minute', async () => {
    const roomId = await newRoom();
    await record(roomId);
    begin(roomId);
    let isAway = false;
    const put: FolderStore['put'] = (...args) => (isAway ? Promise.reject(new Error('away')) : store.put(...args));
    const captures = new Captures({ ...deps, store: { put } });
    await captures.pass();
    isAway = true;
    begin(roomId, otherName);
    nowMs += 29_000;
    expect((await captures.pass()).failure?.message).toBe('away');
    nowMs += 1000;
    await expect(captures.pass()).rejects.toThrow('away');
    expect(captures.figures.failures).toEqual({ pass: 1, room: 2 });
  });
});

test('folders of others beside the ones of rooms stay as they are', async () => {
  mkdirSync(join(folder, 'lost+found'));
  await new Captures(deps).pass();
  expect([asked, readdirSync(folder)]).toEqual([[], ['lost+found']]);
});

test('ten minutes without the store cost nothing: the file grows on the disk, and is shipped as a whole', async () => {
  const roomId = await newRoom();
  const id = await record(roomId);
  const path = begin(roomId);
  await database.prisma.mediaNode.deleteMany();
  let isAway = true;
  const put: FolderStore['put'] = (...args) => (isAway ? Promise.reject(new Error('away')) : store.put(...args));
  const agent = new Captures({ ...deps, store: { put } });
  for (let minute = 1; minute <= 10; minute += 1) {
    nowMs += 60_000;
    if (minute < 8) appendFileSync(path, ` minute ${minute}`);
    if (minute === 8) {
      await end(id);
      renameSync(path, path.replace('.part', ''));
    }
    await expect(agent.pass()).rejects.toThrow('away');
  }
  expect([await rows(), await database.prisma.mediaNode.count()]).toEqual([[], 0]);
  isAway = false;
  await agent.pass();
  expect(await stored(roomId)).toMatch(/^MJR00002.*} minute 1 minute 2.* minute 7$/s);
  expect([await rows(), readdirSync(folder)]).toMatchObject([[{ closed: true }], []]);
});

test('an almost full disk ends the recording and its files are shipped, until the disk has room', async () => {
  const mebibyte = 1024 * 1024;
  await onSmallDisk(513 * mebibyte, async (disk) => {
    folder = disk;
    const roomId = await newRoom();
    await record(roomId);
    const lease = { holder: 'test', leaseMs: 600_000, finishedMsAgo: null };
    await takeSweep(database.sql, { name: `recorder ${RECORDER_TASK}`, ...lease });
    const captures = new Captures({ ...deps, folder });
    await captures.pass();
    const path = begin(roomId);
    appendFileSync(path, Buffer.alloc(2 * mebibyte, 'x'));
    expect(await captures.pass()).toMatchObject({ absent: 0, isDiskFull: true });
    expect(asked).toEqual(['record 1', 'stop']);
    expect(await stored(roomId)).toMatch(/x{100}$/);
    expect([existsSync(path), await rows()]).toMatchObject([false, [{ closed: true }]]);
    // Requests to record are refused at once.
    expect(await lackOf(database.sql, roomId)).toBe('no_agent');
    expect(await captures.pass()).toMatchObject({ absent: 0, isDiskFull: false });
    expect([asked, await lackOf(database.sql, roomId)]).toEqual([['record 1', 'stop', 'record 1'], null]);
  });
});

test('files that no recording needs are not shipped, also if the media server does not answer', async () => {
  const roomId = await newRoom();
  begin(roomId);
  await end(await record(roomId), 'completed');
  const silent = { ...deps, record: () => Promise.reject(new Error('no answer')) };
  await expect(new Captures(silent).pass()).rejects.toThrow('no answer');
  expect([await rows(), readdirSync(folder)]).toEqual([[], [roomId]]);
});

test('files that no recording needs any more are deleted without being shipped', async () => {
  const roomId = await newRoom();
  begin(roomId);
  await end(await record(roomId), 'completed');
  await new Captures(deps).pass();
  expect([await rows(), readdirSync(folder)]).toEqual([[], []]);
});
