import { once } from 'node:events';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, startTestJanus, stopAtEnd, type TestJanus } from '@callplane/testing';
import fc from 'fast-check';
import { WebSocketServer, type WebSocket } from 'ws';
import { MediaError } from '../media-node.js';
import { reconnectDelayMs, type JanusNode } from './janus-node.js';
import { nodeOn, startReceiver, startSender, UP_WITHIN_MS } from './janus-node.testkit.js';

describe('a Janus that fails', () => {
  let janus: TestJanus;
  let node: JanusNode;
  let told: string[];

  beforeEach(async () => {
    janus = await startTestJanus();
    node = nodeOn(janus);
    told = [];
    node.on('up', () => told.push('up'));
    node.on('down', () => told.push('down'));
    await node.untilUp(UP_WITHIN_MS);
  });

  test('closing a node is no loss: nobody is told that it went down', async () => {
    await node.close();
    expect(node.state).toBe('down');
    expect(told).toEqual(['up']);
  });

  test('killed, its node is down at once, every peer ends, and it comes back by itself', async () => {
    await node.ensureRoom('room');
    const ada = await startSender(node, 'room', 'ada-1');
    const bob = await startReceiver(node, 'room');
    await bob.change([{ feedId: 'ada-1', mid: '0' }]);
    const down = once(node, 'down');
    const began = performance.now();
    janus.kill('SIGKILL');
    const [error] = (await down) as [MediaError];
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(error.code).toBe('unavailable');
    expect(node.state).toBe('down');
    expect([...ada.closed, ...bob.closed]).toEqual(['media server away', 'media server away']);
    await expect(node.ensureRoom('room')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(bob.subscriber.update({ add: [], remove: [] })).rejects.toMatchObject({ code: 'unavailable' });
    await Promise.all([ada.publisher.detach(), bob.subscriber.detach()]);

    await janus.start();
    await node.untilUp(UP_WITHIN_MS);
    expect(told).toEqual(['up', 'down', 'up']);
    // Rooms went with the process.
    expect(await node.hasRoom('room')).toBe(false);
    await node.ensureRoom('room');
    const again = await startSender(node, 'room', 'ada-2');
    expect(await node.listFeeds('room')).toEqual(['ada-2']);
    for (const { peer } of [ada, bob, again]) peer.close();
  });

  test('frozen, it is found by its pings within five seconds, and nothing waits for it', async () => {
    await node.ensureRoom('room');
    const publisher = await node.attachPublisher('room', 'ada-1');
    const closed = once(publisher, 'closed');
    const down = once(node, 'down');
    janus.freeze();
    const began = performance.now();
    const waiting = [
      node.ensureRoom('other'),
      node.listRooms(),
      node.attachPublisher('room', 'bob-1'),
      node.attachSubscriber('room', 'bob'),
      publisher.publish('v=0'),
      node.ping(),
    ];
    const outcomes = await Promise.all(waiting.map((call) => call.then(() => 'answered', codeOf)));
    for (const outcome of outcomes) expect(['unavailable', 'timeout']).toContain(outcome);
    await Promise.all([down, closed]);
    expect(performance.now() - began).toBeLessThan(5_000);
    await expect(node.ping()).rejects.toMatchObject({ code: 'unavailable' });

    janus.thaw();
    await node.untilUp(UP_WITHIN_MS);
    // Frozen and thawed, it still has its rooms; the feed went with our connection.
    expect(await node.hasRoom('room')).toBe(true);
    await eventually(async () => (await node.listFeeds('room')).length === 0);
  });

  test('closed, a node refuses everything, and its process can end', async () => {
    const publisher = await node.ensureRoom('room').then(() => node.attachPublisher('room', 'ada-1'));
    const ended = once(publisher, 'closed');
    await Promise.all([node.close(), ended]);
    await node.close();
    expect(node.state).toBe('down');
    await expect(node.hasRoom('room')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(node.untilUp(10_000)).rejects.toMatchObject({ code: 'unavailable' });
  });
});

test('a server that is not there is tried again until it is', async () => {
  const janus = await startTestJanus();
  janus.kill('SIGKILL');
  const node = nodeOn(janus);
  await expect(node.untilUp(300)).rejects.toMatchObject({ code: 'unavailable' });
  await expect(node.ensureRoom('room')).rejects.toMatchObject({ code: 'unavailable' });
  await janus.start();
  await node.untilUp(UP_WITHIN_MS);
  await node.ensureRoom('room');
});

describe('a server that does not speak as Janus does', () => {
  /** Answers what a node needs to be up, unless `answer` says something else. */
  async function oddServer(answer: (message: any, socket: WebSocket) => unknown) {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await once(server, 'listening');
    stopAtEnd(
      () =>
        new Promise((resolve) => {
          for (const client of server.clients) client.terminate();
          server.close(resolve);
        }),
    );
    server.on('connection', (socket) => {
      let ids = 0;
      socket.on('error', () => undefined);
      socket.on('message', (data: Buffer) => {
        const message = JSON.parse(data.toString());
        const said = answer(message, socket);
        if (said === undefined) return;
        ids += 1;
        const usual = ['create', 'attach', 'detach'].includes(message.janus)
          ? { janus: 'success', transaction: message.transaction, data: { id: ids } }
          : { janus: 'ack', transaction: message.transaction };
        socket.send(JSON.stringify(said === 'usual' ? usual : said));
      });
    });
    const { port } = server.address() as { port: number };
    const node = nodeOn(
      { url: `ws://127.0.0.1:${port}`, apiSecret: 'secret', adminKey: 'key' },
      { deadlines: { requestMs: 300, pingEveryMs: 50, pingMs: 200 } },
    );
    return { server, node };
  }

  test('every call has a deadline, and an answer that comes after it changes nothing', async () => {
    const requests: any[] = [];
    let late: (() => void) | undefined;
    const { node } = await oddServer((message, socket) => {
      requests.push(message);
      if (message.janus === 'attach' && message.opaque_id !== 'control') {
        late = () =>
          socket.send(JSON.stringify({ janus: 'success', transaction: message.transaction, data: { id: 99 } }));
        return undefined;
      }
      return message.janus === 'message' ? undefined : 'usual';
    });
    await node.untilUp(UP_WITHIN_MS);
    const calls = [
      () => node.ensureRoom('room'),
      () => node.destroyRoom('room'),
      () => node.hasRoom('room'),
      () => node.listRooms(),
      () => node.listFeeds('room'),
      () => node.removeFeed('room', 'feed'),
      () => node.moderate('room', 'feed', '0', true),
      () => node.attachPublisher('room', 'feed'),
      () => node.attachSubscriber('room', 'label'),
    ];
    const outcomes = await Promise.all(calls.map((call) => call().then(() => 'answered', codeOf)));
    expect(outcomes).toEqual(calls.map(() => 'timeout'));
    expect(node.state).toBe('up');
    // A handle that was made too late is nobody's: it is given back.
    late!();
    await eventually(() => requests.some(({ janus, handle_id }) => janus === 'detach' && handle_id === 99));
    expect(requests.every(({ apisecret }) => apisecret === 'secret')).toBe(true);
  });

  test('closed while it connects, whatever it waits for, it is closed at once', async () => {
    for (const silentAt of ['create', 'attach', 'nothing']) {
      const { node, server } = await oddServer((message) => (message.janus === silentAt ? undefined : 'usual'));
      let told = 0;
      server.on('connection', (socket) => socket.on('message', () => (told += 1)));
      await eventually(() => told >= (silentAt === 'create' ? 1 : 2), { intervalMs: 1 });
      const began = performance.now();
      await node.close();
      expect(performance.now() - began).toBeLessThan(250);
      expect(node.state).toBe('down');
      await eventually(() => server.clients.size === 0);
    }
  });

  test('a peer whose change stays unanswered ends, because nobody knows how it stands', async () => {
    const { node } = await oddServer((message) => {
      if (message.janus !== 'message') return 'usual';
      if (['publish', 'update'].includes(message.body.request)) return undefined;
      const isSubscriber = message.body.ptype === 'subscriber';
      const data = { streams: [{ active: true, feed_id: 'feed', feed_mid: '0', mid: '0' }] };
      const jsep = isSubscriber ? { jsep: { type: 'offer', sdp: 'v=0' } } : {};
      return { janus: 'event', transaction: message.transaction, plugindata: { data }, ...jsep };
    });
    await node.untilUp(UP_WITHIN_MS);
    const publisher = await node.attachPublisher('room', 'feed');
    const ended = once(publisher, 'closed');
    await expect(publisher.publish('v=0')).rejects.toMatchObject({ code: 'timeout' });
    expect(await ended).toEqual(['no answer']);

    const subscriber = await node.attachSubscriber('room', 'label');
    const over = once(subscriber, 'closed');
    const stream = { feedId: 'feed', mid: '0' };
    expect((await subscriber.update({ add: [stream], remove: [] }))!.streams).toEqual([
      { ...stream, subscriberMid: '0' },
    ]);
    const waiting = subscriber.update({ add: [], remove: [stream] });
    await subscriber.answer('v=0');
    await expect(waiting).rejects.toMatchObject({ code: 'timeout' });
    expect(await over).toEqual(['no answer']);
    await expect(subscriber.update({ add: [], remove: [] })).rejects.toMatchObject({ code: 'closed' });
    await Promise.all([publisher.detach(), subscriber.detach()]);
  });

  test('whatever it sends, nothing breaks: other words, other types, answers to what nobody asked', async () => {
    let socket: WebSocket | undefined;
    const { node } = await oddServer((message, from) => {
      socket = from;
      return message.janus === 'message'
        ? { janus: 'event', transaction: message.transaction, plugindata: { data: { exists: true } } }
        : 'usual';
    });
    await node.untilUp(UP_WITHIN_MS);
    const text = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .record(
          {
            janus: fc.oneof(
              fc.constantFrom('ack', 'success', 'error', 'event', 'hangup', 'media', 'trickle', 'webrtcup', 'slowlink'),
              fc.jsonValue(),
            ),
            transaction: fc.oneof(
              fc.nat({ max: 9_999 }).map((n) => `x${n}`),
              fc.jsonValue(),
            ),
            sender: fc.oneof(fc.nat({ max: 5 }), fc.jsonValue()),
            data: fc.jsonValue(),
            error: fc.jsonValue(),
            plugindata: fc.oneof(fc.jsonValue(), fc.record({ data: fc.jsonValue() })),
            jsep: fc.jsonValue(),
            candidate: fc.jsonValue(),
          },
          { requiredKeys: [] },
        )
        .map((message) => JSON.stringify(message)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 20 }), async (messages) => {
        for (const message of messages) socket!.send(message);
        socket!.send(Buffer.from([0xff, 0xfe]));
        expect(await node.hasRoom('room')).toBe(true);
        expect(node.state).toBe('up');
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    [
      'a session without an id',
      (m: any) => (m.janus === 'create' ? { janus: 'success', transaction: m.transaction } : 'usual'),
    ],
    [
      'a handle without an id',
      (m: any) => (m.janus === 'attach' ? { janus: 'success', transaction: m.transaction } : 'usual'),
    ],
    ['no answer at all', () => undefined],
  ])('%s: the node is not up, and goes on trying', async (_, answer) => {
    let connections = 0;
    const { node, server } = await oddServer(answer);
    server.on('connection', () => (connections += 1));
    await eventually(() => connections >= 2);
    expect(node.state).toBe('down');
  });

  test.each([
    ['its end of the session', { janus: 'timeout', session_id: 1 }],
    ['the end of the handle that rooms are asked over', { janus: 'detached', session_id: 1, sender: 2 }],
  ])('%s makes a new connection', async (_, notice) => {
    let told = false;
    const { node } = await oddServer((message, socket) => {
      if (message.janus === 'keepalive' && !told) {
        told = true;
        socket.send(JSON.stringify(notice));
      }
      return 'usual';
    });
    await node.untilUp(UP_WITHIN_MS);
    await once(node, 'down');
    await node.untilUp(UP_WITHIN_MS);
  });
});

test('pauses between connections double from 100 ms to 2 s, less up to a half at random', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (n, r) => {
        const pauseMs = reconnectDelayMs(n, () => r);
        expect(pauseMs).toBeGreaterThanOrEqual(50);
        expect(pauseMs).toBeLessThanOrEqual(2_000);
        expect(reconnectDelayMs(n + 1, () => r)).toBeGreaterThanOrEqual(pauseMs);
      },
    ),
  );
  expect([1, 2, 3, 4, 5, 6, 100].map((n) => reconnectDelayMs(n, () => 0))).toEqual([
    100, 200, 400, 800, 1600, 2000, 2000,
  ]);
});

const codeOf = (error: unknown) => (error instanceof MediaError ? error.code : String(error));
