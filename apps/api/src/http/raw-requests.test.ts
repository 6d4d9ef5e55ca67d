import { beforeAll, describe, expect, test } from '@jest/globals';
import { rawExchange } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

/** Sends a request line as it is, because clients normalise it. Returns status, code, and methods of the answer. */
async function answerTo(line: string, sent: { headers?: string; body?: string; key?: string | null } = {}) {
  const { headers = 'Host: a\r\n', body = '', key = api.tenant.key } = sent;
  const authorization = key === null ? '' : `Authorization: Bearer ${key}\r\n`;
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`;
  const head = `${line} HTTP/1.1\r\nConnection: close\r\n${headers}${authorization}${length}\r\n`;
  const answer = await rawExchange(api.url, head + body);
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(answer)!;
  const [, code] = /^\{"error":\{"code":"(\w+)"/m.exec(answer) ?? [];
  const [, allow] = /^allow: (.*)\r$/m.exec(answer) ?? [];
  return [status, code, allow].filter((part) => part !== undefined).join(' ');
}

/** Request lines under `/v1`, by the answer that they get with a key. */
const UNDER_V1: Record<string, string[]> = {
  '200': [
    ...['GET /v1', 'GET /v1/', 'GET /v1/?limit=x&%ff', 'HEAD /v1', 'HEAD /v1/rooms', 'GET /v1/rooms/'],
    ...['GET http://other/v1/rooms', 'GET http:///v1/rooms', 'GET /v1/webhooks/signature-contract/'],
  ],
  '404 ROUTE_NOT_FOUND': [
    ...['GET /v1//', 'GET /v1/.', 'GET /v1//rooms', 'GET /v1/rooms//', 'GET /v1/rooms//tokens', 'GET /v1/rooms/a//'],
    ...['GET /v1/Rooms', 'GET /v1/%72ooms', 'GET /v1/%ff', 'GET /v1/rooms\\', 'GET /v1/rooms;a=1', 'GET /v1/rooms#x'],
    ...['GET /v1/../v1/rooms', 'GET /v1/./rooms', 'GET /v1/__proto__', 'GET /v1/signaling', 'OPTIONS /v1/nowhere'],
    ...['POST /v1/console/Sessions', 'GET http://other/v1//rooms'],
  ],
  '404': ['HEAD /v1//', 'HEAD /v1/nowhere', 'HEAD /v1/rooms/room_0/'],
  '404 ROOM_NOT_FOUND': ['GET /v1/rooms/__proto__', 'GET /v1/rooms/room_0/'],
  '404 WEBHOOK_NOT_FOUND': ['GET /v1/webhooks/%73ignature-contract', 'GET /v1/webhooks/Signature-Contract'],
  '400 VALIDATION_FAILED': [
    ...[
      'GET /v1/rooms/%ff',
      'GET /v1/rooms/%ff/tokens',
      'GET /v1/rooms/%',
      'GET /v1/rooms/%zz?%zz',
      'GET /v1/rooms/%00',
    ],
    ...[
      'GET /v1/rooms/%2f',
      'GET /v1/rooms/a%2Ftokens',
      'GET /v1/rooms/a%5cb',
      'GET /v1/rooms/a\\b',
      'GET /v1/rooms/*',
    ],
    ...[
      'GET /v1/rooms/.',
      'GET /v1/rooms/..',
      'GET /v1/rooms/%2e%2e',
      'GET /v1/rooms/:roomId',
      'GET /v1/rooms/{roomId}',
    ],
    ...['GET /v1/rooms?limit[]=1', 'GET /v1/rooms?%ff=1', 'GET /v1/rooms??', 'POST /v1/console/sessions/'],
  ],
  '405 METHOD_NOT_ALLOWED GET, HEAD': [
    ...['POST /v1', 'POST /v1/', 'OPTIONS /v1/', 'PATCH /v1/webhooks/signature-contract'],
  ],
  '405 METHOD_NOT_ALLOWED POST, GET, HEAD': [
    ...['PUT /v1/rooms', 'PUT /v1/rooms/', 'OPTIONS /v1/rooms', 'TRACE /v1/rooms', 'PROPFIND /v1/rooms'],
  ],
  '405 METHOD_NOT_ALLOWED GET, HEAD, PATCH, DELETE': ['PUT /v1/rooms/a%2fb', 'OPTIONS /v1/rooms/room_0/'],
  '405 METHOD_NOT_ALLOWED POST': ['GET /v1/turn/credentials', 'GET /v1/console/sessions'],
  '405 POST': ['HEAD /v1/turn/credentials'],
};

/** Other request lines, by the answer that they get with and without a key. */
const OUTSIDE: Record<string, string[]> = {
  '404 ROUTE_NOT_FOUND': [
    ...['GET //v1/rooms', 'GET /V1/rooms', 'GET /%76%31/rooms', 'GET /v1%2frooms', 'GET /v1x/rooms', 'GET /v1\\rooms'],
    ...[
      'GET /\\v1/rooms',
      'GET /x/../v1/rooms',
      'GET HTTP://other//v1/rooms',
      'GET http://other',
      'GET *',
      'OPTIONS *',
    ],
    ...['OPTIONS /nowhere', 'GET /livez/', 'GET //livez', 'GET /.well-known/jwks.json/', 'GET /console/..%2f'],
  ],
  '405 METHOD_NOT_ALLOWED GET, HEAD': [
    ...['OPTIONS /livez', 'POST /livez', 'POST /.well-known/jwks.json', 'DELETE /openapi.json', 'OPTIONS /docs/'],
  ],
  '400 VALIDATION_FAILED': ['GET \\v1\\rooms', 'GET v1/rooms'],
  '302': ['GET /docs'],
};

const rows = (answers: Record<string, string[]>) =>
  Object.entries(answers).flatMap(([answer, lines]) => lines.map((line) => [line, answer] as const));

test.each(rows(UNDER_V1))('%s gets %s with a key, and 401 without', async (line, answer) => {
  expect(await answerTo(line)).toBe(answer);
  expect(await answerTo(line, { key: null })).toBe(line.startsWith('HEAD') ? '401' : '401 UNAUTHENTICATED');
});

test.each(rows(OUTSIDE))('%s gets %s, with a key and without', async (line, answer) => {
  expect(await answerTo(line)).toBe(answer);
  expect(await answerTo(line, { key: null })).toBe(answer);
});

describe('before anything else', () => {
  test.each(['GET /v1/', 'GET /v1/nowhere', 'GET /nowhere', 'PUT /v1/rooms', 'OPTIONS *'])(
    '%s gets 400 without exactly one Host',
    async (line) => {
      for (const headers of ['', 'Host: a\r\nHost: a\r\n', 'Host: a/b\r\n']) {
        expect([headers, await answerTo(line, { headers, key: null })]).toEqual([headers, '400 VALIDATION_FAILED']);
      }
    },
  );
});

test('a body changes no answer to GET /v1/ or to a path without a route', async () => {
  for (const type of ['text/plain', 'application/json']) {
    for (const body of ['x', '{"x":1}', '{', 'x'.repeat(70_000)]) {
      const sent = { headers: `Host: a\r\nContent-Type: ${type}\r\n`, body };
      expect(await answerTo('GET /v1/', sent)).toBe('200');
      expect(await answerTo('GET /v1/nowhere', sent)).toBe('404 ROUTE_NOT_FOUND');
      expect(await answerTo('PUT /v1/rooms', sent)).toBe('405 METHOD_NOT_ALLOWED POST, GET, HEAD');
      expect(await answerTo('GET /v1/rooms', { ...sent, key: null })).toBe('401 UNAUTHENTICATED');
    }
  }
});
