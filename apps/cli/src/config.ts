import {
  databaseConnectionSettings,
  encryptionSettings,
  forwardSettings,
  mediaSettings,
  metricsSettings,
  recordingSettings,
  redisSettings,
  SECRET,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';

/** The environment variables of this app, parsed once. docs/configuration.md is generated from this schema. */
export const CliConfig = Type.Object({
  ...databaseConnectionSettings,
  DATABASE_DIRECT_URL: Type.Optional(
    Type.String({
      ...databaseConnectionSettings.DATABASE_URL,
      description:
        'The `DATABASE_URL` without the pooler, for `db` and `doctor`. Needed if `DATABASE_POOLER` is `transaction`.',
    }),
  ),
  ...redisSettings,
  REDIS_URL: Type.Optional(
    Type.String({
      ...redisSettings.REDIS_URL,
      description:
        'Redis, used to notify running apps of a change at once. Without it they notice the change within seconds.',
    }),
  ),
  ENCRYPTION_KEYS: Type.Optional(
    Type.Array(Type.String(), {
      ...encryptionSettings.ENCRYPTION_KEYS,
      description:
        'Master keys for secrets at rest, the same as for the API. Only `signing-keys rotate`, `webhooks rotate-secret`, `encryption reseal` and one check of `doctor` need them.',
    }),
  ),
  GATEWAY_DATABASE_URL: Type.Optional(
    Type.String({
      ...databaseConnectionSettings.DATABASE_URL,
      description:
        'The `DATABASE_URL` of the signaling gateway, with a separate role. `db migrate` creates that role and ' +
        'grants it the rights that the gateway needs.',
    }),
  ),
  MEDIA_DATABASE_URL: Type.Optional(
    Type.String({
      ...databaseConnectionSettings.DATABASE_URL,
      description:
        'The `DATABASE_URL` of `media agent`, with a separate role. `db migrate` creates that role and grants it the ' +
        'rights that the agent needs.',
    }),
  ),
  MEDIA_API_SECRET: mediaSettings.MEDIA_API_SECRET,
  MEDIA_ADMIN_KEY: mediaSettings.MEDIA_ADMIN_KEY,
  ...forwardSettings,
  MEDIA_CAPTURE_FOLDER: Type.Optional(
    Type.String({
      pattern: '^/.',
      expected: 'an absolute path',
      description:
        'Folder that the media server writes recordings into and `media agent` ships them from, under the same path for ' +
        'both. Without it that server records nothing.',
    }),
  ),
  ...recordingSettings,
  METRICS_HOST: metricsSettings.METRICS_HOST,
  METRICS_PORT: Type.Integer({
    ...metricsSettings.METRICS_PORT,
    description: 'Port of `GET /metrics` of `media agent`, for Prometheus; 0 serves no metrics.',
  }),
  WEBHOOK_ALLOWED_CIDRS: Type.Array(Type.String(), {
    default: [],
    expected: 'a list of address ranges like backend=10.0.5.0/24,127.0.0.0/8',
    description: 'The networks of API and webhook workers. Only `doctor` checks them.',
  }),
  CALLPLANE_URL: Type.Optional(
    Type.String({
      pattern: '^https?://.+',
      expected: 'a URL like https://calls.example.com',
      description:
        'The service for `listen`, `doctor --from-here` and the links of `console login`, unless `--url` names it.',
    }),
  ),
  CALLPLANE_SIGNALING_URL: Type.Optional(
    Type.String({
      pattern: '^wss?://[^/]+/',
      expected: 'a URL like wss://calls.example.com/v1/signaling',
      description:
        'The gateway of `doctor --from-here` and `tokens create --whip`. Default: `/v1/signaling` of the service, which nginx serves.',
    }),
  ),
  CALLPLANE_API_KEY: Type.Optional(
    Type.String({
      ...SECRET,
      description: 'The API key of `listen`, `api`, `tokens create` and `doctor --from-here`, unless `--key` is given.',
    }),
  ),
  PRISMA_DIR: Type.Optional(
    Type.String({
      description:
        'Directory of `schema.prisma` and `migrations/`. Default: from the repository. Container images set it.',
    }),
  ),
});

export type CliConfig = Static<typeof CliConfig>;
