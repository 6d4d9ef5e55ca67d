import { readFileSync } from 'node:fs';
import { databaseTlsProblem, parseDatabaseUrl } from '@callplane/core';
import { Type, type Static, type TObject } from 'typebox';
import { choice, ConfigurationError, SECRET } from './environment.js';

export const databaseConnectionSettings = {
  DATABASE_URL: Type.String({
    ...SECRET,
    pattern: '^postgres(ql)?://.+',
    format: 'database-url',
    expected: 'a URL like postgresql://user:password@host:5432/database, with special characters escaped (%40 for @)',
    description:
      'PostgreSQL, the truth. May name several hosts (`host1:5432,host2:5432`), of which the one that accepts writes ' +
      'is used, and libpq’s `sslmode` and `sslrootcert`.',
  }),
  DATABASE_PASSWORD_FILE: Type.Optional(
    Type.String({
      description:
        'File with the password, instead of the one in the URL. Read for each new connection, so that a rotation needs ' +
        'no restart.',
    }),
  ),
  DATABASE_CA_FILE: Type.Optional(
    Type.String({
      description:
        'File with the certificates of the CAs, unless the URL has `sslrootcert`. Needs `sslmode` in the URL. Read for ' +
        'each new connection.',
    }),
  ),
  DATABASE_POOLER: choice(['none', 'transaction'], {
    default: 'none',
    description:
      '`transaction` if the URL leads to a pooler that gives each transaction another session, such as PgBouncer with ' +
      '`pool_mode = transaction`.',
  }),
};

export const databaseSettings = {
  ...databaseConnectionSettings,
  DATABASE_POOL_MAX: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 500,
    description:
      'Maximum number of connections that this process opens to PostgreSQL. As many more may wait for answers that are late.',
  }),
};

type Settings = Static<TObject<typeof databaseConnectionSettings>>;

/**
 * Settings for `new Database(…)`.
 * @throws ConfigurationError if the settings contradict each other, or a file that they name cannot be read.
 */
export function databaseConnection(config: Settings) {
  const { DATABASE_URL: url, DATABASE_PASSWORD_FILE: passwordFile, DATABASE_CA_FILE: caFile } = config;
  const parsed = parseDatabaseUrl(url);
  const problem = databaseTlsProblem(parsed, caFile);
  if (problem !== null) throw new ConfigurationError([`DATABASE_URL ${problem}`]);
  const { sslrootcert, sslcert, sslkey } = parsed.parameters;
  const files = {
    DATABASE_PASSWORD_FILE: passwordFile,
    DATABASE_CA_FILE: caFile,
    'sslrootcert of DATABASE_URL': sslrootcert,
    'sslcert of DATABASE_URL': sslcert,
    'sslkey of DATABASE_URL': sslkey,
  };
  const problems = Object.entries(files).flatMap(([name, file]) => unreadable(name, file));
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    url,
    pooler: config.DATABASE_POOLER,
    ...(passwordFile === undefined ? {} : { passwordFile }),
    ...(caFile === undefined ? {} : { caFile }),
  };
}

function unreadable(name: string, file: string | undefined): string[] {
  if (file === undefined) return [];
  try {
    return readFileSync(file, 'utf8').trim() === '' ? [`${name} is empty (${file})`] : [];
  } catch (error) {
    return [`${name} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unreadable'}: ${file})`];
  }
}
