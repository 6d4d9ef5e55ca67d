import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { captureChunkKey, newId, type OperationKind, type StoredRecordingFile } from '@callplane/core';
import { Database, saveCapture, saveCapturePass, stopRecordings } from '@callplane/db';
import { operationMetrics, workOnOperation } from '@callplane/operations';
import { JobProducer } from '@callplane/queue';
import { createLogger, createMetrics, systemClock } from '@callplane/runtime';
import { FolderStore, type ObjectStore } from '@callplane/store';
import { createTestDatabase, createTestTenant, startTestRedis, stopAtEnd, type TestTenant } from '@callplane/testing';
import type { Deps } from '../deps.js';
import { kindsOf } from './kinds.js';

// A recorder without a process, and before each test a recording of a minute that has just ended.

const folder = mkdtempSync(join(tmpdir(), 'callplane-recorder-test-'));
afterAll(() => rmSync(folder, { recursive: true }));
export const kinds = kindsOf(1);

export let deps: Deps;
export let tenant: TestTenant;
export let store: FolderStore;
beforeAll(async () => {
  const [{ url }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const database = new Database({ url, poolMax: 5 });
  const producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined });
  stopAtEnd(() => Promise.all([producer.close(), database.close()]));
  tenant = await createTestTenant(database);
  store = new FolderStore(join(folder, 'store'));
  const scratchFolder = join(folder, 'scratch');
  mkdirSync(scratchFolder);
  deps = {
    database,
    producer,
    logger: createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'recorder', new PassThrough()),
    metrics: operationMetrics(createMetrics({ app: 'recorder' }), Object.keys(kinds) as OperationKind[]),
    clock: systemClock,
    random: Math.random,
    leaseMs: 60_000,
    store,
    scratchFolder,
    compositeFormat: 'mp4',
  };
});

const BEGAN_MS = 60_000;
export let roomId: string;
export let recordingId: string;
export let operationId: string;
export let beganAtMs: number;
/** A recording of a minute that has just ended. */
export async function begin(): Promise<void> {
  const { prisma } = deps.database;
  const { environmentId } = tenant;
  [roomId, recordingId] = [newId('room'), newId('recording')];
  beganAtMs = Date.now() - BEGAN_MS;
  const startedAt = new Date(beganAtMs);
  await prisma.room.create({
    data: {
      id: roomId,
      environmentId,
      name: 'Room',
      metadata: {},
      status: 'active',
      maxParticipants: 9,
      createdAt: startedAt,
      startedAt,
    },
  });
  await prisma.recording.create({
    data: {
      ...{ id: recordingId, environmentId, roomId, mode: 'tracks', audioOnly: false, metadata: {} },
      ...{ maxDurationSeconds: 600, status: 'recording', startedAt },
    },
  });
  const stopped = await deps.database.transaction((tx) => stopRecordings(tx, tenant, roomId, null, new Date()));
  operationId = stopped.operations[0]!.id;
}
beforeEach(begin);

/** Stores a capture in two chunks, as the agent does. */
export async function ship(
  name: string,
  bytes: Buffer,
  more: { nodeId?: string; closed?: boolean; kind?: 'audio' | 'video'; feedId?: string } = {},
): Promise<void> {
  const { nodeId = 'm1', closed = true, kind = 'audio', feedId = `${newId('session')}-1-1` } = more;
  const half = Math.ceil(bytes.length / 2);
  for (const [n, part] of [bytes.subarray(0, half), bytes.subarray(half)].entries()) {
    await store.put(captureChunkKey({ roomId, nodeId, name }, n), part);
  }
  const startedAt = new Date(beganAtMs + 1000);
  const row = { roomId, nodeId, name, kind, feedId, section: 0, startedAt } as const;
  await saveCapture(deps.database.sql, { ...row, bytes: bytes.length, chunks: 2, closed });
}
export const agentPassed = (nodeId = 'm1', at = new Date(Date.now() + 3_600_000)) =>
  saveCapturePass(deps.database.sql, nodeId, at);
export async function work(more: Partial<Deps> = {}): Promise<number | null> {
  await deps.database.prisma.runtimeOperation.updateMany({
    where: { status: 'pending' },
    data: { dueAt: new Date(Date.now() - 1000) },
  });
  return workOnOperation({ ...deps, ...more }, operationId, kinds);
}
export const row = () => deps.database.prisma.recording.findUniqueOrThrow({ where: { id: recordingId } });
export const files = async () => (await row()).files as unknown as StoredRecordingFile[];

/** A store that fails from its n-th write on, as if the recorder were killed there. */
export const failingFrom = (n: number, written: string[] = []): ObjectStore => ({
  put: (name, object) => (written.push(name) >= n ? Promise.reject(new Error('away')) : store.put(name, object)),
  read: (name) => store.read(name),
  size: (name) => store.size(name),
  removeAll: (prefix) => store.removeAll(prefix),
  linkOrigin: null,
  link: () => store.link(),
});
