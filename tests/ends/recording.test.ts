import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { captureChunkKey, newId } from '@callplane/core';
import { saveCapture, saveCapturePass, stopRecordings } from '@callplane/db';
import {
  appMain,
  capture,
  eventually,
  spawnApp,
  temporaryDirectory,
  type LogLine,
  type TestApp,
} from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { startStack } from '../faults/faults.testkit.js';

const SECONDS = 2;
const silence = capture(
  'opus',
  Array.from({ length: SECONDS * 50 }, (_, n) => ({
    ...{ arrivalMs: n * 20, sequence: n, timestamp: n * 960, payload: Buffer.from([0xf8, 0xff, 0xfe]) },
  })),
);

test('an operator repeats a failed recording with rtc, and a running recorder completes it', async () => {
  const stack = await startStack();
  const { database, tenant } = stack;
  const folder = temporaryDirectory('ends-recording');
  const env = { DATABASE_URL: stack.databaseUrl, REDIS_URL: stack.redis.url, RECORDINGS_FOLDER: join(folder, 'store') };
  const recorder: TestApp = await spawnApp({
    name: 'recorder',
    // Without a scan in time: the command itself wakes the recorder.
    env: { ...env, RECORDER_SCRATCH_FOLDER: join(folder, 'scratch'), RECORDER_SWEEP_INTERVAL_MS: '10000' },
  });
  const [roomId] = await stack.seedRooms(1);
  const id = newId('recording');
  const startedAt = new Date(Date.now() - SECONDS * 1000);
  const options = { mode: 'tracks', audioOnly: false, metadata: {}, maxDurationSeconds: 60, status: 'recording' };
  await database.prisma.recording.create({
    data: { id, environmentId: tenant.environmentId, roomId: roomId!, ...options, startedAt },
  });
  const file = { roomId: roomId!, nodeId: 'm1', name: 'a' };
  const chunk = join(env.RECORDINGS_FOLDER, captureChunkKey(file, 0));
  mkdirSync(dirname(chunk), { recursive: true });
  writeFileSync(chunk, silence);
  const place = { kind: 'audio', feedId: `${newId('session')}-1-1`, section: 0, startedAt } as const;
  await saveCapture(database.sql, { ...file, ...place, bytes: silence.length, chunks: 1, closed: true });
  await saveCapturePass(database.sql, 'm1', new Date(Date.now() + 60_000));

  const captures = join(env.RECORDINGS_FOLDER, 'captures');
  renameSync(captures, `${captures}-away`);
  const [operation] = await database.transaction(async (tx) => {
    const stopped = await stopRecordings(tx, tenant, roomId!, null, new Date());
    await tx.$executeRaw`UPDATE runtime_operations SET attempts = 7, run_attempts = 7 WHERE subject_id = ${id}`;
    return stopped.operations;
  });
  await stack.producer.wakeOperations([operation!]);
  const isAttempt = (outcome: string) => (line: LogLine) => line['outcome'] === outcome;
  await recorder.waitForLog(isAttempt('failed'));
  const row = () => database.prisma.recording.findUniqueOrThrow({ where: { id } });
  expect(await row()).toMatchObject({ status: 'failed', lastError: { code: 'STEP_FAILED' }, files: [] });

  renameSync(`${captures}-away`, captures);
  const rtc = (...args: string[]) =>
    JSON.parse(execFileSync(process.execPath, [appMain('cli'), ...args, '--json'], { env, encoding: 'utf8' }));
  expect(rtc('operations', 'retry', operation!.id)).toMatchObject({ run: 2, workersNotified: true });
  expect(await recorder.waitForLog(isAttempt('completed'))).toMatchObject({ run: 2, attempt: 1, captures: 1 });
  expect(await row()).toMatchObject({ status: 'completed', lastError: null, gaps: [], files: [{ durationMs: 2000 }] });
  await eventually(() => rtc('recordings', 'show', id).status === 'completed');
});
