import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { startTestApi, type Sent, type TestApi } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

const errorOf = async (method: string, path: string, sent: Sent = {}) => {
  const { status, body } = await api.call(method, path, sent);
  return { status, ...body.error };
};
const json = { 'content-type': 'application/json' };

describe('a body', () => {
  test('with a mistyped field is told the field first, and the one that is meant', async () => {
    const { message, details } = await errorOf('POST', '/v1/rooms', { body: { nmae: 'x' } });
    expect(message).toBe('body.nmae is not a known field; did you mean name? (and 1 more, see details)');
    expect(details[1]).toEqual({ path: 'body.name', message: 'is required' });
  });

  test.each([
    ['{"name": "x",}', 'The request body is not valid JSON: unexpected "}" at line 1, column 14.'],
    [
      '{\n  "name": "x"\n  "metadata": {}\n}',
      'The request body is not valid JSON: unexpected "\\"" at line 3, column 3.',
    ],
    ['{"name": "x"', 'The request body is not valid JSON: it ends too early, at line 1, column 13.'],
    [Buffer.from([0x22, 0xff, 0x22]), 'The request body is not UTF-8.'],
  ])('of %j is malformed: %s', async (raw, message) => {
    expect(await errorOf('POST', '/v1/rooms', { raw, headers: json })).toMatchObject({
      status: 400,
      code: 'MALFORMED_JSON',
      message,
    });
  });

  test('has no type to judge if it comes in chunks and is empty', async () => {
    expect(await sendChunks('GET', '/v1/rooms', [])).toBe(200);
    expect(await sendChunks('POST', '/v1/turn/credentials', [])).toBe(400);
    expect(await sendChunks('GET', '/v1/rooms', ['x'])).toBe(415);
    expect(await sendChunks('POST', '/v1/rooms', ['{"name":', '"x"}'])).toBe(415);
    expect(await sendChunks('POST', '/v1/rooms', ['{"name":', '"x"}'], json)).toBe(201);
    expect(await sendChunks('POST', '/v1/rooms', ['x'.repeat(70_000)], json)).toBe(413);
  });
});

