import { describe, expect, test } from '@jest/globals';
import { databaseTlsProblem, databaseUrlProblem, parseDatabaseUrl, passfilePassword } from './database-url.js';

const PLAIN = { isShuffled: false, isChannelBound: false, tls: 'disable', options: [] };

describe('a database URL', () => {
  test.each([
    ['postgresql://u:p@h/d', { hosts: [{ host: 'h', port: 5432 }], user: 'u', password: 'p', database: 'd' }],
    ['postgres://h', { hosts: [{ host: 'h', port: 5432 }] }],
    ['postgresql:///d', { hosts: [{ host: 'localhost', port: 5432 }], database: 'd' }],
    [
      'postgresql://u:a%40%2F%3A50%@[::1]:1,h2,10.0.0.1:3/d%20e',
      {
        hosts: [
          { host: '::1', port: 1 },
          { host: 'h2', port: 5432 },
          { host: '10.0.0.1', port: 3 },
        ],
        user: 'u',
        password: 'a@/:50%',
        database: 'd e',
      },
    ],
    ['postgresql://%2Frun%2Fpg/d', { hosts: [{ host: '/run/pg', port: 5432 }], database: 'd' }],
    [
      'postgresql:///?host=a,b&port=1,2&user=u&password=p&dbname=d',
      {
        hosts: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
        user: 'u',
        password: 'p',
        database: 'd',
      },
    ],
    [
      'postgresql://a,b:9/d?port=7&target_session_attrs=read-write&connect_timeout=2&load_balance_hosts=random&schema=public',
      {
        hosts: [
          { host: 'a', port: 7 },
          { host: 'b', port: 7 },
        ],
        database: 'd',
        isShuffled: true,
        connectTimeoutMs: 2000,
      },
    ],
    [
      'postgresql://h/d?sslmode=verify-ca&sslrootcert=/ca&sslcert=/c&sslkey=/k&passfile=/p&application_name=me&channel_binding=require',
      {
        hosts: [{ host: 'h', port: 5432 }],
        database: 'd',
        tls: 'verify-ca',
        rootCertFile: '/ca',
        certFile: '/c',
        keyFile: '/k',
        passfile: '/p',
        applicationName: 'me',
        isChannelBound: true,
      },
    ],
    ['postgresql://h?ssl=true', { hosts: [{ host: 'h', port: 5432 }], tls: 'require' }],
    [
      'postgresql://h?options=-c%20a=1&options=-c%20b=2',
      { hosts: [{ host: 'h', port: 5432 }], options: ['-c a=1', '-c b=2'] },
    ],
  ])('%s is read as libpq reads it', (url, expected) => {
    expect(parseDatabaseUrl(url)).toEqual({ ...PLAIN, ...expected });
  });

  test.each([
    ['mysql://u:secret@h/d', 'cannot be parsed'],
    ['postgresql://', 'cannot be parsed'],
    ['postgresql://u:sec#ret@h/d', 'cannot be parsed'],
    ['postgresql://u:secret@h:port/d', 'has an invalid port'],
    ['postgresql://u:secret@h:0/d', 'has an invalid port'],
    ['postgresql://u:secret@a,,b/d', 'has an invalid host'],
    ['postgresql://a b:secret:y', 'has an invalid host'],
    ['postgresql://u:%ffsecret@h/d', 'has an escape that is not UTF-8'],
    ['postgresql://a,b/d?port=1,2,3', 'has another number of ports than of hosts'],
    [`postgresql://${Array.from({ length: 17 }, () => 'h').join()}/d`, 'has more than 16 hosts'],
    ['postgresql://h/d?sslmod=require', 'has the unknown parameter sslmod'],
    ['postgresql://h/d?Sec-ret=x', 'has an unknown parameter'],
    ['postgresql://h/d?sslmode', 'has a parameter without a value'],
    ['postgresql://h/d?sslmode=prefer', 'needs one of disable, require, verify-ca, verify-full as sslmode'],
    ['postgresql://h/d?target_session_attrs=standby', 'needs one of any, read-write, primary as target_session_attrs'],
    ['postgresql://h/d?connect_timeout=2s', 'needs a number of seconds as connect_timeout'],
  ])('%s is refused, without a secret in the reason', (url, problem) => {
    expect(databaseUrlProblem(url)).toBe(problem);
    expect(problem).not.toContain('secret');
  });
});

test.each([
  ['', undefined, null],
  ['sslmode=verify-full', undefined, null],
  ['sslmode=verify-ca', '/ca', null],
  ['sslmode=verify-full&sslrootcert=system', undefined, null],
  ['sslmode=verify-ca', undefined, 'needs a file of the CA for sslmode=verify-ca'],
  ['', '/ca', 'needs sslmode=verify-full for the file of the CA'],
  ['sslrootcert=/ca', undefined, 'needs sslmode=verify-full for the file of the CA'],
  ['sslmode=require&sslrootcert=system', undefined, 'needs sslmode=verify-full for sslrootcert=system'],
])('TLS with "%s" and the CA %s has the problem %j', (parameters, caFile, problem) => {
  expect(databaseTlsProblem(parseDatabaseUrl(`postgresql://h/d?${parameters}`), caFile)).toBe(problem);
});

describe('a password file', () => {
  const text = [
    '# host:port',
    'short:line',
    'a:1:d:u:first',
    '*:2:*:u:with\\:colon:and\\\\slash',
    '*:*:*:o:other',
  ].join('\n');
  test.each([
    [{ host: 'a', port: 1, database: 'd', user: 'u' }, 'first'],
    [{ host: 'b', port: 2, database: 'e', user: 'u' }, 'with:colon:and\\slash'],
    [{ host: 'b', port: 3, database: 'e', user: 'o' }, 'other'],
    [{ host: 'b', port: 3, database: 'e', user: 'u' }, undefined],
  ])('gives %j the password of the first line that fits', (connection, password) => {
    expect(passfilePassword(text, connection)).toBe(password);
  });

  test('names a Unix socket localhost', () => {
    const connection = { host: '/run/pg', port: 1, database: 'd', user: 'u' };
    expect(passfilePassword('localhost:1:d:u:p', connection)).toBe('p');
  });
});
