import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import fc from 'fast-check';
import { eventually, stopAtEnd } from '@callplane/testing';
import { startTestApi } from '../api.testkit.js';
import { SharedBound } from './respond.js';

test('a caller that reads none of its lists gets 429 until it reads or hangs up, and other environments get answers', async () => {
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
