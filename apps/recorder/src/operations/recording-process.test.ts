import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { recordingFileKey } from '@callplane/core';
import { acceptRecordingDeletion } from '@callplane/db';
import { operationMetrics, workOnOperation } from '@callplane/operations';
import { createLogger, createMetrics } from '@callplane/runtime';
import type { ObjectStore } from '@callplane/store';
import { capture, eventually, onSmallDisk, type TestPacket } from '@callplane/testing';
import {
  agentPassed,
  deps,
  failingFrom,
  files,
  kinds,
  operationId,
  recordingId,
  roomId,
  row,
  ship,
  store,
  tenant,
  work,
} from './recorder.testkit.js';

const packets = (count: number): TestPacket[] =>
  Array.from({ length: count }, (_, n) => ({
    arrivalMs: n * 20,
    sequence: n + 1,
    timestamp: n * 960,
    // A frame of silence.
    payload: Buffer.from([0xf8, 0xff, 0xfe]),
  }));

describe('the processing of a recording', () => {
  test('makes a file of each capture, forgets the captures, and leaves nothing in the scratch folder', async () => {
    await ship('a', capture('opus', packets(100)));
    await ship('b', capture('opus', packets(50)));
    await agentPassed();
    expect(await work()).toBeNull();
    expect(await row()).toMatchObject({ status: 'completed', progress: 100, gaps: [] });
    const [first, second] = await files();
    expect([first?.startMs, first?.durationMs, second?.durationMs].map((ms) => Math.round(ms! / 100))).toEqual([
      10, 20, 10,
    ]);
    expect(await store.size(recordingFileKey(recordingId, first!))).toBe(first!.bytes);
    expect(await deps.database.prisma.recordingCapture.count({ where: { roomId } })).toBe(0);
    expect(existsSync(join(store.folder, 'captures', roomId))).toBe(false);
    expect(readdirSync(deps.scratchFolder)).toEqual([]);
  });

  test('continues after the last file that is stored, and keeps the captures until then', async () => {
    await ship('a', capture('opus', packets(10)));
    await ship('b', capture('opus', packets(10)));
    await agentPassed();
    const put: string[] = [];
    expect(await work({ store: failingFrom(2, put) })).toBeGreaterThan(0);
    const [first] = await files();
    expect([(await files()).length, (await row()).status]).toEqual([1, 'processing']);
    expect(await work({ store: failingFrom(Infinity, put) })).toBeNull();
    expect((await files()).map(({ id }) => id)).toEqual([first!.id, expect.any(String)]);
    expect(put).toHaveLength(3);
  });

  test('tells of a codec that it does not know, and makes the other files', async () => {
    await ship('a', capture('pcmu', packets(100)));
    await ship('b', capture('opus', packets(10)));
    await agentPassed();
    await work();
    expect(await row()).toMatchObject({ status: 'completed', gaps: [{ startMs: 1000, reason: 'codec_unsupported' }] });
    expect(await files()).toHaveLength(1);
  });

  test('waits for a media server that still ships, and completes without a lost one', async () => {
    await ship('a', capture('opus', packets(10)), { nodeId: 'm2', closed: false });
    await agentPassed('m2', new Date(Date.now() - 1000));
    expect(await work()).toBeGreaterThan(0);
    expect(await row()).toMatchObject({ status: 'processing', files: [] });
    const end = new Date(Date.now() - 200_000);
    const at = end.toISOString();
    await deps.database.prisma.recording.update({
      where: { id: recordingId },
      data: { startedAt: new Date(end.getTime() - 60_000), endedAt: end, endSeenAt: end },
    });
    await deps.database.sql.$executeRaw`
      UPDATE recording_captures SET started_at = ${at}::timestamptz - interval '59 s',
        shipped_at = ${at}::timestamptz - interval '20 s' WHERE room_id = ${roomId}`;
    await agentPassed('m2', new Date(end.getTime() - 20_000));
    expect(await work()).toBeNull();
    expect(await row()).toMatchObject({
      status: 'completed',
      gaps: [{ startMs: 40_000, durationMs: 20_000, reason: 'media_server_lost' }],
    });
    expect(await files()).toHaveLength(1);
  });

  test('fails after its last attempt, with a reason, and keeps the captures', async () => {
    await ship('a', capture('opus', packets(10)));
    await store.removeAll(`captures/${roomId}/`);
    await agentPassed();
    await deps.database.prisma.runtimeOperation.update({
      where: { id: operationId },
      data: { attempts: 7, runAttempts: 7 },
    });
    expect(await work()).toBeNull();
    expect(await row()).toMatchObject({ status: 'failed', lastError: { code: 'STEP_FAILED' } });
    expect(await deps.database.prisma.recordingCapture.count({ where: { roomId } })).toBe(1);
    const events = await deps.database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
    expect(events.map(({ type }) => type)).toEqual(['recording.stopped', 'recording.failed', 'operation.failed']);
  });
});

/** A store that calls `meet` before each request, with its number. */
function watched(meet: (call: number) => Promise<void> | void): ObjectStore {
  let calls = 0;
  const next = async () => meet((calls += 1));
  return {
    put: async (name, object) => (await next(), store.put(name, object)),
    read: async (name) => (await next(), store.read(name)),
    size: async (name) => (await next(), store.size(name)),
    removeAll: async (prefix) => (await next(), store.removeAll(prefix)),
    link: () => store.link(),
    linkOrigin: null,
  };
}

