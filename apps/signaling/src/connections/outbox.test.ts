import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SharedBound } from '@callplane/core';
import { eventually } from '@callplane/testing';
import { WebSocket, WebSocketServer } from 'ws';
import { Outbox, UNSENT_BYTES_MAX } from './outbox.js';

const http = createServer();
const server = new WebSocketServer({ noServer: true });
beforeAll(async () => {
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
});
afterAll(() => new Promise((resolve) => http.close(resolve)));

/** A real WebSocket with an outbox on the server's side. */
async function connect(all?: SharedBound) {
  const accepted = new Promise<{ outbox: Outbox; socket: Duplex; webSocket: WebSocket }>((resolve) => {
    http.once('upgrade', (request, socket, head) => {
      server.handleUpgrade(request, socket, head, (webSocket) => {
        resolve({ outbox: new Outbox(webSocket, socket, all), socket, webSocket });
      });
    });
  });
  const client = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`, { perMessageDeflate: false });
  const received: string[] = [];
  client.on('message', (data: Buffer) => received.push(data.toString()));
  const sides = await accepted;
  if (client.readyState !== WebSocket.OPEN) await once(client, 'open');
  return { ...sides, client, received };
}

describe('an outbox', () => {
  test('sends all frames of one tick in one write, in order, and counts their bytes until they have left', async () => {
    const { client, outbox, received, socket, webSocket } = await connect();
    let writes = 0;
    const write = socket._write.bind(socket);
    socket._write = (chunk, encoding, done) => {
      writes += 1;
      write(chunk, encoding, done);
    };
    // Each of the three characters takes three bytes.
    const texts = ['one', '字字字', 'three'];
    for (const text of texts) outbox.send(text);
    expect(outbox.unsentBytes).toBe(3 + 9 + 5);
    await eventually(() => received.length === 3);
    expect(received).toEqual(texts);
    expect(writes).toBe(1);
    await eventually(() => outbox.unsentBytes === 0);
    expect([outbox.framesSent, outbox.bytesSent]).toEqual([3, 17]);
    client.terminate();
    webSocket.terminate();
  });

  test('sends texts of any length and any characters as they are', async () => {
    const { client, outbox, received, webSocket } = await connect();
    const lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 200_000];
    const texts = [...lengths.map((length) => 'x'.repeat(length)), 'é', '字'.repeat(50_000), '👋'.repeat(31), 'last'];
    for (const text of texts) outbox.send(text);
    await eventually(() => received.length === texts.length);
    expect(received).toEqual(texts);
    client.terminate();
    webSocket.terminate();
  });

  test('lets waiting frames precede the closing handshake, and sends none after it', async () => {
    const { client, outbox, received, webSocket } = await connect();
    const [closed, sent] = [once(client, 'close'), [] as string[]];
    outbox.send('first', { onSent: () => sent.push('first') });
    outbox.sendNow('last');
    webSocket.close(4000, 'over');
    outbox.send('after', { onSent: () => sent.push('after') });
    expect(await closed).toMatchObject([4000, Buffer.from('over')]);
    expect(received).toEqual(['first', 'last']);
    await eventually(() => sent.length === 2);
    expect(outbox.unsentBytes).toBe(0);
  });

  test('is overfull when a client leaves more than the limit unread, however small the frames are', async () => {
    const { client, outbox, webSocket } = await connect();
    client.pause();
    const text = 'x'.repeat(1000);
    // More than the limit and the buffers of both sockets.
    for (let n = 0; n < 100_000 && !outbox.isOverfull; n++) {
      outbox.send(text);
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    expect(outbox.isOverfull).toBe(true);
    expect(outbox.unsentBytes).toBeGreaterThan(UNSENT_BYTES_MAX);
    expect(outbox.unsentBytes).toBeLessThan(UNSENT_BYTES_MAX + 2000);
    client.terminate();
    webSocket.terminate();
  });

  test('is overfull with more than its share while all connections together leave too much unread', async () => {
    const all = new SharedBound(100_000);
    const [slow, other] = [await connect(all), await connect(all)];
    slow.client.pause();
    const text = 'x'.repeat(1000);
    // Waits until the buffers of both sockets are full.
    for (let n = 0; n < 100_000 && slow.socket.writableLength < 60_000; n++) {
      slow.outbox.send(text);
      await new Promise(setImmediate);
    }
    expect([slow.outbox.isOverfull, slow.outbox.unsentBytes < UNSENT_BYTES_MAX]).toEqual([false, true]);
    other.outbox.send('y'.repeat(45_000));
    expect([slow.outbox.isOverfull, other.outbox.isOverfull]).toEqual([true, false]);
    await eventually(() => other.outbox.unsentBytes === 0);
    expect(slow.outbox.isOverfull).toBe(false);
    expect(all.total).toBe(slow.outbox.unsentBytes);
    for (const { client, webSocket } of [slow, other]) {
      client.terminate();
      webSocket.terminate();
    }
    await eventually(() => all.total === 0);
    slow.outbox.send(text);
    expect(all.total).toBe(0);
  });

  test('is not overfull because of many frames in one tick, if the client reads them', async () => {
    const { client, outbox, received, webSocket } = await connect();
    const text = 'x'.repeat(1000);
    let sent = 0;
    for (let n = 0; n < 30; n++) {
      for (let more = 0; more < 100; more++, sent++) outbox.send(text);
      await eventually(() => outbox.unsentBytes === 0);
    }
    expect(outbox.isOverfull).toBe(false);
    await eventually(() => received.length === sent);
    client.terminate();
    webSocket.terminate();
  });

  test('does not count an exempt frame against the limit, and counts the frames after it', async () => {
    const { client, outbox, webSocket } = await connect();
    client.pause();
    let isSent = false;
    outbox.send('x'.repeat(16 * UNSENT_BYTES_MAX), { exempt: true, onSent: () => (isSent = true) });
    expect(outbox.isOverfull).toBe(false);
    outbox.send('y'.repeat(UNSENT_BYTES_MAX + 1));
    expect(outbox.isOverfull).toBe(true);
    expect(isSent).toBe(false);
    webSocket.terminate();
    await eventually(() => isSent);
    client.terminate();
  });
});
