import { randomBytes } from 'node:crypto';
import {
  API_KEY_RANDOM_BYTES,
  CONSOLE_LINK_SECONDS,
  CONSOLE_SESSION_SECONDS,
  CONSOLE_SESSION_SECONDS_MAX,
  CONSOLE_SESSION_SECONDS_MIN,
  CONSOLE_SESSIONS_MAX,
  formatLoginCode,
  hashApiKey,
  newId,
  readScopes,
  SCOPES,
  type Scope,
} from '@callplane/core';
import { endConsoleSessions, insertConsoleSession, listConsoleSessions } from '@callplane/db';
import { Command, InvalidArgumentError, Option } from 'commander';
import { configOf, notifyApps, withDatabase, type Cli } from './cli.js';
import { UsageError } from './failure.js';
import { ENV_OPTION, environmentOf, notFound, parseDuration, parseScopes } from './options.js';
import { addCommand, addList, print, type OutputOptions } from './output.js';
import { serviceUrl, URL_OPTION } from './service-access.js';

interface LoginOptions extends OutputOptions {
  env?: string;
  readOnly?: true;
  scopes?: Scope[];
  /** In seconds. */
  ttl?: number;
  url?: string;
}

interface RevokeOptions extends OutputOptions {
  env?: string;
  all?: true;
}

export function consoleCommands(cli: Cli): Command {
  const console = new Command('console').description('sign-ins to the console (docs/console.md)');
  addCommand(console, 'login', 'Make a link that signs in to the console once', 'rtc console login --read-only')
    .option(...ENV_OPTION)
    .option('--read-only', 'the session may change nothing')
    .option('--scopes <scopes>', 'comma-separated scopes of the session (default: all)', parseScopes)
    .option('--ttl <duration>', 'how long the session lasts, such as 30m or 12h, at most 24h (default: 8h)', parseTtl)
    .option(...URL_OPTION)
    .action((options: LoginOptions) => makeLink(cli, options));
  const sessions = new Command('sessions').description('open sessions and unused links');
  console.addCommand(sessions);
  addList(sessions, cli, {
    description: 'List open sessions and unused links',
    example: 'rtc console sessions list --env env_01…',
    filters: [new Option(...ENV_OPTION)],
    rows: async (database, options: OutputOptions & { env?: string }) => {
      const { environmentId } = await environmentOf(database.prisma, options.env);
      return listConsoleSessions(database.sql, environmentId, cli.clock.now());
    },
    columns: {
      SESSION: (row) => row.id,
      STATE: (row) => (row.state === 'link' ? 'link' : 'open'),
      'MADE WITH': (row) => row.apiKeyId ?? 'rtc console login',
      MAY: (row) => (row.readOnly ? 'read' : 'read and change'),
      CREATED: (row) => row.createdAt,
      'LATEST REQUEST': (row) => (row.state === 'link' ? '' : row.usedAt.toISOString()),
      ENDS: (row) => row.expiresAt,
    },
  });
  addCommand(sessions, 'revoke [session]', 'End a session or a link at once', 'rtc console sessions revoke cses_01…')
    .option('--all', 'all of the environment, instead of one')
    .option('--env <id>', 'with --all: id of the environment (env_…); by default, the only one')
    .action((id: string | undefined, options: RevokeOptions) => revoke(cli, options, id));
  return console;
}

function makeLink(cli: Cli, options: LoginOptions): Promise<void> {
  const base = serviceUrl(options.url ?? configOf(cli).CALLPLANE_URL);
  const all = options.scopes ?? [...SCOPES];
  const readOnly = options.readOnly === true;
  const scopes = readOnly ? readScopes(all) : all;
  if (scopes.length === 0) throw new UsageError('None of --scopes only reads. Omit --read-only or --scopes.');
  return withDatabase(cli, async (database) => {
    const { environmentId } = await environmentOf(database.prisma, options.env);
    const code = formatLoginCode(randomBytes(API_KEY_RANDOM_BYTES));
    const lifetimeSeconds = options.ttl ?? CONSOLE_SESSION_SECONDS;
    const id = newId('consoleSession');
    const session = { id, environmentId, apiKeyId: null, scopes, readOnly, lifetimeSeconds };
    const outcome = await insertConsoleSession(database, session, { codeHash: hashApiKey(code) }, cli.clock.now());
    if (outcome === 'limit') {
      const how = '"rtc console sessions revoke" ends one.';
      throw new UsageError(`The environment has ${CONSOLE_SESSIONS_MAX} open sessions and links. ${how}`);
    }
    // The part behind # stays in the browser: no server gets it, and no log has it.
    const url = `${base}/console/#login=${code}`;
    const expiresAt = new Date(cli.clock.now().getTime() + CONSOLE_LINK_SECONDS * 1000);
    const text = `Open this link within ${CONSOLE_LINK_SECONDS / 60} minutes. It works once:\n${url}`;
    print(cli, options, { id, environmentId, url, readOnly, scopes, lifetimeSeconds, expiresAt }, text);
  });
}

function revoke(cli: Cli, options: RevokeOptions, id: string | undefined): Promise<void> {
  if ((id === undefined) !== (options.all === true)) {
    throw new UsageError('Give the id of a session or --all. "rtc console sessions list" lists sessions.');
  }
  return withDatabase(cli, async ({ prisma }, config) => {
    const ended = await endConsoleSessions(
      prisma,
      id === undefined ? { environmentId: (await environmentOf(prisma, options.env)).environmentId } : { id },
    );
    if (id !== undefined && ended.length === 0) {
      throw notFound('Session', id, 'console sessions list');
    }
    const hashes = ended.flatMap(({ secretHash }) => (secretHash === null ? [] : [secretHash]));
    const noticeSent = await notifyApps(config, 'consoleSessionEnded', ...hashes);
    const what = ended.length === 1 ? '1 session has' : `${ended.length} sessions have`;
    const text = `${what} ended${noticeSent ? '' : '; running apps refuse them within 5 seconds'}.`;
    print(cli, options, { ended: ended.map((one) => one.id), noticeSent }, text);
  });
}

function parseTtl(text: string): number {
  const seconds = parseDuration(text);
  if (seconds < CONSOLE_SESSION_SECONDS_MIN || seconds > CONSOLE_SESSION_SECONDS_MAX) {
    throw new InvalidArgumentError('Give 1m to 24h.');
  }
  return seconds;
}
