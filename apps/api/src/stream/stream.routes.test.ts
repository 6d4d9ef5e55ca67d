import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { newId, STREAM_BACKLOG_MAX, STREAMS_PER_ENVIRONMENT_MAX } from '@callplane/core';
import { writeEvents } from '@callplane/db';
import { eventually } from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newEvent, startTestApi, type TestApi, type TestTenant } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

interface Message {
  id?: string;
  event?: string;
  data?: { changes?: Record<string, unknown>[] } & Record<string, unknown>;
}

interface Reader {
  status: number;
  headers: IncomingMessage['headers'];
  messages: Message[];
  isOver: boolean;
  next(event: string, matches?: (message: Message) => boolean): Promise<Message>;
  close(): void;
}

/** Reads a stream as a browser does. */
function read(path: string, headers: Record<string, string>): Promise<Reader> {
  return new Promise((resolve, reject) => {
    const request = get(`${api.url}${path}`, { headers }, (response) => {
      let text = '';
      const reader: Reader = {
        status: response.statusCode ?? 0,
        headers: response.headers,
        messages: [],
        isOver: false,
        next: (event, matches = () => true) =>
          eventually(() => reader.messages.find((message) => message.event === event && matches(message)) ?? null),
        close: () => request.destroy(),
      };
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const blocks = `${text}${chunk}`.split('\n\n');
        text = blocks.pop()!;
        reader.messages.push(...blocks.map(parse));
      });
      response.on('close', () => (reader.isOver = true)).on('error', () => undefined);
      resolve(reader);
    });
    request.on('error', reject);
  });
}

function parse(block: string): Message {
  const fields = block.split('\n').map((line) => /^(\w*): ?(.*)$/.exec(line)!.slice(1) as [string, string]);
  const { data, ...message } = Object.fromEntries(fields) as Record<string, string>;
  return { ...message, ...(data === undefined ? {} : { data: JSON.parse(data) as NonNullable<Message['data']> }) };
}

const open = (tenant: TestTenant, query = '', headers: Record<string, string> = {}) =>
  read(`/v1/stream${query}`, { authorization: `Bearer ${tenant.key}`, ...headers });
/** Opens as many streams as the environment may have. */
const openAll = (tenant: TestTenant) =>
  Promise.all(Array.from({ length: STREAMS_PER_ENVIRONMENT_MAX }, () => open(tenant)));
/** The number of open streams. */
const streams = async () => Number(/^callplane_streams\S* (\d+)$/m.exec(await api.metrics())![1]);
const changesOf = ({ messages }: Reader) => messages.flatMap(({ data }) => data?.changes ?? []);

/** Writes events of a room, each in a transaction of its own. */
async function write(tenant: TestTenant, roomId: string, count = 1): Promise<string[]> {
  const events = () => newEvent('room.updated', tenant, roomId);
  const { eventIds } = await api.database.transaction((tx) => writeEvents(tx, Array.from({ length: count }, events)));
  return eventIds;
}
async function room(tenant: TestTenant): Promise<string> {
  return (await api.call('POST', '/v1/rooms', { key: tenant.key, body: { name: 'A room' } })).body.id;
}

