import { LEASE_SECONDS } from '@callplane/core';
import {
  databaseSettings,
  healthSettings,
  logSettings,
  metricsSettings,
  redisSettings,
  shutdownSettings,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';

/** This app's environment, parsed once; docs/configuration.md is generated from it. */
export const CleanupWorkerConfig = Type.Object({
  ...databaseSettings,
  ...redisSettings,
  LEASE_MS: Type.Integer({
    default: LEASE_SECONDS * 1000,
    minimum: 100,
    maximum: 3_600_000,
    description:
      "How long an operation is held before it is due again, in milliseconds. The contract's value is the default; tests shorten it.",
  }),
  SWEEP_INTERVAL_MS: Type.Integer({
    default: 5000,
    minimum: 50,
    maximum: 10_000,
    description: 'How often rows are looked for that are due and that no job woke, in milliseconds.',
  }),
  ...healthSettings,
  ...metricsSettings,
  ...logSettings,
  ...shutdownSettings,
});

export type CleanupWorkerConfig = Static<typeof CleanupWorkerConfig>;
