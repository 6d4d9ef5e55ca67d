import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import fc from 'fast-check';
import { createHttpServer } from '@callplane/runtime';
import { eventually, stopAtEnd } from '@callplane/testing';
import { startTestApi } from '../api.testkit.js';
import {
  SharedBound,
  UNREAD_BYTES_MAX,
  UNREAD_BYTES_PER_ENVIRONMENT_MAX,
  UNREAD_BYTES_SHARED,
  UnreadAnswers,
} from './respond.js';

const MIB = 1024 * 1024;

/** An answer of which the operating system has taken nothing. */
function unreadAnswer(): ServerResponse {
  return Object.assign(new EventEmitter(), { writableLength: 1, closed: false }) as unknown as ServerResponse;
}

describe('answers that callers do not read', () => {
  const hasRoom = (unread: UnreadAnswers, environmentId: string, bytes: number): boolean => {
    try {
      unread.requireRoom(environmentId, bytes);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: 'RATE_LIMITED', headers: { 'retry-after': '1' } });
      return false;
    }
  };

  test('count until their connection closes, but not if the operating system has taken them', () => {
    const unread = new UnreadAnswers();
    const [first, second] = [unreadAnswer(), unreadAnswer()];
    unread.add('a', UNREAD_BYTES_PER_ENVIRONMENT_MAX - 10, first);
    unread.add('a', 10, second);
    unread.add('a', 10, Object.assign(unreadAnswer(), { writableLength: 0 }));
    expect([hasRoom(unread, 'a', 0), hasRoom(unread, 'a', 1), hasRoom(unread, 'b', MIB)]).toEqual([true, false, true]);
    second.emit('close');
    expect([hasRoom(unread, 'a', 10), hasRoom(unread, 'a', 11)]).toEqual([true, false]);
    first.emit('close');
    expect(hasRoom(unread, 'a', UNREAD_BYTES_PER_ENVIRONMENT_MAX)).toBe(true);
  });

  test('count no longer once a caller with several requests on one connection hangs up', async () => {
    const unread = new UnreadAnswers();
    let answered = 0;
    const server = createHttpServer((_, response) => {
      response.end(Buffer.alloc(8 * MIB));
      unread.add('a', 8 * MIB, response);
      answered += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    stopAtEnd(() => new Promise<void>((resolve) => server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(4)));
    socket.pause();
    await eventually(() => answered === 4);
    expect(hasRoom(unread, 'a', MIB)).toBe(false);
    socket.destroy();
    await eventually(() => hasRoom(unread, 'a', UNREAD_BYTES_PER_ENVIRONMENT_MAX));
  });

  test('of some environments leave the others their share, up to the bound of all', () => {
    const unread = new UnreadAnswers();
    const hold = (environmentId: string, bytes: number) => unread.add(environmentId, bytes, unreadAnswer());
    for (const environmentId of ['a', 'b']) hold(environmentId, UNREAD_BYTES_SHARED / 2);
    expect([hasRoom(unread, 'a', 1), hasRoom(unread, 'c', UNREAD_BYTES_SHARED / 3)]).toEqual([false, true]);
    hold('c', UNREAD_BYTES_SHARED / 3);
    expect([hasRoom(unread, 'c', 1), hasRoom(unread, 'd', UNREAD_BYTES_SHARED / 4)]).toEqual([false, true]);
    hold('d', UNREAD_BYTES_MAX - (4 / 3) * UNREAD_BYTES_SHARED);
    expect(hasRoom(unread, 'e', 1)).toBe(false);
  });
});

test('a caller that reads none of its lists gets 429 until it reads or hangs up, and other environments go on', async () => {
  const api = await startTestApi();
  const other = await api.newTenant();
  const { environmentId, key } = api.tenant;
  const metadata = { text: 'x'.repeat(16_000) };
  const shared = { environmentId, name: 'Room', metadata, status: 'created' as const, maxParticipants: 10 };
  await api.database.prisma.room.createMany({
    data: Array.from({ length: 100 }, () => ({ ...shared, id: newId('room'), createdAt: new Date() })),
  });
  const list = `GET /v1/rooms?limit=100 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  // Each of these answers has 1.6 MB. The operating system takes a few of each connection.
  const sockets = [1, 2].map(() => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1', () => socket.write(list.repeat(40)));
    socket.on('error', () => undefined).pause();
    stopAtEnd(() => Promise.resolve(socket.destroy()));
    return socket;
  });
  const refused = await eventually(async () => {
    const response = await api.call('GET', '/v1/rooms?limit=100');
    return response.status === 429 ? response : null;
  });
  expect([refused.body.error.code, refused.headers['retry-after']]).toEqual(['RATE_LIMITED', '1']);
  expect((await api.call('GET', '/v1/rooms?limit=100', { key: other.key })).status).toBe(200);
  expect((await api.call('POST', '/v1/rooms', { body: { name: 'Room' } })).status).toBe(201);
  for (const socket of sockets) socket.destroy();
  await eventually(async () => (await api.call('GET', '/v1/rooms?limit=100')).status === 200);
});

test('up to the bound a holder may hold anything, and beyond it an equal share', () => {
  const bound = new SharedBound(100);
  expect([bound.allows(0, 100), bound.allows(0, 101)]).toEqual([true, false]);
  bound.change(0, 60);
  bound.change(0, 40);
  // 50 each for two holders, and 33 for a third one.
  expect([bound.allows(60, 0), bound.allows(60, 1), bound.allows(40, 10), bound.allows(40, 11)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect([bound.allows(0, 33), bound.allows(0, 34)]).toEqual([true, false]);
  bound.change(60, 0);
  expect([bound.total, bound.allows(40, 60), bound.allows(40, 61)]).toEqual([40, true, false]);
});

test('whatever holders ask for, one without anything always gets its share, and none keeps more than its share', () => {
  const request = fc.record({ holder: fc.nat({ max: 5 }), more: fc.integer({ min: -80, max: 80 }) });
  fc.assert(
    fc.property(fc.array(request, { maxLength: 60 }), (requests) => {
      const bound = new SharedBound(100);
      const held = new Map<number, number>();
      for (const { holder, more } of requests) {
        const own = held.get(holder) ?? 0;
        const after = Math.max(0, own + more);
        if (more > 0 && !bound.allows(own, more)) continue;
        bound.change(own, after);
        held.set(holder, after);
        expect(bound.total).toBe([...held.values()].reduce((sum, each) => sum + each, 0));
        const holders = [...held.values()].filter((each) => each > 0).length;
        expect(bound.allows(0, Math.floor(100 / (holders + 1)))).toBe(true);
        const mayKeep = (each: number): boolean => bound.total <= 100 || each <= 100 / holders;
        for (const each of held.values()) if (each > 0) expect(bound.allows(each, 0)).toBe(mayKeep(each));
      }
    }),
  );
});
