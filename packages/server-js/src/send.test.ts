import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient, isCallplaneError, type CallplaneError, type ClientOptions } from './index.js';
import {
  cut,
  failure,
  json,
  scriptedServer,
  silence,
  type Answer,
  type ScriptedServer,
} from './scripted-server.testkit.js';

const KEY = 'rtc_sk_secret';
const ROOM = { id: 'room_1', name: 'Daily' };
let server: ScriptedServer;
afterEach(() => server.close());

async function client(answers: Answer[], options: Partial<ClientOptions> = {}) {
  // A server that stays open keeps Jest's worker alive.
  await (server as ScriptedServer | undefined)?.close();
  server = await scriptedServer(...answers);
  return createClient({ baseUrl: server.baseUrl, apiKey: KEY, ...options });
}

const errorOf = async (promise: Promise<unknown>): Promise<CallplaneError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isCallplaneError(error)) throw new Error(`no CallplaneError: ${String(error)}`);
  expect(`${error.message}${JSON.stringify(error)}`).not.toContain(KEY);
  return error;
};

describe('a call', () => {
  test('sends the key, the fields of path and body, and returns the body of the response', async () => {
    const api = await client([json(200, { token: 'eyJ' })]);
    const result = await api.issueToken({ roomId: 'room_1', participantName: 'Ada' }, { requestId: 'mine' });
    expect(result).toEqual({ token: 'eyJ' });
    const [request] = server.received;
    expect(request).toMatchObject({
      method: 'POST',
      url: '/v1/rooms/room_1/tokens',
      body: '{"participantName":"Ada"}',
    });
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      'x-request-id': 'mine',
    });
  });

  test('resolves to undefined for 204, and says how long the API waits', async () => {
    const api = await client([(response) => response.writeHead(204).end(), json(202, { status: 'pending' })]);
    expect(await api.endRoom({ roomId: 'room_1' }, { waitSeconds: 7 })).toBeUndefined();
    expect(await api.endRoom({ roomId: 'room_1' }, { waitSeconds: 0 })).toEqual({ status: 'pending' });
    expect(server.received.map(({ headers }) => headers['prefer'])).toEqual(['wait=7', 'respond-async']);
  });

  test('rejects with the code, the request id and the details of the API', async () => {
    const details = [{ path: 'body.name', message: 'is required' }];
    const body = { error: { code: 'VALIDATION_FAILED', message: 'Invalid.', requestId: 'req_9', details } };
    const api = await client([json(400, body, { 'x-request-id': 'req_9' })]);
    const error = await errorOf(api.createRoom({ name: '' }));
    expect(error).toMatchObject({
      code: 'VALIDATION_FAILED',
      status: 400,
      requestId: 'req_9',
      details,
      operationId: 'createRoom',
      message: 'createRoom: Invalid.',
      retryAfterSeconds: null,
    });
    expect(isCallplaneError(error, 'VALIDATION_FAILED')).toBe(true);
    expect(isCallplaneError(error, 'ROOM_ENDED')).toBe(false);
    expect(server.received).toHaveLength(1);
  });

  test.each<[string, Answer]>([
    ['a page of a proxy', (response) => response.writeHead(502).end('<html>Bad gateway</html>')],
    ['an error of another service', json(404, { message: 'not found' })],
    ['a redirect', (response) => response.writeHead(302, { location: 'https://example.com/' }).end()],
    ['no JSON', (response) => response.writeHead(200).end('hello')],
    ['too much', (response) => response.writeHead(200).end(`"${'x'.repeat(17 * 1024 * 1024)}"`)],
  ])('rejects a response that is not one of the API: %s', async (name, answer) => {
    const api = await client([answer], { retriesMax: 0 });
    const { message, ...facts } = await errorOf(api.readContext());
    expect(facts).toMatchObject({ code: 'INVALID_RESPONSE', requestId: null });
    if (name !== 'too much') expect(message).toMatch(/(?:not one of the API: "|redirects to ").*Check that `baseUrl`/);
    expect(server.received).toHaveLength(1);
  });

  test('says that `baseUrl` may be wrong if a server in the same shape has no such route, such as the gateway', async () => {
    const api = await client([failure(404, 'ROUTE_NOT_FOUND')]);
    expect(await errorOf(api.readContext())).toMatchObject({
      code: 'ROUTE_NOT_FOUND',
      message: 'readContext: ROUTE_NOT_FOUND. Check that `baseUrl` is the address of the API.',
    });
  });

  test('rejects with the reason of its signal, during the request and during a pause', async () => {
    const reason = new Error('the user left');
    const waiting = new AbortController();
    const api = await client([() => waiting.abort(reason)]);
    await expect(api.readContext({}, { signal: waiting.signal })).rejects.toBe(reason);
    const pausing = new AbortController();
    const again = await client([
      (response, received) => {
        failure(429, 'RATE_LIMITED', { 'retry-after': '60' })(response, received);
        setTimeout(() => pausing.abort(reason), 20);
      },
    ]);
    await expect(again.readContext({}, { signal: pausing.signal })).rejects.toBe(reason);
  });
});

