import { beforeAll, describe, expect, test } from '@jest/globals';
import { claimOperation, settleOperation } from '@callplane/db';
import { publishNotice } from '@callplane/queue';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { makeRecordable } from '../recordings/recordings.testkit.js';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const OPERATION = /^op_[0-9a-z]{26}$/;
let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

/** Settles an operation as the worker does: updates the row and publishes the notice. */
async function settle(operationId: string, status: 'completed' | 'failed'): Promise<void> {
  const { database, redis } = api;
  const claim = (await claimOperation(database.sql, operationId, crypto.randomUUID(), 60_000))!;
  const error = { code: 'STEP_FAILED', message: 'The step "end sessions" failed.' } as const;
  const end = status === 'completed' ? { status, now: new Date() } : { status, error };
  await settleOperation(database.sql, claim, end);
  await publishNotice(redis, 'operationSettled', operationId);
}

describe('POST /v1/rooms', () => {
  test('creates a room with defaults', async () => {
    const response = await api.call('POST', '/v1/rooms', { body: { name: ' \u3000Daily\u0085 ' } });
    expect(response.status).toBe(201);
    expect(response.body).toEqual({
      id: expect.stringMatching(/^room_[0-9a-z]{26}$/),
      projectId: api.tenant.projectId,
      environmentId: api.tenant.environmentId,
      name: 'Daily',
      metadata: {},
      status: 'created',
      maxParticipants: 100,
      emptyTimeoutSeconds: null,
      record: null,
      encryption: 'none',
      waitingRoom: false,
      createdAt: expect.stringMatching(TIMESTAMP),
      startedAt: null,
      endedAt: null,
      recordingSince: null,
      participantCount: 0,
    });
    expect((await api.call('GET', `/v1/rooms/${response.body.id}`)).body).toEqual(response.body);
  });

  test('keeps the trace of the caller with the event, and without OpenTelemetry begins none', async () => {
    const sent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const kept = async (traceparent: string) => {
      const { body } = await api.call('POST', '/v1/rooms', { body: { name: 'Traced' }, headers: { traceparent } });
      return (await api.database.prisma.event.findFirstOrThrow({ where: { roomId: body.id } })).traceparent;
    };
    expect(await kept(sent)).toBe(sent);
    for (const malformed of ['nonsense', `${sent}-more`, sent.replace(/-.*?-/, `-${'0'.repeat(32)}-`)]) {
      expect(await kept(malformed)).toBeNull();
    }
  });

  test.each([
    { maxParticipants: 1 },
    { maxParticipants: 100_000 },
    { emptyTimeoutSeconds: 60 },
    { emptyTimeoutSeconds: 604_800 },
    { emptyTimeoutSeconds: null },
    { encryption: 'none' },
    { encryption: 'required' },
  ])('accepts %j, which reads, lists and events show', async (fields) => {
    const name = JSON.stringify(fields);
    const { body } = await api.call('POST', '/v1/rooms', { body: { name, ...fields } });
    expect(body).toMatchObject(fields);
    expect((await api.call('GET', `/v1/rooms/${body.id}`)).body).toEqual(body);
    expect((await api.call('GET', `/v1/rooms?name=${encodeURIComponent(name)}`)).body.data).toEqual([body]);
    const { data } = (await api.call('GET', `/v1/events?roomId=${body.id}`)).body;
    expect(data[0].data).toEqual({ room: body });
  });

  test('measures a name in code points', async () => {
    expect((await api.call('POST', '/v1/rooms', { body: { name: ` ${'😀'.repeat(120)}\u3000` } })).status).toBe(201);
    expect((await api.call('POST', '/v1/rooms', { body: { name: '😀'.repeat(121) } })).status).toBe(400);
  });

  test('returns arbitrary JSON metadata unchanged', async () => {
    const text =
      '{"__proto__":{"polluted":true},"constructor":1,"n":[0,-1.5,1e300,5e-324,12345678901234567000,0.1],"deep":{"a":[[{}]]},"t":"\\u2028\\ud83d\\ude00","":null}';
    const created = await api.call('POST', '/v1/rooms', {
      raw: `{"name":"m","metadata":${text}}`,
      headers: { 'content-type': 'application/json; charset=UTF-8' },
    });
    expect(created.status).toBe(201);
    for (const response of [created, await api.call('GET', `/v1/rooms/${created.body.id}`)]) {
      const { metadata } = JSON.parse(response.text);
      const sent = JSON.parse(text);
      expect(Object.keys(metadata).sort()).toEqual(Object.keys(sent).sort());
      for (const key of Object.keys(sent))
        expect([key, Object.getOwnPropertyDescriptor(metadata, key)!.value]).toEqual([
          key,
          Object.getOwnPropertyDescriptor(sent, key)!.value,
        ]);
    }
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('reports all failures at once', async () => {
    const response = await api.call('POST', '/v1/rooms', {
      body: { name: '   ', metadata: [], maxParticipants: '100', colour: 'red', __proto: 1 },
      headers: { 'idempotency-key': 'é' },
    });
    expect(response.status).toBe(400);
    expect(response.body.error.code).toBe('VALIDATION_FAILED');
    expect(response.body.error.message).toBe(
      'headers.idempotency-key must be 1 to 255 printable ASCII characters (and 5 more, see details)',
    );
    expect(response.body.error.details.map((d: { path: string }) => d.path).sort()).toEqual([
      'body.__proto',
      'body.colour',
      'body.maxParticipants',
      'body.metadata',
      'body.name',
      'headers.idempotency-key',
    ]);
  });

  test.each([
    ['{"name":"a\\u0000b"}', 'body.name'],
    ['{"name":"a","metadata":{"x":"\\ud800"}}', 'body.metadata.x'],
    ['{"name":"a","metadata":{"x":1e400}}', 'body.metadata.x'],
    ['{"name":"a","__proto__":{}}', 'body.__proto__'],
    [`{"name":"a","metadata":${'{"a":'.repeat(32)}1${'}'.repeat(32)}}`, `body.metadata${'.a'.repeat(31)}`],
    ['[]', 'body'],
    ['"text"', 'body'],
    ['null', 'body'],
    ['17', 'body'],
  ])('rejects %s and names %s', async (raw, path) => {
    const response = await api.call('POST', '/v1/rooms', { raw, headers: { 'content-type': 'application/json' } });
    expect(response.status).toBe(400);
    expect(response.body.error.code).toBe('VALIDATION_FAILED');
    expect(response.body.error.details.map((d: { path: string }) => d.path)).toEqual([path]);
  });

  test('rejects a body that is missing, malformed, of another media type or too large', async () => {
    expect((await api.call('POST', '/v1/rooms')).body.error.details).toEqual([
      { path: 'body', message: 'must be a JSON object' },
    ]);
    for (const raw of ['{', '{"name":}', Buffer.from([0x7b, 0xff, 0x7d])]) {
      const response = await api.call('POST', '/v1/rooms', { raw, headers: { 'content-type': 'application/json' } });
      expect([response.status, response.body.error.code]).toEqual([400, 'MALFORMED_JSON']);
    }
    for (const headers of [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/json; charset=latin1' },
      { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      { 'content-type': 'application/x-www-form-urlencoded' },
    ]) {
      const response = await api.call('POST', '/v1/rooms', { raw: '{"name":"a"}', headers });
      expect([response.status, response.body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    }
    const room = (bytes: number) => ({
      raw: `{"name":"a"${' '.repeat(bytes - 12)}}`,
      headers: { 'content-type': 'application/json' },
    });
    expect((await api.call('POST', '/v1/rooms', room(65_536))).status).toBe(201);
    const large = await api.call('POST', '/v1/rooms', room(65_537));
    expect([large.status, large.body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    const chunked = await fetch(`${api.url}/v1/rooms`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api.tenant.key}`, 'content-type': 'application/json' },
      body: new ReadableStream({
        start(controller) {
          controller.enqueue(Buffer.alloc(70_000, ' '));
          controller.close();
        },
      }),
      duplex: 'half',
    });
    expect(chunked.status).toBe(413);
  });

  test('limits metadata to 16 KiB, measured as a read returns it', async () => {
    const metadata = (bytes: number) => ({ x: 'é'.repeat((bytes - 8) / 2) });
    expect((await api.call('POST', '/v1/rooms', { body: { name: 'a', metadata: metadata(16_384) } })).status).toBe(201);
    const response = await api.call('POST', '/v1/rooms', { body: { name: '', metadata: metadata(16_386) } });
    expect([response.status, response.body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(response.body.error.details[0].path).toBe('body.metadata');
    // The numbers have 16 KB as sent, but 715 KB as PostgreSQL writes them.
    const numbers = await api.call('POST', '/v1/rooms', {
      raw: `{"name":"a","metadata":{"n":[${Array.from({ length: 2300 }, () => '1e308').join(',')}]}}`,
      headers: { 'content-type': 'application/json' },
    });
    expect([numbers.status, numbers.body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    const tokens = await api.call('POST', `/v1/rooms/${await api.room()}/tokens`, {
      body: { participantName: 'a', metadata: { n: Array.from({ length: 60 }, () => 1e308) } },
    });
    expect([tokens.status, tokens.body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });
});

describe('GET /v1/rooms', () => {
  test('lists rooms newest first, in pages that stay stable while rooms are added', async () => {
    const { key } = await api.newTenant();
    const created: string[] = [];
    const add = async () =>
      created.unshift((await api.call('POST', '/v1/rooms', { key, body: { name: 'r' } })).body.id);
    for (let n = 0; n < 25; n++) await add();
    const first = await api.call('GET', '/v1/rooms?limit=10', { key });
    expect(first.body.data).toHaveLength(10);
    await add();
    const seen = [...first.body.data];
    seen.push(...(await api.pages(`/v1/rooms?limit=10&cursor=${first.body.nextCursor}`, key)));
    expect(seen.map(({ id }) => id)).toEqual(created.slice(1));
    expect((await api.call('GET', '/v1/rooms', { key })).body.data).toHaveLength(20);
    expect((await api.call('GET', '/v1/rooms?limit=100', { key })).body).toMatchObject({ nextCursor: null });
  });

  test('filters by the exact name, beside the status', async () => {
    const { key } = await api.newTenant();
    const create = async (name: string) => (await api.call('POST', '/v1/rooms', { key, body: { name } })).body.id;
    const [first, , second] = [await create('Daily ☕'), await create('daily ☕'), await create('Daily ☕')];
    const list = async (query: string) => (await api.call('GET', `/v1/rooms?${query}`, { key })).body;
    const ids = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id);
    const name = `name=${encodeURIComponent(' Daily ☕')}`;
    expect(ids(await list(name))).toEqual([second, first]);
    expect(ids(await list(`${name}&status=ended`))).toEqual([]);
  });
});

describe('GET /v1/rooms/{roomId}', () => {
  test('answers 404 for an unknown id and 400 for a malformed one', async () => {
    for (const id of ['room_0', 'x', 'part_01jd', 'a'.repeat(128)]) {
      const response = await api.call('GET', `/v1/rooms/${id}`);
      expect([response.status, response.body.error.code]).toEqual([404, 'ROOM_NOT_FOUND']);
    }
    for (const id of ['a'.repeat(129), 'room.1', '%20', 'a%2Fb', '%E0%A4%A', '%FF', '%C3%A9', "'", '%00']) {
      const response = await api.call('GET', `/v1/rooms/${id}`);
      expect([id, response.status, response.body.error.code]).toEqual([id, 400, 'VALIDATION_FAILED']);
      expect(response.body.error.details[0].path).toBe('path.roomId');
    }
  });

  test('answers HEAD like GET, without a body', async () => {
    const response = await api.call('HEAD', `/v1/rooms/${await api.room()}`);
    expect(response.status).toBe(200);
  });
});

describe('PATCH /v1/rooms/{roomId}', () => {
  const change = (room: string, body: object) => api.call('PATCH', `/v1/rooms/${room}`, { body });
  const eventsOf = async (room: string) => (await api.call('GET', `/v1/events?roomId=${room}`)).body.data;

  test('changes the given fields, and writes room.updated with the changed room', async () => {
    const room = await api.room({
      name: 'Daily',
      metadata: { team: 'blue', tags: [1, { a: null }] },
      maxParticipants: 5,
    });
    const renamed = await change(room, { name: '  Weekly ' });
    expect([renamed.status, renamed.body]).toEqual([
      200,
      expect.objectContaining({
        name: 'Weekly',
        metadata: { team: 'blue', tags: [1, { a: null }] },
        maxParticipants: 5,
      }),
    ]);
    const changed = (await change(room, { metadata: {}, maxParticipants: 100_000 })).body;
    expect(changed).toMatchObject({ name: 'Weekly', metadata: {}, maxParticipants: 100_000, status: 'created' });
    expect((await api.call('GET', `/v1/rooms/${room}`)).body).toEqual(changed);
    const events = await eventsOf(room);
    expect(events.map(({ type, sequence }: { type: string; sequence: number }) => [type, sequence])).toEqual([
      ['room.created', 1],
      ['room.updated', 2],
      ['room.updated', 3],
    ]);
    expect(events[2].data).toEqual({ room: changed });
  });

  test('sets emptyTimeoutSeconds, keeps it when other fields change, and gives it back to the deployment', async () => {
    const room = await api.room({ name: 'Daily', emptyTimeoutSeconds: 60 });
    expect((await change(room, { name: 'Weekly' })).body.emptyTimeoutSeconds).toBe(60);
    expect((await change(room, { emptyTimeoutSeconds: 61 })).body.emptyTimeoutSeconds).toBe(61);
    const changed = (await change(room, { emptyTimeoutSeconds: null })).body;
    expect(changed.emptyTimeoutSeconds).toBeNull();
    const events = await eventsOf(room);
    expect(events).toHaveLength(4);
    expect(events[3].data).toEqual({ room: changed });
  });

  test('neither changes the encryption nor lets an encrypted room record', async () => {
    const record = { mode: 'tracks' };
    const refused = { status: 409, body: { error: { code: 'ROOM_ENCRYPTED' } } };
    const body = { name: 'Private', encryption: 'required' };
    expect(await api.call('POST', '/v1/rooms', { body: { ...body, record } })).toMatchObject(refused);
    const room = await api.room(body);
    expect((await change(room, { encryption: 'none' })).body.error).toMatchObject({
      code: 'VALIDATION_FAILED',
      details: [{ path: 'body.encryption' }],
    });
    await makeRecordable(api);
    expect(await change(room, { record })).toMatchObject(refused);
    expect((await change(room, { record: null })).body).toMatchObject({ encryption: 'required', record: null });
    expect(await eventsOf(room)).toHaveLength(1);
  });

  test('writes no event if nothing changes', async () => {
    const room = await api.room({ name: 'Daily', metadata: { a: 1, b: [{}] } });
    for (const body of [{}, { name: 'Daily' }, { metadata: { b: [{}], a: 1 }, maxParticipants: 100 }]) {
      expect((await change(room, body)).status).toBe(200);
    }
    expect(await eventsOf(room)).toHaveLength(1);
  });

  test('answers 409 from `ending` on, and 404 for an unknown room', async () => {
    const room = await api.room();
    await api.call('DELETE', `/v1/rooms/${room}`);
    const late = await change(room, { name: 'Other' });
    expect([late.status, late.body.error.code]).toEqual([409, 'ROOM_ENDED']);
    expect((await change('room_0', { name: 'Other' })).body.error.code).toBe('ROOM_NOT_FOUND');
  });

  test('measures the metadata', async () => {
    const response = await change(await api.room(), { metadata: { x: 'x'.repeat(16 * 1024) } });
    expect([response.status, response.body.error.details[0].path]).toEqual([413, 'body.metadata']);
  });
});

describe('DELETE /v1/rooms/{roomId}', () => {
  test('answers 202 with the same pending operation to every request', async () => {
    const room = await api.room();
    const first = await api.call('DELETE', `/v1/rooms/${room}`);
    expect(first.status).toBe(202);
    expect(first.body).toEqual({
      id: expect.stringMatching(OPERATION),
      kind: 'room.end',
      status: 'pending',
      attempts: 0,
      lastError: null,
      completedAt: null,
    });
    const again = await Promise.all(Array.from({ length: 5 }, () => api.call('DELETE', `/v1/rooms/${room}`)));
    for (const response of again) expect([response.status, response.body.id]).toEqual([202, first.body.id]);
    expect((await api.call('GET', `/v1/rooms/${room}/runtime-operation`)).body).toEqual(first.body);
    expect((await api.call('GET', `/v1/rooms/${room}`)).body).toMatchObject({ status: 'ending', endedAt: null });
  });

  test('answers 204 if the operation completes in time, and 204 to every later request', async () => {
    const room = await api.room();
    const { id } = (await api.call('DELETE', `/v1/rooms/${room}`)).body;
    const startedAt = performance.now();
    const waiting = api.call('DELETE', `/v1/rooms/${room}`, { headers: { prefer: 'wait=10' } });
    await eventually(() => api.log().includes(`"operationId":"${id}"`));
    await settle(id, 'completed');
    const response = await waiting;
    expect([response.status, response.text]).toEqual([204, '']);
    expect(response.headers['preference-applied']).toBe('wait=10');
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect((await api.call('DELETE', `/v1/rooms/${room}`)).status).toBe(204);
    const operation = (await api.call('GET', `/v1/rooms/${room}/runtime-operation`)).body;
    expect(operation).toMatchObject({
      id,
      status: 'completed',
      attempts: 1,
      completedAt: expect.stringMatching(TIMESTAMP),
    });
  });

  test('starts a new run of the same operation after a failure', async () => {
    const room = await api.room();
    const { id } = (await api.call('DELETE', `/v1/rooms/${room}`)).body;
    await settle(id, 'failed');
    expect((await api.call('GET', `/v1/rooms/${room}/runtime-operation`)).body).toMatchObject({
      status: 'failed',
      attempts: 1,
      lastError: { code: 'STEP_FAILED', message: 'The step "end sessions" failed.' },
      completedAt: null,
    });
    const again = await api.call('DELETE', `/v1/rooms/${room}`);
    expect([again.status, again.body.id, again.body.status, again.body.attempts]).toEqual([202, id, 'pending', 1]);
    const row = await api.database.prisma.runtimeOperation.findUniqueOrThrow({ where: { id } });
    expect([row.run, row.runAttempts]).toEqual([2, 0]);
  });

  test('stops the issue of tokens, and keeps the room readable', async () => {
    const room = await api.room();
    await api.call('DELETE', `/v1/rooms/${room}`);
    const token = await api.call('POST', `/v1/rooms/${room}/tokens`, { body: { participantName: 'A' } });
    expect([token.status, token.body.error.code]).toEqual([409, 'ROOM_ENDED']);
    expect((await api.call('GET', `/v1/rooms/${room}/participants`)).body).toEqual({ data: [], nextCursor: null });
  });

  test('answers 404 for an unknown room, and OPERATION_NOT_FOUND if only the operation is missing', async () => {
    expect((await api.call('DELETE', '/v1/rooms/room_0')).body.error.code).toBe('ROOM_NOT_FOUND');
    expect((await api.call('GET', '/v1/rooms/room_0/runtime-operation')).body.error.code).toBe('ROOM_NOT_FOUND');
    const none = await api.call('GET', `/v1/rooms/${await api.room()}/runtime-operation`);
    expect([none.status, none.body.error.code]).toEqual([404, 'OPERATION_NOT_FOUND']);
  });
});
