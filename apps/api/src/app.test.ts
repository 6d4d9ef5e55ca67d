import { beforeAll, expect, test } from '@jest/globals';
import { eventually, rawExchange } from '@callplane/testing';
import { startTestApi, type TestApi } from './api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

const exchange = (bytes: string) => rawExchange(api.url, bytes);
const context = (headers: string) => `GET /v1/ HTTP/1.1\r\nAuthorization: Bearer ${api.tenant.key}\r\n${headers}\r\n`;
const statusesIn = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);

test.each([
  ['no Host', 'X: 1\r\n', 'is required'],
  ['two Host headers', 'Host: a\r\nHost: b\r\n', 'must be sent once'],
  ['two equal Host headers', 'Host: a\r\nhOST: a\r\n', 'must be sent once'],
  ['a malformed Host', 'Host: a/b\r\n', 'must be a host name with an optional port'],
])('rejects HTTP/1.1 with %s, with the common error body', async (_, headers, message) => {
  const answer = await exchange(context(`${headers}x-request-id: mine-1\r\n`));
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toContain('x-request-id: mine-1\r\n');
  expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toEqual({
    error: {
      code: 'VALIDATION_FAILED',
      message: expect.any(String),
      requestId: 'mine-1',
      details: [{ path: 'headers.host', message }],
    },
  });
});

test.each([
  ...[
    '//!@#',
    '//#',
    '/#',
    '/livez#',
    '/\\#',
    '/\t',
    '*',
    'http://a',
    'HTTP://a?b',
    'http://[#',
    'http:',
    'x',
    '?',
    '#',
  ],
  ...['http://[::1', 'http://a:b/', '//\xa0'],
])('answers an unknown target with the common error body, and logs it: %j', async (target) => {
  const answer = await exchange(`OPTIONS ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  // Node's parser refuses some of them.
  expect(answer).toMatch(/^HTTP\/1\.1 40[04] /);
  const { error } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));
  expect(error.code).toBe(answer.startsWith('HTTP/1.1 404') ? 'ROUTE_NOT_FOUND' : 'VALIDATION_FAILED');
  expect(answer).toContain(`x-request-id: ${error.requestId}\r\n`);
  await eventually(() => api.log().includes(error.requestId));
});

test('accepts an absolute target, with and without a query', async () => {
  const head = `HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${api.tenant.key}\r\n\r\n`;
  expect(statusesIn(await exchange(`GET http://a:80/livez ${head}`))).toEqual(['200']);
  expect(statusesIn(await exchange(`GET https://a/v1/rooms?limit=0 ${head}`))).toEqual(['400']);
});

test('accepts HTTP/1.0 without Host', async () => {
  const answer = await exchange(`GET /livez HTTP/1.0\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
});

test('answers a valid request before the malformed one that follows it on the connection', async () => {
  const answer = await exchange(`${context('Host: a\r\n')}nonsense\r\n\r\n`);
  expect(statusesIn(answer)).toEqual(['200', '400']);
  expect(answer).toContain(api.tenant.environmentId);
  await eventually(() => api.log().includes('"parserCode":"HPE_'));
});

test('logs a request whose body is broken once, like its answer', async () => {
  const head = `POST /v1/rooms HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.tenant.key}\r\n`;
  const rest = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n';
  const answer = await exchange(`${head}${rest}`);
  expect(statusesIn(answer)).toEqual(['400']);
  const [, requestId = ''] = /x-request-id: (\S+)/.exec(answer)!;
  const log = await api.logAfter({ headers: { 'x-request-id': requestId } });
  const lines = log.split('\n').filter((line) => line.includes(requestId));
  const refused = { status: 400, errorCode: 'VALIDATION_FAILED', parserCode: 'HPE_INVALID_CHUNK_SIZE' };
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ message: 'request', requestId, ...refused, route: '/v1/rooms' }),
  ]);
});

test('answers an unauthenticated request once if its announced body never arrives', async () => {
  const answer = await exchange(`POST /v1/rooms HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n\r\n`);
  expect(statusesIn(answer)).toEqual(['401']);
});

test('serves health checks on their exact paths only', async () => {
  for (const path of ['/readyz', '/livez']) {
    expect((await fetch(`${api.url}${path}`)).status).toBe(200);
    for (const other of [`${path}/`, `/${path}`, path.toUpperCase(), `/x/..${path}/`]) {
      const response = await fetch(`${api.url}${other}`);
      expect([other, response.status]).toEqual([other, 404]);
    }
  }
});