describe('whatever request of a recorder to the store', () => {
  /** Two captures of two chunks: four reads, two files, and the deletion of the captures. */
  const CALLS = 7;
  const made = async () => (await files()).map(({ bytes, startMs, durationMs }) => [bytes > 0, startMs, durationMs]);
  const shipBoth = async () => {
    await ship('a', capture('opus', packets(20)));
    await ship('b', capture('opus', packets(10)));
    await agentPassed();
  };
  const expectWhole = async () => {
    expect(await made()).toEqual([
      [true, 1000, 400],
      [true, 1000, 200],
    ]);
    expect(await row()).toMatchObject({ status: 'completed', gaps: [] });
    expect(existsSync(join(store.folder, 'captures', roomId))).toBe(false);
    for (const file of await files()) expect(await store.size(recordingFileKey(recordingId, file))).toBe(file.bytes);
    const events = await deps.database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
    expect(events.map(({ type }) => type)).toEqual(['recording.stopped', 'recording.completed']);
  };

  test.each(Array.from({ length: CALLS }, (_, n) => n + 1))('fails, the same files come out (%i)', async (call) => {
    await shipBoth();
    const failing = watched((n) => (n === call ? Promise.reject(new Error('away')) : undefined));
    expect(await work({ store: failing })).not.toBeNull();
    expect(await row()).toMatchObject({ status: 'processing' });
    expect(await work()).toBeNull();
    await expectWhole();
  });

  test.each(Array.from({ length: CALLS }, (_, n) => n + 1))(
    'a frozen recorder stops at, another one makes the same files, and the frozen one writes nothing (%i)',
    async (call) => {
      await shipBoth();
      let thaw = () => {};
      const frozen = new Promise<void>((resolve) => (thaw = resolve));
      let isReached = false;
      const slow = watched((n) => {
        if (n === call) isReached = true;
        return n === call ? frozen : undefined;
      });
      const first = work({ store: slow });
      await eventually(() => isReached);
      await deps.database.sql.$executeRaw`
        UPDATE runtime_operations SET lease_expires_at = now() - interval '1 ms' WHERE id = ${operationId}`;
      expect(await work()).toBeNull();
      await expectWhole();
      thaw();
      expect(await first).toBeNull();
      await expectWhole();
    },
  );
});

describe('a recorder whose attempts fail', () => {
  /** As `work`, with what an operator sees of it. */
  const observed = () => {
    const out = new PassThrough();
    let text = '';
    out.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    const counted = createMetrics({ app: 'recorder' });
    const logger = createLogger({ LOG_LEVEL: 'info', LOG_FORMAT: 'json' }, 'recorder', out);
    return {
      more: { logger, metrics: operationMetrics(counted, ['recording.process']) },
      causes: () =>
        text
          .trim()
          .split('\n')
          .flatMap((line) => JSON.parse(line).error?.message ?? []),
      async attempts(outcome: string) {
        const line = new RegExp(`^callplane_operation_attempts_total.*${outcome}.* (\\d+)$`, 'm');
        return Number(line.exec(await counted.text())?.[1]);
      },
    };
  };

  test('because the store is away for ten minutes, completes once it is back', async () => {
    await ship('a', capture('opus', packets(20)));
    await agentPassed();
    const { more, causes, attempts } = observed();
    const away = watched(() => Promise.reject(new Error('the store is away')));
    for (let passedMs = 0; passedMs < 600_000;) {
      const retryInMs = await work({ ...more, store: away });
      expect(retryInMs).not.toBeNull();
      passedMs += retryInMs!;
    }
    await eventually(() => causes().length === 4);
    expect(causes()).toEqual(Array(4).fill('the store is away'));
    expect(await work(more)).toBeNull();
    expect([await attempts('retry'), await attempts('completed')]).toEqual([4, 1]);
    expect(await row()).toMatchObject({ status: 'completed', gaps: [], files: [{ startMs: 1000, durationMs: 400 }] });
  });

  test('because its disk is full, or fills up, completes once it has room', async () => {
    const bytes = 64 * 1024;
    await onSmallDisk(bytes, async (scratchFolder) => {
      await ship('a', capture('opus', packets(100)));
      await agentPassed();
      const { more, attempts } = observed();
      const filler = join(scratchFolder, 'filler');
      const fill = () => writeFileSync(filler, Buffer.alloc(bytes - 4096));
      fill();
      expect(await work({ ...more, scratchFolder })).not.toBeNull();
      rmSync(filler);
      expect(await work({ ...more, scratchFolder, store: watched(fill) })).not.toBeNull();
      expect([await attempts('retry'), await files(), readdirSync(scratchFolder)]).toEqual([2, [], ['filler']]);
      rmSync(filler);
      expect(await work({ ...more, scratchFolder })).toBeNull();
      expect(await row()).toMatchObject({
        status: 'completed',
        gaps: [],
        files: [{ startMs: 1000, durationMs: 2000 }],
      });
    });
  });
});

test('the deletion of a recording deletes its files, its captures and its row', async () => {
  await ship('a', capture('opus', packets(10)));
  await agentPassed();
  await work();
  const [file] = await files();
  const accepted = await acceptRecordingDeletion(deps.database, tenant, recordingId, new Date());
  if (accepted === null || accepted === 'running') throw new Error('not accepted');
  expect(await workOnOperation(deps, accepted.operation.id, kinds)).toBeNull();
  expect(await deps.database.prisma.recording.count({ where: { id: recordingId } })).toBe(0);
  expect(await store.size(recordingFileKey(recordingId, file!))).toBeNull();
});
