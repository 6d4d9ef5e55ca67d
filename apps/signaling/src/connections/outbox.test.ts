import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EvictingBound } from '@callplane/runtime';
import { eventually } from '@callplane/testing';
import { WebSocket, WebSocketServer } from 'ws';
import { Outbox, STALLED_SECONDS, UNSENT_BYTES_MAX, UNSENT_BYTES_OF_READER_MAX } from './outbox.js';

const http = createServer();
const server = new WebSocketServer({ noServer: true });
beforeAll(async () => {
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
});
afterAll(() => new Promise((resolve) => http.close(resolve)));

/** A real WebSocket with an outbox on the server's side. */
async function connect() {
  const accepted = new Promise<{ outbox: Outbox; socket: Duplex; webSocket: WebSocket }>((resolve) => {
    http.once('upgrade', (request, socket, head) => {
      server.handleUpgrade(request, socket, head, (webSocket) => {
        resolve({ outbox: new Outbox(webSocket, socket, () => {}), socket, webSocket });
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

/** An outbox whose operating system takes a write only when `take` is called, or at once if its client reads. */
function fake(all: EvictingBound | undefined, { isReading = false, onCut = () => {} } = {}) {
  const writes: (() => void)[] = [];
  const written: string[] = [];
  const controls: string[] = [];
  const socket = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      written.push(chunk.toString('latin1'));
      if (isReading) done();
      else writes.push(done);
    },
    // As a socket does, which reports the write that it had begun.
    destroy: (error, done) => {
      for (const end of writes.splice(0)) end();
      done(error);
    },
  });
  const control = (type: string) => (data: Buffer | undefined, _mask: boolean, done: () => void) => {
    controls.push(`${type} ${data?.toString() ?? ''}`);
    socket.write(type, done);
  };
  const webSocket = { readyState: WebSocket.OPEN as number, ping: control('ping'), pong: control('pong') };
  const terminate = () => {
    webSocket.readyState = WebSocket.CLOSING;
    socket.destroy();
  };
  const cut = () => {
    terminate();
    onCut();
  };
  const outbox = new Outbox(webSocket as unknown as WebSocket, socket, cut, all);
  const take = async () => {
    writes.shift()?.();
    await new Promise(setImmediate);
  };
  return { outbox, written, controls, take, terminate };
}

const nextTick = () => new Promise(setImmediate);

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
    const closed = once(client, 'close');
    const first = 'x'.repeat(500_000);
    outbox.send(first);
    outbox.sendNow('last');
    webSocket.close(4000, 'over');
    outbox.send('after');
    expect(await closed).toMatchObject([4000, Buffer.from('over')]);
    expect(received).toEqual([first, 'last']);
    await eventually(() => outbox.unsentBytes === 0);
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
    expect(outbox.unsentBytes).toBeGreaterThan(UNSENT_BYTES_OF_READER_MAX);
    expect(outbox.unsentBytes).toBeLessThan(UNSENT_BYTES_OF_READER_MAX + 2000);
    client.terminate();
    webSocket.terminate();
  });

  test('is overfull with less if nothing leaves for seconds, and not if a part of a long frame does', async () => {
    const { outbox, take } = fake(new EvictingBound(Infinity));
    outbox.send('x'.repeat(2 * UNSENT_BYTES_MAX));
    await nextTick();
    for (let second = 0; second < 3 * STALLED_SECONDS; second++) {
      outbox.eachSecond();
      if (second % (STALLED_SECONDS - 1) === 0) await take();
      expect(outbox.isOverfull).toBe(false);
    }
    for (let second = 0; second < STALLED_SECONDS; second++) outbox.eachSecond();
    expect(outbox.isOverfull).toBe(true);
    while (outbox.unsentBytes > UNSENT_BYTES_MAX) await take();
    expect(outbox.isOverfull).toBe(false);
  });

  test('that holds most is cut when all hold too much, and frees its frames', async () => {
    // Frames above the size of Node's pool of buffers, which a smaller one would hold as a whole.
    const all = new EvictingBound(1_000_000);
    const cut: string[] = [];
    const open = (name: string) => fake(all, { onCut: () => cut.push(name) });
    const [large, middle, small] = [open('large'), open('middle'), open('small')];
    large.outbox.send('x'.repeat(500_000));
    await nextTick();
    large.outbox.send('x'.repeat(10_000));
    middle.outbox.send('x'.repeat(300_000));
    await nextTick();
    expect([cut, all.total > 810_000, all.total < 811_000]).toEqual([[], true, true]);
    small.outbox.send('x'.repeat(200_000));
    await nextTick();
    expect([cut, large.outbox.unsentBytes]).toEqual([['large'], 0]);
    expect([all.total > 500_000, all.total < 501_000]).toEqual([true, true]);
    large.outbox.send('later');
    middle.terminate();
    small.terminate();
    await nextTick();
    expect([cut, all.total]).toEqual([['large'], 0]);
  });

  test('of a client that reads survives a burst beside a thousand clients that do not', async () => {
    const cut: string[] = [];
    const open = (name: string) => fake(undefined, { onCut: () => cut.push(name) });
    const slow = Array.from({ length: 1000 }, () => open('slow'));
    for (const { outbox } of slow) outbox.send('x'.repeat(60_000));
    await nextTick();
    for (let second = 0; second < STALLED_SECONDS; second++) slow.forEach(({ outbox }) => outbox.eachSecond());
    const healthy = Array.from({ length: 60 }, () => open('healthy'));
    for (let n = 0; n < 30; n++) for (const { outbox } of healthy) outbox.send('y'.repeat(16_000));
    await nextTick();
    for (const { outbox } of healthy) outbox.eachSecond();
    Outbox.cutStalled();
    expect(healthy.some(({ outbox }) => outbox.isOverfull)).toBe(false);
    expect([cut.includes('slow'), cut.includes('healthy')]).toEqual([true, false]);
    for (const { terminate } of [...slow, ...healthy]) terminate();
    await nextTick();
  });

  test('writes frames that wait behind a stuck write at once and in order when the client reads again', async () => {
    const { outbox, written, take } = fake(new EvictingBound(100_000));
    for (const text of ['a', 'b', 'c']) {
      outbox.send(text);
      await nextTick();
    }
    expect(written).toEqual(['\x81\x01a']);
    await take();
    expect(written).toEqual(['\x81\x01a', '\x81\x01b\x81\x01c']);
    await take();
    expect(outbox.unsentBytes).toBe(0);
  });

  test('answers the latest ping of a client that does not read, and sends it no ping', async () => {
    const all = new EvictingBound(100_000);
    const { outbox, controls, written, take } = fake(all);
    for (const data of ['1', '2', '3']) outbox.pong(Buffer.from(data));
    expect([outbox.ping(), controls]).toEqual([false, ['pong 1']]);
    outbox.send('a');
    await nextTick();
    await take();
    expect(controls).toEqual(['pong 1', 'pong 3']);
    await take();
    await take();
    expect([written.length, outbox.unsentBytes, all.total, outbox.ping()]).toEqual([3, 0, 0, true]);
  });

  test('bounds the memory of one tick until its end', async () => {
    const { outbox } = fake(new EvictingBound(Infinity), { isReading: true });
    outbox.send('x'.repeat(16 * 1024 * 1024 + 1));
    expect(outbox.unsentBytes).toBeGreaterThan(16 * 1024 * 1024);
    await Promise.resolve();
    expect(outbox.unsentBytes).toBe(0);
  });
});