describe('GET /v1/stream', () => {
  test('reports changes, of the kinds that the client wants, to its tenant alone', async () => {
    const [tenant, other] = [await api.newTenant(), await api.newTenant()];
    const [all, rooms, foreign] = [await open(tenant), await open(tenant, '?kinds=rooms'), await open(other)];
    expect(all.status).toBe(200);
    expect(all.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    expect((await rooms.next('ready')).data).toEqual({ kinds: ['rooms'], resumed: false });
    await Promise.all([all.next('ready'), foreign.next('ready')]);
    const roomId = await room(tenant);
    const { data, id } = await rooms.next('changes');
    expect(data!.changes).toEqual([
      { kind: 'rooms', type: 'room.created', eventId: expect.any(String), roomId, participantId: null, sequence: 1 },
    ]);
    expect(id).toMatch(/^\d+\.evt_/);
    await room(other);
    await foreign.next('changes', (message) => message.data!.changes!.some(({ kind }) => kind === 'rooms'));
    expect(changesOf(foreign).filter((change) => change['roomId'] === roomId)).toEqual([]);
    expect(changesOf(rooms)).toHaveLength(1);
    for (const reader of [all, rooms, foreign]) reader.close();
    await eventually(async () => (await streams()) === 0);
    // The log line comes at the end of the stream, and its duration metric leaves the stream out.
    await eventually(() => api.log().includes('"route":"/v1/stream"'));
  });

  test('continues after the last message without a gap, and restricted to a room', async () => {
    const tenant = await api.newTenant();
    const [roomId, otherId] = [await room(tenant), await room(tenant)];
    const first = await open(tenant, `?kinds=rooms&roomId=${roomId}`);
    await first.next('ready');
    const [seen] = await write(tenant, roomId);
    const last = (await first.next('changes', ({ data }) => data!.changes!.some(({ eventId }) => eventId === seen)))
      .id!;
    first.close();
    const missed = [...(await write(tenant, roomId, 2)), ...(await write(tenant, roomId))];
    await write(tenant, otherId);
    const second = await open(tenant, `?kinds=rooms&roomId=${roomId}`, { 'last-event-id': last });
    expect((await second.next('ready')).data).toEqual({ kinds: ['rooms'], resumed: true });
    await eventually(() => changesOf(second).length >= 3);
    const [later] = await write(tenant, roomId);
    await second.next('changes', ({ data }) => data!.changes!.some(({ eventId }) => eventId === later));
    expect(changesOf(second).map(({ eventId }) => eventId)).toEqual([...missed, later]);
    second.close();
  });

  test('says that the client has missed changes if its position is unknown, too old or too far away', async () => {
    const tenant = await api.newTenant();
    const roomId = await room(tenant);
    const begun = await open(tenant, '?kinds=rooms');
    const { id } = await begun.next('ready');
    begun.close();
    for (const after of [
      'hostile',
      '1.evt_1',
      `1.${newId('event')}x`,
      '99999999999999999999.evt_01',
      `5.evt_${'0'.repeat(26)}`,
    ]) {
      const reader = await open(tenant, '?kinds=rooms', { 'last-event-id': after });
      expect([after, (await reader.next('reset')).data]).toEqual([after, { reason: 'gap' }]);
      expect((await reader.next('ready')).data!['resumed']).toBe(false);
      reader.close();
    }
    // At once: a stream that is still open on the server would pass on parts.
    await write(tenant, roomId, STREAM_BACKLOG_MAX + 1);
    const far = await open(tenant, `?kinds=rooms&after=${id}`);
    await far.next('reset');
    expect(changesOf(far)).toEqual([]);
    far.close();
  });
});

test('HEAD /v1/stream answers with the headers alone, and takes no place of a stream', async () => {
  const tenant = await api.newTenant();
  for (let n = 0; n <= STREAMS_PER_ENVIRONMENT_MAX; n++) {
    const { status, headers } = await fetch(`${api.url}/v1/stream`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${tenant.key}` },
    });
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  }
});

describe('a stream is refused', () => {
  test('without the scope of a kind, and with an unknown kind', async () => {
    const key = await api.newKey(api.tenant.environmentId, { scopes: ['rooms:read'] });
    const reader = await open({ ...api.tenant, key });
    expect((await reader.next('ready')).data!['kinds']).toEqual(['rooms', 'operations']);
    reader.close();
    expect((await api.call('GET', '/v1/stream?kinds=rooms,participants', { key })).status).toBe(403);
    expect((await api.call('GET', '/v1/stream?kinds=deliveries')).status).toBe(400);
    const publishable = await api.newKey(api.tenant.environmentId, { type: 'publishable' });
    expect((await api.call('GET', '/v1/stream', { key: publishable })).status).toBe(403);
    expect((await api.call('GET', '/v1/stream', { key: null })).status).toBe(401);
  });

  test('while the environment has too many, until one closes', async () => {
    const tenant = await api.newTenant();
    const readers = await openAll(tenant);
    const { status, headers } = await api.call('GET', '/v1/stream', { key: tenant.key });
    expect([status, headers['retry-after']]).toEqual([429, '5']);
    readers[0]!.close();
    const again = await eventually(async () => {
      const reader = await open(tenant);
      if (reader.status === 200) return reader;
      reader.close();
      return null;
    });
    for (const reader of [...readers, again]) reader.close();
  });

  test('until the connection closes on which a caller has asked for several', async () => {
    const tenant = await api.newTenant();
    const request = `GET /v1/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tenant.key}\r\n\r\n`;
    // Node reads no more requests of a connection with many bytes of waiting answers.
    const sockets = Array.from({ length: STREAMS_PER_ENVIRONMENT_MAX / 10 }, () => {
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1', () => socket.write(request.repeat(10)));
      return socket;
    });
    await eventually(async () => (await streams()) === STREAMS_PER_ENVIRONMENT_MAX);
    expect((await api.call('GET', '/v1/stream', { key: tenant.key })).status).toBe(429);
    for (const socket of sockets) socket.destroy();
    const readers = await eventually(async () => {
      const opened = await openAll(tenant);
      if (opened.every(({ status }) => status === 200)) return opened;
      for (const reader of opened) reader.close();
      return null;
    });
    for (const reader of readers) reader.close();
  });

  test('and ended when its key is revoked', async () => {
    const tenant = await api.newTenant();
    const reader = await open(tenant);
    await reader.next('ready');
    await api.database.prisma.apiKey.updateMany({
      where: { environmentId: tenant.environmentId },
      data: { revokedAt: new Date() },
    });
    expect((await reader.next('end')).data).toEqual({ reason: 'unauthenticated' });
    await eventually(() => reader.isOver);
  });
});
