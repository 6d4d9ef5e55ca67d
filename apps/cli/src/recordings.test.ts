import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId, recordingFileKey } from '@callplane/core';
import { Database, saveCapturePass, settleRecording, takeSweep } from '@callplane/db';
import { FolderStore } from '@callplane/store';
import {
  createTestDatabase,
  createTestTenant,
  roomRow,
  temporaryDirectory,
  type TestDatabase,
  type TestTenant,
} from '@callplane/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { commandsWith } from './cli.testkit.js';

const folder = temporaryDirectory('rtc-recordings');
const storeFolder = join(folder, 'store');
let target: TestDatabase;
let database: Database;
let tenant: TestTenant;
let roomId: string;
beforeAll(async () => {
  target = await createTestDatabase();
  database = new Database({ url: target.url, poolMax: 2 });
  tenant = await createTestTenant(database);
  roomId = (await database.prisma.room.create({ data: roomRow(tenant) })).id;
});
afterAll(() => database.close());

const { rtc, json, expectFailure } = commandsWith(() => ({ DATABASE_URL: target.url }));
const recordings = (...rest: string[]) => ['recordings', ...rest];
const run = (...rest: string[]) => json(...recordings(...rest));

describe('rtc recordings', () => {
  let id: string;

  test('starts a recording once a recorder and an agent run', async () => {
    await expectFailure(1, recordings('start', roomId), 'No recorder with a store and ffmpeg runs');
    const lease = { name: 'recorder longest durations', holder: 'test', leaseMs: 600_000, finishedMsAgo: null };
    await takeSweep(database.sql, lease);
    await expectFailure(1, recordings('start', roomId), 'no agent that records');
    await saveCapturePass(database.sql, 'm1', new Date());
    const started = await run('start', roomId, '--mode', 'tracks');
    expect(started).toMatchObject({ roomId });
    id = started.id;
    expect((await run('list', '--room', roomId)).data).toMatchObject([{ id, mode: 'tracks', status: 'recording' }]);
    expect((await run('list', '--status', 'failed')).data).toEqual([]);
    await expectFailure(1, recordings('delete', id), `rtc recordings stop ${id}`);
  });

  test('ends it once, and makes the files of a failed one again', async () => {
    const { operationId } = await run('stop', id);
    await expectFailure(1, recordings('stop', id), 'has ended already: processing');
    const { prisma } = database;
    await prisma.runtimeOperation.update({
      where: { id: operationId },
      data: { status: 'failed', runAttempts: 8, attempts: 8 },
    });
    const claim = { subjectId: id, roomId, ...tenant };
    const error = { code: 'STEP_FAILED', message: 'the store was away' };
    await database.transaction((tx) => settleRecording(tx, claim, { status: 'failed', error }, new Date()));
    expect((await rtc(...recordings('show', id))).stdout).toContain('the store was away');
    expect(await json('operations', 'retry', operationId)).toMatchObject({ id: operationId, run: 2 });
    await database.transaction((tx) => settleRecording(tx, claim, { status: 'completed' }, new Date()));
    expect(await run('show', id)).toMatchObject({ status: 'completed', lastError: null, progress: 100 });
  });

  test('shows and downloads its files, and deletes it', async () => {
    const file = { id: newId('recordingFile'), contentType: 'audio/webm', bytes: 5, source: 'microphone' };
    await database.prisma.recording.update({ where: { id }, data: { files: [file] } });
    await new FolderStore(storeFolder).put(recordingFileKey(id, file), Buffer.from('sound'));
    expect((await rtc(...recordings('show', id))).stdout).toContain(file.id);
    const to = join(folder, 'sound.weba');
    await expectFailure(1, recordings('download', id, file.id, '--to', to), 'RECORDINGS_FOLDER');
    await expectFailure(2, recordings('download', id, 'recf_0', '--to', to), 'not found');
    const env = { DATABASE_URL: target.url, RECORDINGS_FOLDER: storeFolder };
    const { json: withStore } = commandsWith(() => env);
    expect(await withStore(...recordings('download', id, file.id, '--to', to))).toMatchObject({ path: to });
    expect(readFileSync(to, 'utf8')).toBe('sound');
    expect((await run('delete', id)).operationId).toMatch(/^op_/);
    await expectFailure(2, recordings('show', id), `Recording "${id}" not found. See "rtc recordings list".`);
    expect((await run('list')).data).toEqual([]);
  });
});
