import { LEASE_SECONDS, QUEUE_OF_OPERATION } from '@callplane/core';
import { RECORDER_TASK, saveCapturePass } from '@callplane/db';
import { operationMetrics, Scan, SCAN_FAST_MS, settleExhausted, workOnOperation } from '@callplane/operations';
import type { Deps } from '../../../apps/recorder/src/deps.js';
import { recordingProcess } from '../../../apps/recorder/src/operations/recording-process.js';
import { stopOverdue } from '../../../apps/recorder/src/housekeeping.js';
import { systemClock } from '../../../packages/runtime/src/index.js';
import { noMetrics, openDatabase, periodicTasks, type Parts } from './tasks.js';

const KIND = 'recording.process';
const SWEEP_INTERVAL_MS = 5000;
const PASS_EVERY_MS = 1000;

/** As apps/recorder/src/main.ts does, without media: the steps that make files are tested with ffmpeg. */
export function startRecorder({ redis, media, databaseUrl, logger, name }: Parts): void {
  const database = openDatabase(databaseUrl);
  const producer = redis.producer();
  const kinds = { [KIND]: { ...recordingProcess({ concurrency: 1 }), steps: [] } };
  const deps: Deps = {
    database,
    producer,
    logger,
    metrics: operationMetrics(noMetrics, [KIND]),
    clock: systemClock,
    random: () => Math.random(),
    leaseMs: LEASE_SECONDS * 1000,
    store: {} as Deps['store'],
    scratchFolder: '',
    compositeFormat: 'mp4',
  };
  const work = (operationId: string): Promise<number | null> => workOnOperation(deps, operationId, kinds, KIND);
  const scan = new Scan(deps, [KIND], SWEEP_INTERVAL_MS, work);
  redis.work(QUEUE_OF_OPERATION[KIND], 1, work, (error) => logger.error('operation job failed', { error }));
  const { repeat, repeatElected } = periodicTasks('recorder', name, database, logger);
  repeat('scan', SCAN_FAST_MS, (signal) => scan.tick(signal));
  repeatElected('exhausted', SWEEP_INTERVAL_MS, () => settleExhausted(deps, kinds));
  repeatElected(RECORDER_TASK, SWEEP_INTERVAL_MS, () => stopOverdue(deps));
  // The agent of a media server that records nothing.
  repeat('captures', PASS_EVERY_MS, () => saveCapturePass(database.sql, media.servers[0]?.id ?? '', systemClock.now()));
}
