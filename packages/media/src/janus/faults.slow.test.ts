import { once } from 'node:events';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, hasMediaRoom, startTcpProxy, startTestJanus, stopAtEnd, type TestJanus } from '@callplane/testing';
import fc from 'fast-check';
import { WebSocketServer, type WebSocket } from 'ws';
import { MediaError } from '../types.js';
import { MediaNodes } from '../nodes.js';
import { DEFAULT_DEADLINES } from './connection.js';
import { reconnectDelayMs, type MediaNode } from './node.js';
import { PROBE_ROOM } from './probe.js';
import { JANUS_VERSION_MIN } from './version.js';
import { nodeOn, startReceiver, startSender, UP_WITHIN_MS } from './node.testkit.js';

describe('a failing Janus', () => {
  let janus: TestJanus;
  let node: MediaNode;
  let events: string[];

  beforeEach(async () => {
    janus = await startTestJanus();
    node = nodeOn(janus);
    events = [];
    node.on('up', () => events.push('up'));
    node.on('down', () => events.push('down'));
    await node.untilUp(UP_WITHIN_MS);
  });

  test('a killed Janus takes its node down at once, ends every peer, and the node reconnects by itself', async () => {
    await node.ensureRoom('room');
    const ada = await startSender(node, 'room', 'ada-1');
    const bob = await startReceiver(node, 'room');
    await bob.change([{ feedId: 'ada-1', mid: '0' }]);
    const down = once(node, 'down');
    const began = performance.now();
    janus.kill('SIGKILL');
    const [error] = (await down) as [MediaError];
    // A ping would need about five seconds.
    expect(performance.now() - began).toBeLessThan(4_000);
    expect(error.code).toBe('unavailable');
    expect(node.state).toBe('down');
    await eventually(() => node.isRefusing);
    expect([...ada.closed, ...bob.closed]).toEqual(['media server unavailable', 'media server unavailable']);
    await expect(node.ensureRoom('room')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(bob.subscriber.update({ add: [], remove: ['0'] })).rejects.toMatchObject({ code: 'unavailable' });
    await Promise.all([ada.publisher.detach(), bob.subscriber.detach()]);

    await janus.start();
    await node.untilUp(UP_WITHIN_MS);
    expect(events).toEqual(['up', 'down', 'up']);
    expect(node.isRefusing).toBe(false);
    // The rooms died with the process.
    expect(await hasMediaRoom(node, 'room')).toBe(false);
    await node.ensureRoom('room');
    const again = await startSender(node, 'room', 'ada-2');
    expect(await node.listFeeds('room')).toEqual(['ada-2']);
    for (const { peer } of [ada, bob, again]) peer.close();
  });

  test('pings detect a frozen Janus within seconds, and no call hangs on it', async () => {
    await node.ensureRoom('room');
    const session = await node.openSession();
    const publisher = await session.attachPublisher('room', 'ada-1');
    const closed = once(publisher, 'closed');
    const down = once(node, 'down');
    janus.freeze();
    const began = performance.now();
    const waiting = [
      node.ensureRoom('other'),
      node.listRooms(),
      node.openSession(),
      session.attachPublisher('room', 'bob-1'),
      session.attachSubscriber('room', 'bob'),
      publisher.publish('v=0'),
      node.ping(),
    ];
    const outcomes = await Promise.all(waiting.map((call) => call.then(() => 'answered', codeOf)));
    for (const outcome of outcomes) expect(['unavailable', 'timeout']).toContain(outcome);
    await Promise.all([down, closed]);
    // Five seconds, and five more for a slow machine.
    expect(performance.now() - began).toBeLessThan(10_000);
    await expect(node.ping()).rejects.toMatchObject({ code: 'unavailable' });
    // The kernel still accepts connections, so an attempt lasts until its deadline. The pauses before it are shorter.
    await new Promise((resolve) => setTimeout(resolve, DEFAULT_DEADLINES.connectMs + 500));
    expect([node.state, node.isRefusing]).toEqual(['down', false]);

    janus.thaw();
    await node.untilUp(UP_WITHIN_MS);
    // A thawed Janus still has its rooms.
    expect(await hasMediaRoom(node, 'room')).toBe(true);
  });

  test('a session that another process claims while its node is away stays open when the node is back', async () => {
    const { hostname: host, port } = new URL(janus.url);
    const proxy = await startTcpProxy([{ host, port: Number(port) }]);
    const away = nodeOn({ ...janus, url: `ws://127.0.0.1:${proxy.port}` }, { id: 'away' });
    await away.untilUp(UP_WITHIN_MS);
    await node.ensureRoom('room');
    const session = await away.openSession();
    const publisher = await session.attachPublisher('room', 'ada-1');
    const closed = once(publisher, 'closed');
    proxy.cut();
    await closed;
    const claimed = await node.claimSession(session.id);
    proxy.restore();
    await away.untilUp(UP_WITHIN_MS);
    await away.ping();
    await claimed.attachPublisher('room', 'bob-1');
    expect((await node.listFeeds('room')).sort()).toEqual(['ada-1', 'bob-1']);
  });

  test('a closed node rejects every call and lets its process exit', async () => {
    await node.ensureRoom('room');
    const publisher = await (await node.openSession()).attachPublisher('room', 'ada-1');
    const ended = once(publisher, 'closed');
    await Promise.all([node.close(), ended]);
    await node.close();
    expect([node.state, events]).toEqual(['down', ['up']]);
    await expect(node.listRooms()).rejects.toMatchObject({ code: 'unavailable' });
    await expect(node.untilUp(UP_WITHIN_MS)).rejects.toMatchObject({ code: 'unavailable' });
  });
});

describe('a server that violates the Janus protocol', () => {
  const isProbe = ({ body }: any) =>
    body?.room === PROBE_ROOM || (body?.request === 'configure' && body.streams === undefined);

  /** Answers as a node needs to come up and to stay up, unless `answer` returns something else. */
  async function scriptedServer(
    answer: (message: any, socket: WebSocket) => unknown,
    { version = JANUS_VERSION_MIN, allowOutdated = false } = {},
  ) {
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
        const { transaction } = message;
        if (message.janus === 'info' || isProbe(message)) {
          socket.send(JSON.stringify({ janus: 'event', transaction, version_string: version }));
          return;
        }
        const reply = answer(message, socket);
        if (reply === undefined) return;
        ids += 1;
        const usual = ['create', 'attach', 'detach'].includes(message.janus)
          ? { janus: 'success', transaction, data: { id: ids } }
          : { janus: 'ack', transaction };
        socket.send(JSON.stringify(reply === 'usual' ? usual : reply));
      });
    });
    const { port } = server.address() as { port: number };
    const node = nodeOn(
      { url: `ws://127.0.0.1:${port}`, apiSecret: 'secret', adminKey: 'key' },
      { allowOutdated, deadlines: { requestMs: 300, pingEveryMs: 50, pingMs: 200 } },
    );
    return { server, node };
  }

  test('every call has a deadline, and a late answer changes nothing', async () => {
    const requests: any[] = [];
    let late: (() => void) | undefined;
    const { node } = await scriptedServer((message, socket) => {
      requests.push(message);
      if (message.janus === 'attach' && message.opaque_id !== 'control') {
        late = () =>
          socket.send(JSON.stringify({ janus: 'success', transaction: message.transaction, data: { id: 99 } }));
        return undefined;
      }
      return message.janus === 'message' ? undefined : 'usual';
    });
    await node.untilUp(UP_WITHIN_MS);
    const session = await node.openSession();
    const calls = [
      () => node.ensureRoom('room'),
      () => node.destroyRoom('room'),
      () => node.listRooms(),
      () => node.listFeeds('room'),
      () => node.removeFeed('room', 'feed'),
      () => node.moderate('room', 'feed', '0', true),
      () => session.attachPublisher('room', 'feed'),
      () => session.attachSubscriber('room', 'label'),
    ];
    const outcomes = await Promise.all(calls.map((call) => call().then(() => 'answered', codeOf)));
    expect(outcomes).toEqual(calls.map(() => 'timeout'));
    expect(node.state).toBe('up');
    late!();
    await node.ping();
    expect(node.state).toBe('up');
    expect(requests.every(({ apisecret }) => apisecret === 'secret')).toBe(true);
  });

  test('an answer in time counts, even if the process stood still before it read the answer', async () => {
    let pings = 0;
    const { node } = await scriptedServer((message, socket) => {
      if (message.janus !== 'keepalive') return 'usual';
      pings += 1;
      socket.send(JSON.stringify({ janus: 'ack', transaction: message.transaction }));
      // Longer than the deadline of a ping.
      if (pings <= 2) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      return undefined;
    });
    let losses = 0;
    node.on('down', () => (losses += 1));
    await eventually(() => pings >= 4);
    expect(losses).toBe(0);
  });

  test('a node that is closed while it connects closes at once in every stage of connecting', async () => {
    for (const silentAt of ['create', 'attach', 'nothing']) {
      const { node, server } = await scriptedServer((message) => (message.janus === silentAt ? undefined : 'usual'));
      let messages = 0;
      server.on('connection', (socket) => socket.on('message', () => (messages += 1)));
      await eventually(() => messages >= (silentAt === 'create' ? 2 : 3), { intervalMs: 1 });
      const began = performance.now();
      await node.close();
      // An unanswered request would time out after several seconds.
      expect(performance.now() - began).toBeLessThan(1500);
      expect(node.state).toBe('down');
      await eventually(() => server.clients.size === 0);
    }
  });

  test('each request of a peer leaves after the acknowledgement of the one before it, and none after its end', async () => {
    const seen: string[] = [];
    let acknowledgements = 0;
    const { node } = await scriptedServer((message, socket) => {
      if (message.janus !== 'message' || message.body.request !== 'configure') return 'usual';
      const { mid, send } = message.body.streams[0];
      seen.push(`${mid} ${send ? 'sent' : 'paused'}`);
      // The first section gets no answer at all.
      if (mid === '0') return undefined;
      const { transaction } = message;
      setTimeout(() => {
        acknowledgements += 1;
        seen.push('acknowledged');
        socket.send(JSON.stringify({ janus: 'ack', transaction }));
        // The events come last: nothing waits for them.
        if (acknowledgements < 2) return;
        for (const earlier of transactions) socket.send(JSON.stringify({ janus: 'event', transaction: earlier }));
      }, 20);
      transactions.push(transaction);
      return undefined;
    });
    const transactions: string[] = [];
    await node.untilUp(UP_WITHIN_MS);
    const session = await node.openSession();
    const subscriber = await session.attachSubscriber('room', 'label');
    await subscriber.requestKeyFrames(['1']);
    expect(seen).toEqual(['1 paused', 'acknowledged', '1 sent', 'acknowledged']);

    seen.length = 0;
    const over = once(subscriber, 'closed');
    await expect(subscriber.requestKeyFrames(['0'])).rejects.toMatchObject({ code: 'timeout' });
    expect(await over).toEqual(['no answer']);
    // The next request waited behind that one. It would have left by the time of this detachment.
    await subscriber.detach();
    expect(seen).toEqual(['0 paused']);
  });

  test('a peer ends when a change stays unanswered, because its state in Janus is unknown', async () => {
    const { node } = await scriptedServer((message) => {
      if (message.janus !== 'message') return 'usual';
      if (['publish', 'update'].includes(message.body.request)) return undefined;
      const isSubscriber = message.body.ptype === 'subscriber';
      const data = { streams: [{ active: true, feed_id: 'feed', feed_mid: '0', mid: '0' }] };
      const jsep = isSubscriber ? { jsep: { type: 'offer', sdp: 'v=0' } } : {};
      return { janus: 'event', transaction: message.transaction, plugindata: { data }, ...jsep };
    });
    await node.untilUp(UP_WITHIN_MS);
    const session = await node.openSession();
    const publisher = await session.attachPublisher('room', 'feed');
    const ended = once(publisher, 'closed');
    await expect(publisher.publish('v=0')).rejects.toMatchObject({ code: 'timeout' });
    expect(await ended).toEqual(['no answer']);

    const subscriber = await session.attachSubscriber('room', 'label');
    const over = once(subscriber, 'closed');
    const stream = { feedId: 'feed', mid: '0' };
    expect((await subscriber.update({ add: [stream], remove: [] }))!.sections).toMatchObject([{ stream }]);
    await subscriber.answer('v=0');
    await expect(subscriber.update({ add: [], remove: ['0'] })).rejects.toMatchObject({ code: 'timeout' });
    expect(await over).toEqual(['no answer']);
    await expect(subscriber.update({ add: [], remove: ['0'] })).rejects.toMatchObject({ code: 'closed' });
    await Promise.all([publisher.detach(), subscriber.detach()]);
  });

  test('a node survives unknown messages, wrong types and unsolicited answers', async () => {
    let socket: WebSocket | undefined;
    const { node } = await scriptedServer((message, from) => {
      socket = from;
      return message.janus === 'message'
        ? { janus: 'event', transaction: message.transaction, plugindata: { data: { list: [{ room: 'room' }] } } }
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
              fc.constantFrom('ack', 'success', 'error', 'event', 'hangup', 'media', 'trickle', 'webrtcup'),
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
        expect(await hasMediaRoom(node, 'room')).toBe(true);
        expect(node.state).toBe('up');
      }),
      { numRuns: 200 },
    );
  });

  test('an outdated Janus is refused and tried again, unless it is allowed', async () => {
    const versions: string[] = [];
    let connections = 0;
    const { node, server } = await scriptedServer(() => 'usual', { version: '1.1.2' });
    node.on('outdated', (version) => versions.push(version));
    server.on('connection', () => (connections += 1));
    await eventually(() => connections >= 3);
    expect([node.state, node.version, node.isOutdated, versions]).toEqual(['down', '1.1.2', true, ['1.1.2']]);
    await expect(node.listRooms()).rejects.toMatchObject({
      code: 'unavailable',
      cause: { code: 'outdated', message: 'Janus 1.1.2 is older than 1.4.1' },
    });
    const allowed = await scriptedServer(() => 'usual', { version: '1.1.2', allowOutdated: true });
    await allowed.node.untilUp(UP_WITHIN_MS);
    expect([allowed.node.version, allowed.node.isOutdated]).toEqual(['1.1.2', true]);
    for (const one of [node, allowed.node]) {
      const error = { reason: 'outdated', message: `${one.id} runs Janus 1.1.2, before 1.4.1` };
      await expect(new MediaNodes([one]).ping()).rejects.toMatchObject(error);
    }
    const { node: current } = await scriptedServer(() => 'usual');
    await current.untilUp(UP_WITHIN_MS);
    await new MediaNodes([current]).ping();
    await expect(new MediaNodes([]).ping()).rejects.toThrow('no media server is up');
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
  ])('with %s the node stays down and keeps trying', async (_, answer) => {
    let connections = 0;
    const { node, server } = await scriptedServer(answer);
    server.on('connection', () => (connections += 1));
    await eventually(() => connections >= 2);
    expect(node.state).toBe('down');
  });

  test.each([
    ['the end of the session', { janus: 'timeout', session_id: 1 }],
    ['the end of the control handle', { janus: 'detached', session_id: 1, sender: 2 }],
  ])('%s makes the node reconnect', async (_, notice) => {
    let isSent = false;
    const { node } = await scriptedServer((message, socket) => {
      if (message.janus === 'keepalive' && !isSent) {
        isSent = true;
        socket.send(JSON.stringify(notice));
      }
      return 'usual';
    });
    // Listens from the beginning: on a slow machine the loss may follow before the wait for `up` has ended.
    const down = once(node, 'down');
    await node.untilUp(UP_WITHIN_MS);
    await down;
    await node.untilUp(UP_WITHIN_MS);
  });
});

test('reconnection pauses double from 100 ms to 2 s, less a random part of up to one half', () => {
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
