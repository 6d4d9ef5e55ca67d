import { mkdir, rm } from 'node:fs/promises';
import type { OperationKind } from '@callplane/core';
import { Database, isDatabaseUnavailable, RECORDER_TASK, sweepLeases } from '@callplane/db';
import { operationMetrics, runOperations } from '@callplane/operations';
import { JobProducer, QUEUE_NAMES, readRedisTarget, REDIS_TROUBLES } from '@callplane/queue';
import { AppProcess, Elections, orExit, systemClock } from '@callplane/runtime';
import { openStore } from '@callplane/store';
import { hasFfmpeg } from './captures/ffmpeg.js';
import { RecorderConfig } from './config.js';
import type { Deps } from './deps.js';
import { deleteOld, stopOverdue } from './housekeeping.js';
import { kindsOf } from './operations/kinds.js';

const RETENTION_EVERY_MS = 60_000;

const app = AppProcess.start('recorder', RecorderConfig);
const { config, logger, metrics } = app;
const database = app.ownDatabase(new Database(app.databaseSettings));
const redis = orExit('REDIS_URL', () => readRedisTarget(config));
const producer = app.ownProducer(new JobProducer(redis, app.producerEvents(QUEUE_NAMES)), REDIS_TROUBLES);

const kinds = kindsOf(config.RECORDER_CONCURRENCY);
const store = await openStore(config);
const missing = [
  ...(store === null ? ['RECORDINGS_S3_BUCKET or RECORDINGS_FOLDER'] : []),
  ...((await hasFfmpeg()) ? [] : ['ffmpeg']),
];
if (store === null || missing.length > 0) {
  // Without the lease of a recorder, requests to record are refused.
  logger.warn('recordings are off', { missing });
} else {
  await rm(config.RECORDER_SCRATCH_FOLDER, { recursive: true, force: true });
  await mkdir(config.RECORDER_SCRATCH_FOLDER, { recursive: true });
  const deps: Deps = {
    database,
    producer,
    logger,
    metrics: operationMetrics(metrics, Object.keys(kinds) as OperationKind[]),
    clock: systemClock,
    random: Math.random,
    leaseMs: config.RECORDER_LEASE_MS,
    store,
    scratchFolder: config.RECORDER_SCRATCH_FOLDER,
    compositeFormat: config.RECORDER_COMPOSITE_FORMAT,
  };
  const elections = new Elections(sweepLeases(database.sql, app.processName), app);
  const sweepIntervalMs = config.RECORDER_SWEEP_INTERVAL_MS;
  runOperations(app, deps, kinds, { redis, elections, sweepIntervalMs });
  app.repeatElected(elections, RECORDER_TASK, sweepIntervalMs, () => stopOverdue(deps), isDatabaseUnavailable);
  const old = () => deleteOld(deps, config.RECORDING_RETENTION_DAYS);
  app.repeatElected(elections, 'retention and erasure', RETENTION_EVERY_MS, old, isDatabaseUnavailable);
}

const healthPort = await app.serveHealth(config);
await app.started('working', { kinds: Object.keys(kinds), concurrency: config.RECORDER_CONCURRENCY, healthPort });