/** The status of a request whose body has no `Content-Length`, as proxies of HTTP/2 send it. */
function sendChunks(method: string, path: string, chunks: string[], headers: Record<string, string> = {}) {
  return new Promise<number | undefined>((resolve, reject) => {
    const own = { authorization: `Bearer ${api.tenant.key}`, 'transfer-encoding': 'chunked', ...headers };
    const sent = request(`${api.url}${path}`, { method, headers: own }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    sent.on('error', reject);
    for (const chunk of chunks) sent.write(chunk);
    sent.end();
  });
}

test('a mistyped parameter of a query is told the one that is meant', async () => {
  const { details } = await errorOf('GET', '/v1/rooms?statu=ended&Limit=3&colour=red');
  expect(details).toEqual([
    { path: 'query.statu', message: 'is not a known parameter; did you mean status?' },
    { path: 'query.Limit', message: 'is not a known parameter; did you mean limit?' },
    { path: 'query.colour', message: 'is not a known parameter' },
  ]);
});

describe('a route that does not exist', () => {
  test.each([
    ['GET', '/rooms', 'Did you mean GET /v1/rooms?'],
    ['POST', '/rooms?x=1', 'Did you mean POST /v1/rooms?'],
    ['GET', '/v1/v1/rooms/room_0', 'Did you mean GET /v1/rooms/{roomId}?'],
    ['GET', '/api/v1/rooms', 'Did you mean GET /v1/rooms?'],
    ['POST', '/v1/rooms//tokens', 'Did you mean POST /v1/rooms/{roomId}/tokens?'],
    ['POST', '/rooms//tokens', 'Did you mean POST /v1/rooms/{roomId}/tokens?'],
    ['GET', '/v1//rooms', 'Did you mean GET /v1/rooms?'],
    ['GET', '/v1/room', 'Did you mean GET /v1/rooms?'],
    ['GET', '/v1/Rooms', 'Did you mean GET /v1/rooms?'],
    ['DELETE', '/v1/room/room_0', 'Did you mean DELETE /v1/rooms/{roomId}?'],
    ['POST', '/v1/rooms/room_0/token', 'Did you mean POST /v1/rooms/{roomId}/tokens?'],
    ['GET', '/.well-known/jwks', 'GET /openapi.json lists all routes.'],
    ['GET', '/v1/nowhere', 'GET /openapi.json lists all routes.'],
    ['GET', '/', 'GET /openapi.json lists all routes.'],
    ['GET', '/docs/nowhere', 'GET /openapi.json lists all routes.'],
  ])('is named with the nearest one: %s %s', async (method, path, hint) => {
    expect(await errorOf(method, path)).toMatchObject({
      status: 404,
      code: 'ROUTE_NOT_FOUND',
      message: `There is no route ${method} ${path.split('?')[0]}. ${hint}`,
    });
  });

  test('is cut in the answer', async () => {
    const { message } = await errorOf('GET', `/v1/${'x'.repeat(5000)}`);
    expect(message.length).toBeLessThan(300);
  });

  test.each([
    ['PUT', '/v1/rooms', '/v1/rooms does not support PUT. It supports POST, GET, HEAD.'],
    ['POST', '/v1/rooms/room_0', '/v1/rooms/room_0 does not support POST. It supports GET, HEAD, PATCH, DELETE.'],
    ['POST', '/livez', '/livez does not support POST. It supports GET, HEAD.'],
    ['DELETE', '/openapi.json', '/openapi.json does not support DELETE. It supports GET, HEAD.'],
    ['DELETE', '/console/', '/console/ does not support DELETE. It supports GET, HEAD.'],
  ])('for its method %s %s has the methods in the text', async (method, path, message) => {
    expect(await errorOf(method, path)).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED', message });
  });
});

describe('an id of another kind', () => {
  const room = 'must be the id of a room, room_…';
  const of = (kind: string, prefix: string) => `; ${prefix}_ begins the id of ${kind}`;
  test.each([
    ['GET', '/v1/rooms/part_0', undefined, [['path.roomId', room + of('a participant', 'part')]]],
    ['GET', '/v1/rooms/my-room', undefined, [['path.roomId', room]]],
    ['GET', '/v1/events?roomId=sess_0', undefined, [['query.roomId', room + of('a session', 'sess')]]],
    [
      'GET',
      '/v1/events/dlv_0',
      undefined,
      [['path.eventId', 'must be the id of an event, evt_…' + of('a delivery', 'dlv')]],
    ],
    [
      'GET',
      '/v1/deliveries?endpointId=wh_0',
      undefined,
      [['query.endpointId', 'must be the id of a webhook endpoint, whep_…']],
    ],
    [
      'GET',
      '/v1/webhooks/room_0/deliveries/evt_0',
      undefined,
      [
        ['path.endpointId', 'must be the id of a webhook endpoint, whep_…' + of('a room', 'room')],
        ['path.deliveryId', 'must be the id of a delivery, dlv_…' + of('an event', 'evt')],
      ],
    ],
    [
      'POST',
      '/v1/turn/credentials',
      { roomId: 'sess_0', sessionId: 'part_0' },
      [
        ['body.roomId', room + of('a session', 'sess')],
        ['body.sessionId', 'must be the id of a session, sess_…' + of('a participant', 'part')],
      ],
    ],
  ])('in %s %s is named in the 404', async (method, path, body, problems) => {
    const { status, message, details } = await errorOf(method, path, body === undefined ? {} : { body });
    expect([status, details]).toEqual([404, problems.map(([at, text]) => ({ path: at, message: text }))]);
    expect(message).toContain(`${problems[0]![0]} ${problems[0]![1]}.`);
  });

  test('among the recipients of a message is named beside the absent ones', async () => {
    const { details } = await errorOf('POST', `/v1/rooms/${await api.room()}/messages`, {
      body: { data: 1, to: ['part_0', 'sess_0'] },
    });
    expect(details[0]).toEqual({
      path: 'body.to[1]',
      message: 'must be the id of a participant, part_…; sess_ begins the id of a session',
    });
    expect(details).toHaveLength(3);
  });

  test('gets the same answer whether the resource exists, and is of this or another tenant', async () => {
    const roomId = await api.room();
    const { participantId } = await api.invite(roomId);
    const stranger = await api.newTenant();
    const answers = [];
    for (const [key, id] of [
      [api.tenant.key, participantId],
      [stranger.key, participantId],
      [api.tenant.key, `part_${randomBytes(13).toString('hex')}`],
    ] as const) {
      answers.push((await api.call('GET', `/v1/rooms/${id}`, { key, headers: { 'x-request-id': 'same' } })).text);
    }
    expect(new Set(answers).size).toBe(1);
    const right = await errorOf('GET', `/v1/rooms/${roomId}`, { key: stranger.key });
    expect(right).toMatchObject({ code: 'ROOM_NOT_FOUND', message: 'Room not found in this environment.' });
    expect(right.details).toBeUndefined();
  });
});

test.each([
  ['POST', '/v1/rooms', { name: 'a\u0085b' }, 'body.name'],
  ['POST', '/v1/webhooks', { url: 'https://example.com/', description: 'a\u009b2Jb' }, 'body.description'],
])('a text with a control character is refused by %s %s', async (method, path, body, at) => {
  const { details } = await errorOf(method, path, { body });
  expect(details).toEqual([
    { path: at, message: expect.stringMatching(/^must not contain the control character U\+00/) },
  ]);
});

test('texts keep their tabs and line breaks', async () => {
  const body = { url: 'https://example.com/', description: 'first\tline\r\nsecond' };
  expect((await api.call('POST', '/v1/webhooks', { body })).body.description).toBe(body.description);
});
