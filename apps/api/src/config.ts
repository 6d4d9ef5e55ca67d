import {
  databaseSettings,
  encryptionSettings,
  logSettings,
  metricsSettings,
  proxySettings,
  redisSettings,
  shutdownSettings,
  tokenSettings,
  turnSettings,
  webhookDestinationSettings,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';

/** This app's environment, parsed once; docs/configuration.md is generated from it. */
export const ApiConfig = Type.Object({
  HOST: Type.String({ default: '0.0.0.0', description: 'Address that the API listens on.' }),
  PORT: Type.Integer({
    default: 8080,
    minimum: 0,
    maximum: 65535,
    description: 'Port of the API; 0 takes a free one and logs it.',
  }),
  ...proxySettings,
  ...databaseSettings,
  ...redisSettings,
  ...encryptionSettings,
  ...tokenSettings,
  ...turnSettings,
  ...webhookDestinationSettings,
  ROOM_END_WAIT_MS: Type.Integer({
    default: 500,
    minimum: 0,
    maximum: 10_000,
    description:
      'How long a DELETE waits for its clean-up before it answers 202, in milliseconds, unless the caller says `Prefer`.',
  }),
  RATE_LIMIT_READS_PER_SECOND: Type.Integer({
    default: 200,
    minimum: 0,
    maximum: 1_000_000,
    description: 'Reads a second and key; 0 = no limit.',
  }),
  RATE_LIMIT_READS_BURST: Type.Integer({
    default: 400,
    minimum: 1,
    maximum: 10_000_000,
    description: 'Reads that a key may make at once; at least the rate.',
  }),
  RATE_LIMIT_WRITES_PER_SECOND: Type.Integer({
    default: 100,
    minimum: 0,
    maximum: 1_000_000,
    description: 'Writes a second and key; 0 = no limit.',
  }),
  RATE_LIMIT_WRITES_BURST: Type.Integer({
    default: 200,
    minimum: 1,
    maximum: 10_000_000,
    description: 'Writes that a key may make at once; at least the rate.',
  }),
  ...metricsSettings,
  ...logSettings,
  ...shutdownSettings,
  DRAIN_IDLE_MS: Type.Integer({
    default: 5000,
    minimum: 0,
    maximum: 600_000,
    description:
      'While draining: how long an idle connection may still bring a request, in milliseconds. Longer than the load ' +
      'balancer keeps idle connections, and shorter than SHUTDOWN_DEADLINE_MS.',
  }),
});

export type ApiConfig = Static<typeof ApiConfig>;