describe('a repetition', () => {
  test('of a room has the idempotency key of the first attempt, and a new call has another one', async () => {
    const api = await client([cut, failure(503, 'UNAVAILABLE'), failure(409, 'IDEMPOTENCY_CONFLICT'), json(201, ROOM)]);
    expect(await api.createRoom({ name: 'Daily' })).toEqual(ROOM);
    await api.createRoom({ name: 'Daily' });
    await api.createRoom({ name: 'Daily' }, { idempotencyKey: 'booking-7' });
    const keys = server.received.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toHaveLength(6);
    expect(new Set(keys.slice(0, 4)).size).toBe(1);
    expect(keys[4]).not.toBe(keys[0]);
    expect(keys[5]).toBe('booking-7');
  });

  test('of a deletion succeeds if the attempt before, whose response was lost, has deleted the endpoint', async () => {
    const api = await client([cut, failure(404, 'WEBHOOK_NOT_FOUND')]);
    await api.deleteWebhook({ endpointId: 'whep_1' });
    expect(server.received).toHaveLength(2);
    const first = await client([failure(404, 'WEBHOOK_NOT_FOUND')]);
    expect(await errorOf(first.deleteWebhook({ endpointId: 'whep_1' }))).toMatchObject({ code: 'WEBHOOK_NOT_FOUND' });
  });

  test('of a read follows lost connections, time-outs and 5xx, at most retriesMax times', async () => {
    const api = await client([silence, failure(500, 'INTERNAL'), cut, json(200, ROOM)], { timeoutMs: 200 });
    expect(await api.readRoom({ roomId: 'room_1' })).toEqual(ROOM);
    expect(server.received).toHaveLength(4);
    const never = await client([failure(503, 'UNAVAILABLE')]);
    const error = await errorOf(never.readRoom({ roomId: 'room_1' }, { retriesMax: 1 }));
    expect(error).toMatchObject({ code: 'UNAVAILABLE', status: 503 });
    expect(server.received).toHaveLength(2);
  });

  test('never follows a POST whose effect is unknown, unless that effect may happen twice', async () => {
    const replay = { endpointId: 'whep_1', deliveryId: 'dlv_1', expectedReplayCount: 0 };
    const api = await client([cut]);
    expect(await errorOf(api.replayDelivery(replay))).toMatchObject({ code: 'CONNECTION_FAILED' });
    expect(server.received).toHaveLength(1);
    await errorOf(api.issueToken({ roomId: 'room_1', participantName: 'Ada' }, { retriesMax: 1 }));
    expect(server.received).toHaveLength(3);
    const limited = await client([failure(429, 'RATE_LIMITED', { 'retry-after': '1' }), json(202, { id: 'dlv_1' })]);
    expect(await limited.replayDelivery(replay)).toEqual({ id: 'dlv_1' });
  });
});

