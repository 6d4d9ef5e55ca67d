import { DELIVERY_DEADLINE_SECONDS, DNS_DEADLINE_SECONDS, LEASE_SECONDS } from '@callplane/core';
import {
  databaseSettings,
  encryptionSettings,
  healthSettings,
  logSettings,
  metricsSettings,
  redisSettings,
  shutdownSettings,
  webhookDestinationSettings,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';

/** This app's environment, parsed once; docs/configuration.md is generated from it. */
export const WebhookWorkerConfig = Type.Object({
  ...databaseSettings,
  ...redisSettings,
  ...encryptionSettings,
  ...webhookDestinationSettings,
  WEBHOOK_DISABLE_AFTER_DAYS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 365,
    description: 'An endpoint that has only failed for so many days is disabled; 0 never disables one.',
  }),
  LEASE_MS: Type.Integer({
    default: LEASE_SECONDS * 1000,
    minimum: 100,
    maximum: 3_600_000,
    description:
      "How long a delivery is held before it is due again, in milliseconds. The contract's value is the default; tests shorten it.",
  }),
  DELIVERY_DEADLINE_MS: Type.Integer({
    default: DELIVERY_DEADLINE_SECONDS * 1000,
    minimum: 50,
    maximum: 60_000,
    description:
      "How long one attempt may take in all, in milliseconds. The contract's value is the default; tests shorten it.",
  }),
  DNS_DEADLINE_MS: Type.Integer({
    default: DNS_DEADLINE_SECONDS * 1000,
    minimum: 50,
    maximum: 60_000,
    description:
      "How long a name may take to resolve, in milliseconds. The contract's value is the default; tests shorten it.",
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
  SHUTDOWN_DEADLINE_MS: Type.Integer({
    default: 15_000,
    minimum: 100,
    maximum: 600_000,
    description: 'How long SIGTERM waits for attempts that are under way, in milliseconds; one may take 10 s.',
  }),
});

export type WebhookWorkerConfig = Static<typeof WebhookWorkerConfig>;
