import { LEASE_SECONDS } from '@callplane/core';
import {
  databaseSettings,
  healthSettings,
  logSettings,
  mediaSettings,
  redisSettings,
  sessionSettings,
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
    description:
      'How often rows are looked for that are due and that no job woke, and how often database, signaling instances and media servers are compared, in milliseconds.',
  }),
  ROOM_EMPTY_TIMEOUT_SECONDS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 604_800,
    description:
      'How long after the last participant has left a room ends by itself, in seconds; 0 = it stays open. A room that nobody has joined yet stays open.',
  }),
  ...sessionSettings,
  ...mediaSettings,
  ...healthSettings,
  ...logSettings,
  ...shutdownSettings,
});

export type CleanupWorkerConfig = Static<typeof CleanupWorkerConfig>;
