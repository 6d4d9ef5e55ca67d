import {
  databaseSettings,
  encryptionSettings,
  processSettings,
  proxySettings,
  recordingSettings,
  redisSettings,
  tokenSettings,
  turnSettings,
  webhookDestinationSettings,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';

/** The environment variables of this app, parsed once. docs/configuration.md is generated from this schema. */
export const ApiConfig = Type.Object({
  HOST: Type.String({ default: '0.0.0.0', description: 'Address that the API listens on.' }),
  PORT: Type.Integer({
    default: 8080,
    minimum: 0,
    maximum: 65535,
    description: 'Port of the API. 0 picks a free port and logs it.',
  }),
  ...proxySettings,
  ...databaseSettings,
  DATABASE_READ_POOL_MAX: Type.Integer({
    default: 5,
    minimum: 1,
    maximum: 500,
    description:
      'Maximum number of connections for reads, beside DATABASE_POOL_MAX. They continue while all others wait for a commit.',
  }),
  ...redisSettings,
  ...encryptionSettings,
  ...tokenSettings,
  ...turnSettings,
  ...webhookDestinationSettings,
  ...recordingSettings,
  ROOM_END_WAIT_MS: Type.Integer({
    default: 500,
    minimum: 0,
    maximum: 10_000,
    description:
      'How long a DELETE waits for its clean-up before it answers 202, in milliseconds. A `Prefer` header overrides it.',
  }),
  RATE_LIMIT_READS_PER_SECOND: Type.Integer({
    default: 200,
    minimum: 0,
    maximum: 1_000_000,
    description: 'Reads per second and API key; 0 = no limit.',
  }),
  RATE_LIMIT_READS_BURST: Type.Integer({
    default: 400,
    minimum: 1,
    maximum: 10_000_000,
    description: 'Reads that an API key may send in a burst. The effective value is at least the rate.',
  }),
  RATE_LIMIT_WRITES_PER_SECOND: Type.Integer({
    default: 100,
    minimum: 0,
    maximum: 1_000_000,
    description: 'Writes per second and API key; 0 = no limit.',
  }),
  RATE_LIMIT_WRITES_BURST: Type.Integer({
    default: 200,
    minimum: 1,
    maximum: 10_000_000,
    description: 'Writes that an API key may send in a burst. The effective value is at least the rate.',
  }),
  RATE_LIMIT_UNKNOWN_KEYS_PER_MINUTE: Type.Integer({
    default: 60,
    minimum: 0,
    maximum: 60_000,
    description:
      'Requests per minute with an unknown API key, per client address (IPv6: its /64) and instance; 0 = no limit. ' +
      'Valid keys from the same address are not limited.',
  }),
  RATE_LIMIT_UNKNOWN_KEYS_BURST: Type.Integer({
    default: 30,
    minimum: 1,
    maximum: 100_000,
    description: 'Requests with an unknown API key that one client address may send in a burst.',
  }),
  CONSOLE_ENABLED: Type.Boolean({
    default: true,
    description: 'Whether the API serves the console at `/console`, and accepts its sessions (docs/console.md).',
  }),
  CONSOLE_SIGNALING_URL: Type.Optional(
    Type.String({
      pattern: '^wss?://[^/]+/',
      expected: 'a URL like wss://calls.example.com/v1/signaling',
      description:
        'The gateway for calls in the console. By default, `/v1/signaling` of the address that the browser has. The ' +
        'gateway must allow the origin of the console (`ALLOWED_ORIGINS`).',
    }),
  ),
  ...processSettings,
  DRAIN_IDLE_MS: Type.Integer({
    default: 5000,
    minimum: 0,
    maximum: 600_000,
    description:
      'How long the API keeps idle connections open while it drains, in milliseconds. Set it longer than the idle ' +
      'timeout of the load balancer, and shorter than SHUTDOWN_DEADLINE_MS.',
  }),
});

export type ApiConfig = Static<typeof ApiConfig>;
