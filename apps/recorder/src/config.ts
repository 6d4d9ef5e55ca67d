import { LEASE_SECONDS } from '@callplane/core';
import {
  choice,
  databaseSettings,
  healthSettings,
  processSettings,
  recordingSettings,
  redisSettings,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';
import { COMPOSITE_FORMATS } from './composite/scene-arguments.js';

/** The environment variables of this app, parsed once at its start. The source of docs/configuration.md. */
export const RecorderConfig = Type.Object({
  ...databaseSettings,
  ...redisSettings,
  ...recordingSettings,
  RECORDER_CONCURRENCY: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 64,
    description: 'Recordings that this process converts at once. Each takes up to one processor.',
  }),
  RECORDER_SCRATCH_FOLDER: Type.String({
    default: '/tmp/callplane-recorder',
    pattern: '^/.',
    expected: 'an absolute path',
    description:
      'Folder for unfinished files, of this process alone: it is emptied at the start. It needs room for three times ' +
      'the largest track; for a composite also 30 MB a minute, and all tracks of one time.',
  }),
  RECORDER_COMPOSITE_FORMAT: choice(COMPOSITE_FORMATS, {
    default: 'mp4',
    description:
      'Format of composites: `mp4` has H.264 and AAC. `webm` has VP8 and Opus, and takes less processor time.',
  }),
  RECORDER_LEASE_MS: Type.Integer({
    default: LEASE_SECONDS * 1000,
    minimum: 100,
    maximum: 3_600_000,
    description:
      'Lease of a recording that is converted, in milliseconds. The recorder renews it. If the recorder dies, another ' +
      'one continues when the lease expires.',
  }),
  RECORDER_SWEEP_INTERVAL_MS: Type.Integer({
    default: 5000,
    minimum: 50,
    maximum: 10_000,
    description:
      'Interval in milliseconds between scans for recordings that no job announced, and for recordings that have ' +
      'reached their longest duration.',
  }),
  RECORDING_RETENTION_DAYS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 3650,
    description: 'Days after its end until a recording is deleted, with its files; 0 = never.',
  }),
  ...healthSettings,
  ...processSettings,
});

export type RecorderConfig = Static<typeof RecorderConfig>;
