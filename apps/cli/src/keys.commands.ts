import { randomBytes } from 'node:crypto';
import {
  API_KEY_RANDOM_BYTES,
  API_KEY_TYPES,
  apiKeyHint,
  formatApiKey,
  hashApiKey,
  newId,
  SCOPES,
  type ApiKeyType,
  type Scope,
} from '@callplane/core';
import { insertApiKey, listApiKeys, revokeApiKey, type ApiKeyRow, type Database } from '@callplane/db';
import { Command, Option } from 'commander';
import { notifyApps, withDatabase, type Cli } from './cli.js';
import { UsageError } from './failure.js';
import { ENV_OPTION, environmentOf, notFound, parseDuration, parseName, parseScopes } from './options.js';
import { addCommand, addList, print, type OutputOptions } from './output.js';
import { quoted } from './terminal.js';

interface NewKey {
  type: ApiKeyType;
  name?: string;
  scopes?: Scope[];
  /** In seconds. */
  expiresIn?: number;
}

type CreateOptions = OutputOptions & NewKey & { env?: string };

export function keysCommands(cli: Cli): Command {
  const keys = new Command('keys').description('API keys of an environment');
  const createExample =
    'rtc keys create --env env_01… --type secret --scopes rooms:create,tokens:create --expires-in 90d';
  addCommand(keys, 'create', 'Create an API key and show it once', createExample)
    .option(...ENV_OPTION)
    .addOption(
      new Option('--type <type>', 'secret for backends, publishable for clients')
        .choices(API_KEY_TYPES)
        .makeOptionMandatory(),
    )
    .option('--name <name>', 'name of the key', parseName)
    .option('--scopes <scopes>', 'comma-separated scopes of a secret key (default: all)', parseScopes)
    .option('--expires-in <duration>', 'validity such as 30m, 12h or 90d (default: unlimited)', parseDuration)
    .action((options: CreateOptions) => createKey(cli, options));
  addList(keys, cli, {
    description: 'List the API keys of an environment',
    example: 'rtc keys list --env env_01…',
    filters: [new Option(...ENV_OPTION)],
    rows: async ({ prisma }, options: OutputOptions & { env?: string }) => {
      const { environmentId } = await environmentOf(prisma, options.env);
      return listApiKeys(prisma, environmentId);
    },
    columns: {
      KEY: (row) => row.id,
      TYPE: (row) => row.type,
      'ENDS IN': (row) => `…${row.keyHint}`,
      STATE: (row) => stateOf(row, cli.clock.now()),
      CREATED: (row) => row.createdAt,
      SCOPES: ({ scopes }) => (scopes.length === SCOPES.length ? 'all' : scopes.join(',')),
      NAME: (row) => (row.name === null ? '' : quoted(row.name)),
    },
  });
  addCommand(keys, 'revoke <key>', 'Revoke an API key permanently', 'rtc keys revoke key_01…').action(
    (keyId: string, options: OutputOptions) => revokeKey(cli, options, keyId),
  );
  return keys;
}

function createKey(cli: Cli, options: CreateOptions): Promise<void> {
  if (options.type === 'publishable' && options.scopes !== undefined) {
    throw new UsageError('A publishable key has no scopes. Omit --scopes.');
  }
  return withDatabase(cli, async ({ prisma }) => {
    const { environmentId } = await environmentOf(prisma, options.env);
    const made = await insertKey(cli, prisma, { ...options, environmentId });
    print(cli, options, made, `Key ${made.id}, shown only once:\n${made.key}`);
  });
}

/**
 * Creates an API key with the given scopes, or with all.
 * @returns the row as the commands show it, with the key itself
 */
export async function insertKey(cli: Cli, prisma: Database['prisma'], options: NewKey & { environmentId: string }) {
  const { environmentId, type } = options;
  const key = formatApiKey(type, randomBytes(API_KEY_RANDOM_BYTES));
  const now = cli.clock.now();
  const row = {
    environmentId,
    type,
    name: options.name ?? null,
    keyHint: apiKeyHint(key),
    scopes: type === 'publishable' ? [] : (options.scopes ?? [...SCOPES]),
    createdAt: now,
    expiresAt: options.expiresIn === undefined ? null : new Date(now.getTime() + options.expiresIn * 1000),
  };
  const id = newId('apiKey');
  await insertApiKey(prisma, { id, ...row, keyHash: new Uint8Array(hashApiKey(key)) });
  return { id, key, ...row };
}

function revokeKey(cli: Cli, options: OutputOptions, keyId: string): Promise<void> {
  return withDatabase(cli, async ({ prisma }, config) => {
    const revoked = await revokeApiKey(prisma, keyId, cli.clock.now());
    if (revoked === null) throw notFound('Key', keyId, 'keys list');
    const notified = await notifyApps(config, 'apiKeyRevoked', Buffer.from(revoked.keyHash).toString('hex'));
    const text = `Key ${keyId} is revoked${notified ? '' : '; running apps refuse it within 5 seconds'}.`;
    print(cli, options, { id: keyId, revokedAt: revoked.revokedAt, noticeSent: notified }, text);
  });
}

function stateOf(row: ApiKeyRow, now: Date): string {
  if (row.revokedAt !== null) return 'revoked';
  if (row.expiresAt === null) return 'valid';
  return row.expiresAt <= now ? 'expired' : `until ${row.expiresAt.toISOString()}`;
}
