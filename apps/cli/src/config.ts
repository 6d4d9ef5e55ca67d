import { databaseSettings, encryptionSettings, redisSettings } from '@callplane/runtime';
import { Type, type Static } from 'typebox';

/** This app's environment, parsed once; docs/configuration.md is generated from it. */
export const CliConfig = Type.Object({
  DATABASE_URL: databaseSettings.DATABASE_URL,
  REDIS_URL: Type.Optional(
    Type.String({
      ...redisSettings.REDIS_URL,
      description: 'Redis, to tell running apps of a change at once. Without it they notice within seconds.',
    }),
  ),
  ENCRYPTION_KEYS: Type.Optional(
    Type.Array(Type.String(), {
      ...encryptionSettings.ENCRYPTION_KEYS,
      description:
        'Master keys for secrets at rest, as the API has them. Only `signing-keys rotate` and `encryption reseal` need them, and a check of `doctor`.',
    }),
  ),
  PRISMA_DIR: Type.Optional(
    Type.String({
      description: 'Where `schema.prisma` and `migrations/` are; by default those of the repository. Images set it.',
    }),
  ),
});

export type CliConfig = Static<typeof CliConfig>;