describe('an option or a field', () => {
  test.each<[string, Partial<ClientOptions>]>([
    ['no address', { baseUrl: 'calls.example.com' }],
    ['an address with a password', { baseUrl: 'https://a:b@calls.example.com/v1' }],
    ['an address of another scheme', { baseUrl: 'ftp://calls.example.com' }],
    ['a key with a line break', { apiKey: 'rtc_sk_1\n' }],
    ['too many retries', { retriesMax: 11 }],
    ['no time', { timeoutMs: 0 }],
    ['more time than a timer can have', { timeoutMs: Infinity }],
  ])('of a client that is wrong throws at once: %s', async (_name, options) => {
    server = await scriptedServer();
    expect(() => createClient({ baseUrl: server.baseUrl, apiKey: KEY, ...options })).toThrow(TypeError);
  });

  test.each([{ idempotencyKey: 'order–1' }, { idempotencyKey: 'order-1\n' }, { requestId: 'a b' }])(
    'of a call cannot be %j, and nothing is sent',
    async (options) => {
      const api = await client([json(201, ROOM)]);
      await expect(api.createRoom({ name: 'Daily' }, options)).rejects.toThrow(TypeError);
      expect(server.received).toHaveLength(0);
    },
  );

  test.each(['', '..', 'room/1', 'room_1?x=1', undefined])(
    'of a path cannot be %j, and nothing is sent',
    async (roomId) => {
      const api = await client([json(200, {})]);
      await expect(api.readRoom({ roomId: roomId as string })).rejects.toThrow(/^readRoom needs `roomId`/);
      expect(server.received).toHaveLength(0);
    },
  );

  test('that the operation does not have is refused before anything is sent', async () => {
    const api = await client([json(200, {})]);
    await expect(api.readRoom({ roomId: 'room_1', color: 'red' } as { roomId: string })).rejects.toThrow('`color`');
    await expect(api.endRoom({ roomId: 'room_1' }, { waitSeconds: 11 })).rejects.toThrow('`waitSeconds`');
    expect(server.received).toHaveLength(0);
  });
});

describe('a list', () => {
  const pages: Answer[] = [
    json(200, { data: [{ id: 'room_1' }, { id: 'room_2' }], nextCursor: 'c2' }),
    json(200, { data: [{ id: 'room_3' }], nextCursor: null }),
  ];

  test('resolves to one page, and iterates over the items of all pages with its filters', async () => {
    const api = await client(pages);
    expect((await api.listRooms({ status: 'active', limit: 2 })).nextCursor).toBe('c2');
    const again = await client(pages);
    const ids: string[] = [];
    for await (const { id } of again.listRooms({ status: 'active', limit: 2 })) ids.push(id);
    expect(ids).toEqual(['room_1', 'room_2', 'room_3']);
    expect(server.received.map(({ url }) => url)).toEqual([
      '/v1/rooms?status=active&limit=2',
      '/v1/rooms?status=active&limit=2&cursor=c2',
    ]);
  });

  test('of events continues with `after`, and one that would not end is refused', async () => {
    const api = await client([json(200, { data: [], nextCursor: 'same' })]);
    const read = async () => {
      for await (const event of api.listEvents({ roomId: 'room_1' })) expect(event).toBeDefined();
    };
    expect(await errorOf(read())).toMatchObject({ code: 'INVALID_RESPONSE', operationId: 'listEvents' });
    expect(server.received.map(({ url }) => url)).toEqual([
      '/v1/events?roomId=room_1',
      '/v1/events?roomId=room_1&after=same',
    ]);
  });
});

describe('waitForOperation', () => {
  const operation = (status: string, lastError: unknown = null) =>
    json(200, { id: 'op_1', kind: 'room.end', status, attempts: 1, lastError, completedAt: null });

  test('polls the operation of a room or a participant until it is complete', async () => {
    const api = await client([operation('pending'), operation('completed')]);
    expect((await api.waitForOperation({ roomId: 'room_1' })).status).toBe('completed');
    await api.waitForOperation({ roomId: 'room_1', participantId: 'part_1' });
    expect(server.received.map(({ url }) => url)).toEqual([
      '/v1/rooms/room_1/runtime-operation',
      '/v1/rooms/room_1/runtime-operation',
      '/v1/rooms/room_1/participants/part_1/runtime-operation',
    ]);
  });

  test('rejects if the operation has failed or is pending for too long', async () => {
    const api = await client([operation('failed', { code: 'STEP_FAILED', message: 'The step failed.' })]);
    const failed = await errorOf(api.waitForOperation({ roomId: 'room_1' }));
    expect(failed).toMatchObject({ code: 'OPERATION_FAILED', message: expect.stringContaining('The step failed.') });
    const late = await client([operation('pending')]);
    const error = await errorOf(late.waitForOperation({ roomId: 'room_1' }, { timeoutMs: 50 }));
    expect(error).toMatchObject({ code: 'TIMED_OUT' });
  });
});
