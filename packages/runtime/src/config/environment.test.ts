import { describe, expect, test } from '@jest/globals';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from 'typebox';
import { logSettings } from './common-settings.js';
import { databaseConnection, databaseSettings } from './database-connection.js';
import { type ConfigurationError, parseEnvironment, SECRET } from './environment.js';

const schema = Type.Object({
  ...databaseSettings,
  ...logSettings,
  PORT: Type.Integer({ default: 8080, minimum: 1, maximum: 65535, description: 'Port.' }),
  VERBOSE: Type.Boolean({ default: false, description: 'Talkative.' }),
  URLS: Type.Array(Type.String({ pattern: '^turn:' }), { default: [], description: 'URLs.' }),
  TURN_SECRET: Type.Optional(Type.String({ ...SECRET, minLength: 8, description: 'Shared with coturn.' })),
});
const url = 'postgresql://u:hunter2@localhost/db';
const problems = (environment: NodeJS.ProcessEnv) => {
  try {
    parseEnvironment(schema, environment);
    return [];
  } catch (error) {
    return (error as ConfigurationError).problems;
  }
};

describe('parseEnvironment', () => {
  test('reads defaults, numbers, booleans and lists', () => {
    expect(parseEnvironment(schema, { DATABASE_URL: url, PORT: '', UNRELATED: 'x' })).toEqual({
      DATABASE_URL: url,
      DATABASE_POOLER: 'none',
      DATABASE_POOL_MAX: 10,
      LOG_LEVEL: 'info',
      LOG_FORMAT: 'auto',
      PORT: 8080,
      VERBOSE: false,
      URLS: [],
    });
    expect(
      parseEnvironment(schema, { DATABASE_URL: url, PORT: '1', VERBOSE: 'true', URLS: 'turn:a, turn:b,' }),
    ).toMatchObject({
      PORT: 1,
      VERBOSE: true,
      URLS: ['turn:a', 'turn:b'],
    });
  });

  test('names the fault of a database URL, without its password', () => {
    expect(problems({ DATABASE_URL: 'postgresql://a:hunter2@c/d?sslmod=require' })).toEqual([
      expect.stringMatching(/^DATABASE_URL must be a URL like .*; this one has the unknown parameter sslmod$/),
    ]);
  });

  test('names files of a database connection that are empty or cannot be read, and settings of TLS that contradict', () => {
    const settings = (given: object) => () =>
      databaseConnection({ DATABASE_URL: url, DATABASE_POOLER: 'none', ...given });
    expect(settings({ DATABASE_PASSWORD_FILE: '/nowhere' })).toThrow(
      'DATABASE_PASSWORD_FILE cannot be read (ENOENT: /nowhere)',
    );
    expect(settings({ DATABASE_URL: `${url}?sslmode=verify-full&sslrootcert=/none` })).toThrow(
      'sslrootcert of DATABASE_URL cannot be read (ENOENT: /none)',
    );
    const empty = join(mkdtempSync(join(tmpdir(), 'callplane-')), 'empty');
    writeFileSync(empty, '\n');
    expect(settings({ DATABASE_PASSWORD_FILE: empty })).toThrow(`DATABASE_PASSWORD_FILE is empty (${empty})`);
    expect(settings({ DATABASE_CA_FILE: '/ca' })).toThrow('DATABASE_URL needs sslmode=verify-full');
  });

  test('reports all problems at once, without the value of a secret', () => {
    const reported = problems({
      DATABASE_URL: 'mysql://root:hunter2@db',
      PORT: '99999',
      VERBOSE: 'yes',
      LOG_LEVEL: 'loud',
      URLS: 'turn:a,http:b',
      TURN_SECRET: 'short',
      DATABASE_POOL_MAX: '1e1',
    });
    expect([...reported].sort()).toEqual([
      'DATABASE_POOL_MAX must be a whole number from 1 to 500, not "1e1"',
      'DATABASE_URL must be a URL like postgresql://user:password@host:5432/database, with special characters escaped (%40 for @)',
      'LOG_LEVEL must be one of error, warn, info, debug, not "loud"',
      'PORT must be a whole number from 1 to 65535, not "99999"',
      expect.stringMatching(/^TURN_SECRET must be /),
      expect.stringMatching(/^URLS must be .*, not "turn:a,http:b"$/),
      'VERBOSE must be true or false, not "yes"',
    ]);
    expect(reported.join()).not.toContain('hunter2');
    expect(problems({})).toEqual([expect.stringMatching(/^DATABASE_URL is required: PostgreSQL, the truth\./)]);
  });

  test('reads a secret from a file', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'callplane-')), 'url');
    writeFileSync(file, `${url}\n`);
    expect(parseEnvironment(schema, { DATABASE_URL_FILE: file }).DATABASE_URL).toBe(url);
    expect(problems({ DATABASE_URL_FILE: '/nowhere' })).toEqual([
      'DATABASE_URL cannot be read from DATABASE_URL_FILE (ENOENT: /nowhere)',
    ]);
  });

  test('takes an empty file of a secret for a secret that is not set', () => {
    const empty = join(mkdtempSync(join(tmpdir(), 'callplane-')), 'empty');
    writeFileSync(empty, '\n');
    const settings = { DATABASE_URL: url, TURN_SECRET_FILE: empty };
    expect(parseEnvironment(schema, settings).TURN_SECRET).toBeUndefined();
    expect(problems({ DATABASE_URL_FILE: empty })).toEqual([expect.stringMatching(/^DATABASE_URL is required/)]);
  });
});
