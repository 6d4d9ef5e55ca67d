import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { eventually, roomRow, stopAtEnd } from '@callplane/testing';
import { startTestApi } from '../api.testkit.js';

test('a caller that reads none of its lists gets 429 until it reads or hangs up, and other environments get answers', async () => {
  const api = await startTestApi();
  const other = await api.newTenant();
  const { key } = api.tenant;
  const metadata = { text: 'x'.repeat(16_000) };
  await api.database.prisma.room.createMany({
    data: Array.from({ length: 100 }, () => roomRow(api.tenant, { metadata })),
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
