import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parseRedisUrl, readRedisTarget, type RedisSettings } from './redis-target.js';

const SECRET = 'hunter2';

function problemOf(settings: RedisSettings): string {
  try {
    readRedisTarget(settings);
    return 'none';
  } catch (error) {
    const { setting, message } = error as { setting: string; message: string };
    return `${setting} ${message}`;
  }
}

describe('REDIS_URL', () => {
  test('names one server', () => {
    expect(parseRedisUrl('redis://:p%40ss@redis.internal:6380/2')).toEqual({
      kind: 'server',
      address: { host: 'redis.internal', port: 6380 },
      database: 2,
      credentials: { password: 'p@ss' },
      tls: null,
    });
    expect(parseRedisUrl('rediss://user:a/b@[::1]?family=0')).toMatchObject({
      address: { host: '::1', port: 6379 },
      credentials: { username: 'user', password: 'a/b' },
      tls: {},
    });
  });

  test('names Sentinels and their master', () => {
    expect(
      readRedisTarget({
        REDIS_URL: 'rediss+sentinel://app@s1,s2:26380,10.0.0.3/calls/1',
        REDIS_PASSWORD: SECRET,
        REDIS_SENTINEL_PASSWORD: 'other',
      }),
    ).toEqual({
      kind: 'sentinel',
      sentinels: [
        { host: 's1', port: 26_379 },
        { host: 's2', port: 26_380 },
        { host: '10.0.0.3', port: 26_379 },
      ],
      master: 'calls',
      database: 1,
      credentials: { username: 'app', password: SECRET },
      sentinelCredentials: { password: 'other' },
      tls: {},
    });
  });

  test.each([
    ['http://h', 'must be a URL like'],
    [`redis://:${SECRET}`, 'host 1 of 1 is not valid'],
    ['redis://:hunter2@', 'names no host'],
    ['redis://:hunter2@a,b', 'takes one host'],
    ['redis://hunter2:6379:1@h:0', 'the port of host 1 of 1'],
    ['redis://hunter2@h', 'names a user without a password'],
    ['redis://:hunter2%@h', 'must be a URL in which % begins'],
    ['redis://:hunter2@h/jobs', 'the database must be a number'],
    ['redis://:hunter2@h/65536', 'the database must be a number'],
    ['redis://:hunter2@h?tls=yes', 'does not take the parameter "tls"'],
    ['redis+sentinel://:hunter2@a,b', 'the name of the master is missing'],
    ['redis+sentinel://:hunter2@a,,b/m', 'host 2 of 3 is not valid'],
    ['redis+cluster://:hunter2@a,b', 'must be a URL like'],
    [
      `redis+sentinel://${Array.from({ length: 33 }, (_, n) => `h${n}`).join(',')}/m`,
      'names 33 hosts: at most 32 are used',
    ],
  ])('%s is refused with one line that contains no password', (REDIS_URL, reason) => {
    const problem = problemOf({ REDIS_URL });
    expect(problem).toContain(`REDIS_URL ${reason}`);
    expect(problem).not.toMatch(/hunter2|\n/);
  });
});

describe('the other settings of Redis', () => {
  const dir = mkdtempSync(join(tmpdir(), 'callplane-redis-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const noCertificate = file('empty.pem', 'nothing');
  const badCertificate = file('bad.pem', '-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n');
  const badKey = file('bad.key', '-----BEGIN PRIVATE KEY-----\nnothing\n-----END PRIVATE KEY-----\n');
  const tls = { REDIS_URL: 'rediss://h' };

  test.each<[string, RedisSettings]>([
    ['REDIS_CA_FILE cannot be read (ENOENT: /nowhere)', { ...tls, REDIS_CA_FILE: '/nowhere' }],
    ['contains no PEM certificate', { ...tls, REDIS_CA_FILE: noCertificate }],
    ['contains a certificate that cannot be read', { ...tls, REDIS_CA_FILE: badCertificate }],
    ['REDIS_CA_FILE needs TLS', { REDIS_URL: 'redis://h', REDIS_CA_FILE: badCertificate }],
    ['contains no PEM certificate', { ...tls, REDIS_CERT_FILE: badKey }],
    ['REDIS_KEY_FILE is set alone', { ...tls, REDIS_KEY_FILE: badKey }],
    ['REDIS_PASSWORD differs', { REDIS_URL: `redis://:${SECRET}@h`, REDIS_PASSWORD: 'other' }],
    ['REDIS_SENTINEL_PASSWORD needs', { REDIS_URL: 'redis://h', REDIS_SENTINEL_PASSWORD: SECRET }],
    ['REDIS_SENTINEL_USERNAME needs', { REDIS_URL: 'redis+sentinel://h/m', REDIS_SENTINEL_USERNAME: 'u' }],
  ])('a problem is reported: %s', (reason, settings) => {
    const problem = problemOf(settings);
    expect(problem).toContain(reason);
    expect(problem).not.toMatch(/hunter2|\n/);
  });

  test('may repeat the password of the URL', () => {
    const settings = { REDIS_URL: `redis://:${SECRET}@h`, REDIS_PASSWORD: SECRET };
    expect(readRedisTarget(settings).credentials).toEqual({ password: SECRET });
  });
});
