import { expect, test } from '@jest/globals';
import { databaseTlsProblem, databaseUrlProblem, parseDatabaseUrl } from './database-url.js';

test.each([
  ['postgres://h', ['postgres://h']],
  ['postgresql:///d', ['postgresql://localhost/d']],
  ['postgresql://u@:7/d?host=/run', ['postgresql://u@localhost:7/d?host=/run']],
  ['postgresql://u:a%40b@c@[::1]:1,h2/d', ['postgresql://u:a%40b%40c@[::1]:1/d', 'postgresql://u:a%40b%40c@h2/d']],
  ['postgresql://%2Frun%2Fpg/d', ['postgresql://%2Frun%2Fpg/d']],
  [
    'postgresql://a,b/d?sslmode=require&schema=x',
    ['postgresql://a/d?sslmode=require', 'postgresql://b/d?sslmode=require'],
  ],
])('%s is split into a URL for each host', (url, hosts) => {
  expect(parseDatabaseUrl(url).hosts).toEqual(hosts);
});

test('the parameters of a database URL are the effective ones', () => {
  const url = 'postgresql://a,b:9/d?target_session_attrs=read-write&connect_timeout=2&options=-c%20a=1&schema=public';
  expect(parseDatabaseUrl(url).parameters).toEqual({
    target_session_attrs: 'read-write',
    connect_timeout: '2',
    options: '-c a=1',
  });
});

test.each([
  ['mysql://u:secret@h/d', 'cannot be parsed'],
  ['postgresql://', 'cannot be parsed'],
  ['postgresql://u:sec#ret@h/d', 'cannot be parsed'],
  ['postgresql://a b:secret:y', 'cannot be parsed'],
  ['postgresql://u:secret@h:port/d', 'has an invalid host or port'],
  ['postgresql://u:secret@h:65536/d', 'has an invalid host or port'],
  ['postgresql://u:secret@a,,b/d', 'has an invalid host'],
  ['postgresql://u:%ffsecret@h/d', 'has an invalid escape (write % as %25)'],
  ['postgresql://u:secret50%@h/d', 'has an invalid escape (write % as %25)'],
  ['postgresql:///d?host=a,b', 'needs several hosts before the path, not as parameters'],
  [`postgresql://${Array.from({ length: 17 }, () => 'h').join()}/d`, 'has more than 16 hosts'],
  ['postgresql://h/d?sslmod=require', 'has the unknown parameter sslmod'],
  ['postgresql://h/d?channel_binding=require', 'has the unknown parameter channel_binding'],
  ['postgresql://h/d?Sec-ret=x', 'has an unknown parameter'],
  ['postgresql://h/d?sslmode', 'has a parameter without a value'],
  ['postgresql://h/d?sslmode=prefer', 'needs one of disable, require, verify-ca, verify-full as sslmode'],
  ['postgresql://h/d?target_session_attrs=standby', 'needs one of any, read-write, primary as target_session_attrs'],
  ['postgresql://h/d?connect_timeout=2s', 'needs a number of seconds as connect_timeout'],
])('%s is refused, without a secret in the reason', (url, problem) => {
  expect(databaseUrlProblem(url)).toBe(problem);
  expect(problem).not.toContain('secret');
});

test.each([
  ['', undefined, null],
  ['sslmode=verify-full', undefined, null],
  ['sslmode=verify-ca', '/ca', null],
  ['sslmode=verify-ca', undefined, 'needs a file of the CA for sslmode=verify-ca'],
  ['', '/ca', 'needs sslmode=verify-full for the file of the CA'],
  ['sslrootcert=/ca', undefined, 'needs sslmode=verify-full for the file of the CA'],
])('TLS with "%s" and the CA %s has the problem %j', (parameters, caFile, problem) => {
  expect(databaseTlsProblem(parseDatabaseUrl(`postgresql://h/d?${parameters}`), caFile)).toBe(problem);
});
