import { connect, type Call } from './call.js';
import type { ConnectOptions } from './options.js';
import {
  nodePlatform,
  participant,
  startScriptedGateway,
  testPage,
  testToken,
  welcome,
} from './scripted-gateway.testkit.js';
import { eventually } from '@callplane/testing';
import { afterEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const calls: Call[] = [];
afterEach(async () => {
  await Promise.all(calls.splice(0).map((call) => call.leave()));
});
async function join(url: string, options: Partial<ConnectOptions> = {}): Promise<Call> {
  const call = await connect({ url, token: testToken, ...options, platform: { ...nodePlatform, ...options.platform } });
  calls.push(call);
  return call;
}
const statesOf = (call: Call) => {
  const states: string[] = [];
  call.on('state', (state) => states.push(state));
  return states;
};

describe('joining', () => {
  test('sends the token in the first message, over the protocol’s own sub-protocol, and exposes the gateway’s welcome', async () => {
    const gateway = await startScriptedGateway({ join: () => welcome({ participants: [participant('ada')] }) });
    const call = await join(gateway.url, { autoSubscribe: false });
    const { received, protocol } = await gateway.connection(0);
    expect(protocol).toBe('callplane.v1');
    expect(received).toEqual([{ type: 'join', token: testToken, autoSubscribe: false, requireMedia: false }]);
    expect(call.state).toBe('connected');
    expect(call.sessionId).toBe('sess_me');
    expect([...call.participants.keys()]).toEqual(['ada']);
    expect(call.mediaState).toBe('up');
  });

  test.each(['invalid_token', 'token_expired', 'capacity', 'media_unavailable', 'room_ended', 'removed'] as const)(
    'a refusal (%s) rejects with the gateway’s reason, without a retry',
    async (reason) => {
      const gateway = await startScriptedGateway({
        join: (_, connection) => {
          connection.end(reason);
          return undefined;
        },
      });
      await expect(join(gateway.url)).rejects.toMatchObject({ name: 'CallplaneError', code: reason });
      await delay(250);
      expect(gateway.connections).toHaveLength(1);
    },
  );

  test('retries an unreachable gateway until the connect timeout', async () => {
    const gateway = await startScriptedGateway();
    await gateway.die();
    const began = performance.now();
    await expect(join(gateway.url, { connectTimeoutMs: 700 })).rejects.toMatchObject({ code: 'unreachable' });
    expect(performance.now() - began).toBeGreaterThan(600);
  });

  test('names a URL that is not a gateway, and why', async () => {
    const server = createServer((_, response) => response.writeHead(404).end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/calls`;
    const refused = async () => (await join(url, { connectTimeoutMs: 200 }).catch((error: unknown) => error)) as Error;
    expect(await refused()).toMatchObject({ code: 'unreachable' });
    expect((await refused()).message).toContain(`${url}: a server answers there, but it is no gateway`);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect((await refused()).message).toContain(`${url}: no server answers there`);
  });

  test('a message and metadata without the permission say which one is missing, and are not sent', async () => {
    const gateway = await startScriptedGateway({ join: () => welcome({ permissions: ['room:join'] }) });
    const call = await join(gateway.url);
    await expect(call.send('hello')).rejects.toThrow(
      /The permission messages:send is missing. Your backend adds it to `permissions` of POST/,
    );
    await expect(call.updateMetadata({})).rejects.toThrow(/metadata:update/);
    expect((await gateway.connection(0)).received.map(({ type }) => type)).toEqual(['join']);
  });

  test('retries a refusal for too many joins after the gateway’s pause, and not before', async () => {
    const triedAtMs: number[] = [];
    const gateway = await startScriptedGateway({
      join: (_, connection) => {
        triedAtMs.push(performance.now());
        if (triedAtMs.length === 2) return welcome();
        connection.end('too_many_attempts', { retryAfterSeconds: 1 });
        return undefined;
      },
    });
    const call = await join(gateway.url);
    expect(call.state).toBe('connected');
    // A timer of Node may fire a millisecond early.
    expect(triedAtMs[1]! - triedAtMs[0]!).toBeGreaterThanOrEqual(999);
  });

  test('an aborted signal rejects at once, and the gateway reads that the participant leaves after its join', async () => {
    const abort = new AbortController();
    const gateway = await startScriptedGateway({
      join: () => {
        abort.abort('the page went on');
        return undefined;
      },
      // It reads the message only after the welcome.
      leave: (_, connection) => {
        connection.send(welcome());
        connection.end('left');
        return undefined;
      },
    });
    await expect(join(gateway.url, { signal: abort.signal })).rejects.toMatchObject({
      code: 'aborted',
      cause: 'the page went on',
    });
    await expect(join(gateway.url, { signal: abort.signal })).rejects.toMatchObject({ code: 'aborted' });
    const { received, closed } = await gateway.connection(0);
    await closed;
    expect(received.map(({ type }) => type)).toEqual(['join', 'leave']);
    expect(gateway.connections).toHaveLength(1);
  });

  test.each([
    [{ url: 'https://example.com' }, 'url'],
    [{ token: '' }, 'token'],
    [{ token: undefined as never }, 'token'],
  ])('rejects the option %j before anything is sent', async (wrong, named) => {
    const refused = await join('ws://127.0.0.1:1', wrong).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'invalid_argument', message: expect.stringContaining(named) });
  });
});

describe('reconnecting', () => {
  test('resumes a cut connection with the session’s secret and emits the others’ changes', async () => {
    const gateway = await startScriptedGateway({
      join: () => welcome({ participants: [participant('ada'), participant('bob')] }),
      resume: () =>
        welcome({
          resumed: true,
          resumeSecret: 'secret-2',
          participants: [participant('bob'), participant('eve')],
          media: { state: 'up', continued: true },
        }),
    });
    const call = await join(gateway.url);
    const states = statesOf(call);
    const received: string[] = [];
    call.on('participantLeft', ({ name }) => received.push(`-${name}`));
    call.on('participantJoined', ({ name }) => received.push(`+${name}`));
    (await gateway.connection(0)).cut();
    const second = await gateway.connection(1);
    await eventually(() => states.includes('connected'));
    expect(second.received).toEqual([
      {
        type: 'resume',
        roomId: 'room_1',
        sessionId: 'sess_me',
        resumeSecret: 'secret',
        autoSubscribe: true,
        peers: [],
      },
    ]);
    expect(states).toEqual(['reconnecting', 'connected']);
    expect(received).toEqual(['-ada', '+eve']);

    // The next resume uses the newest secret.
    second.cut();
    const third = await gateway.connection(2);
    await eventually(() => third.received.length > 0);
    expect(third.received[0]).toMatchObject({ type: 'resume', resumeSecret: 'secret-2' });
  });

  test.each(['drain', 'unavailable', 'rate_limited', 'slow_consumer', 'timeout'] as const)(
    'resumes after a gateway closes with %s',
    async (reason) => {
      const gateway = await startScriptedGateway();
      const call = await join(gateway.url);
      const states = statesOf(call);
      (await gateway.connection(0)).end(reason);
      await eventually(() => states.includes('connected'));
      expect((await gateway.connection(1)).received[0]).toMatchObject({ type: 'resume' });
    },
  );

  test.each(['removed', 'room_ended', 'superseded', 'protocol_error'] as const)(
    '%s ends the call at once with its reason',
    async (reason) => {
      const gateway = await startScriptedGateway();
      const call = await join(gateway.url);
      const states = statesOf(call);
      const closed = new Promise((resolve) => call.once('closed', resolve));
      (await gateway.connection(0)).end(reason);
      expect(await closed).toMatchObject({ reason });
      expect(states).toEqual(['closed']);
      expect(call.closeInfo).toMatchObject({ reason });
      await expect(call.send('x')).rejects.toMatchObject({ code: reason });
      await delay(250);
      expect(gateway.connections).toHaveLength(1);
    },
  );

  test('gives up when the grace period is over', async () => {
    const gateway = await startScriptedGateway({ join: () => welcome({ reconnectGraceSeconds: 1 }) });
    const call = await join(gateway.url);
    const closed = new Promise((resolve) => call.once('closed', resolve));
    const began = performance.now();
    await gateway.die();
    expect(await closed).toMatchObject({ reason: 'connection_lost' });
    const took = performance.now() - began;
    expect(took).toBeGreaterThan(800);
    expect(took).toBeLessThan(12_000);
  });

  test('the browser’s online event ends the pause', async () => {
    const { page, dispatch } = testPage();
    let isUp = true;
    const gateway = await startScriptedGateway({
      resume: (_, connection) => {
        if (!isUp) connection.cut();
        return isUp ? welcome({ resumed: true }) : undefined;
      },
    });
    const call = await join(gateway.url, { platform: { page, random: () => 1 } });
    isUp = false;
    (await gateway.connection(0)).cut();
    // Pauses of 200, 400 and 800 ms, then none because of the events. The last pause would take 5 s.
    for (const index of [3, 4, 5]) {
      await gateway.connection(index);
      await delay(50);
      isUp = index === 5;
      dispatch('online');
    }
    const began = performance.now();
    await eventually(() => call.state === 'connected');
    expect(performance.now() - began).toBeLessThan(4000);
  });

  test('drops a gateway that no longer answers pings', async () => {
    const { page, dispatch } = testPage();
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url, { platform: { page } });
    (await gateway.connection(0)).freeze();
    dispatch('offline');
    await eventually(async () => (await gateway.connection(1)).received.length > 0);
    await eventually(() => call.state === 'connected');
  });
});

describe('requests', () => {
  test('matches answers to their requests in any order', async () => {
    const gateway = await startScriptedGateway({ metadata: () => undefined, message: () => undefined });
    const call = await join(gateway.url);
    const connection = await gateway.connection(0);
    const first = call.updateMetadata({ a: 1 });
    const second = call.send('hello', { to: ['ada'] });
    await eventually(() => connection.received.length === 3);
    const [, metadata, message] = connection.received;
    expect(message).toMatchObject({ data: 'hello', to: ['ada'] });
    connection.send({ type: 'error', replyTo: message!.id!, code: 'permission_denied', message: 'No.' });
    await expect(second).rejects.toMatchObject({ code: 'permission_denied', message: 'No.' });
    connection.send({ type: 'ok', replyTo: metadata!.id! });
    await first;
  });

  test('rejects a request whose answer was lost with the connection; a request during the loss waits for the next connection', async () => {
    let isFirst = true;
    const gateway = await startScriptedGateway({
      message: (_, connection) => {
        if (isFirst) connection.cut();
        isFirst = false;
        return { type: 'ok' };
      },
    });
    const call = await join(gateway.url);
    await expect(call.send('lost')).rejects.toMatchObject({ code: 'connection_lost' });
    expect(call.state).toBe('reconnecting');
    await call.send('kept');
    expect((await gateway.connection(1)).received.map(({ type }) => type)).toEqual(['resume', 'message']);
  });

  test('a message of the server is marked as such', async () => {
    const gateway = await startScriptedGateway({ join: () => welcome({ participants: [participant('ada')] }) });
    const call = await join(gateway.url);
    const received: unknown[] = [];
    call.on('message', ({ from, isFromServer, participant: sender }) =>
      received.push([from, isFromServer, sender?.name]),
    );
    const sentAt = '2030-01-01T00:00:00.000Z';
    for (const from of ['ada', 'server', 'gone'])
      (await gateway.connection(0)).send({ type: 'message', from, data: 'x', sentAt });
    await eventually(() => received.length === 3);
    expect(received).toEqual([
      ['ada', false, 'ada'],
      ['server', true, undefined],
      ['gone', false, undefined],
    ]);
  });

  test('a request without an answer rejects after its timeout', async () => {
    const gateway = await startScriptedGateway({ message: () => undefined });
    const call = await join(gateway.url, { requestTimeoutMs: 100 });
    await expect(call.send('?')).rejects.toMatchObject({ code: 'no_answer' });
    expect(call.state).toBe('connected');
  });
});

describe('leaving', () => {
  test('notifies the gateway and ends without reconnecting; a second leave() changes nothing', async () => {
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url);
    const states = statesOf(call);
    await Promise.all([call.leave(), call.leave()]);
    await call.leave();
    await eventually(() => states.length > 0);
    expect(states).toEqual(['closed']);
    expect(call.closeInfo).toMatchObject({ reason: 'left' });
    expect((await gateway.connection(0)).received.at(-1)).toMatchObject({ type: 'leave' });
    await delay(300);
    expect(gateway.connections).toHaveLength(1);
  });

  test.each([
    ['was never used', false],
    ['is loaded', true],
  ])('leaves nothing to publish or unpublish: no device is opened if the code for it %s', async (_what, isLoaded) => {
    const gateway = await startScriptedGateway();
    let opened = 0;
    const getUserMedia = () => Promise.reject(new Error(`device ${++opened}`));
    const mediaDevices = { getUserMedia, getDisplayMedia: getUserMedia };
    const call = await join(gateway.url, { platform: { mediaDevices } });
    // Only chooses the camera for later.
    if (isLoaded) await call.switchDevice('videoinput', 'camera');
    await call.leave();
    await expect(call.publish({ audio: true })).rejects.toMatchObject({ code: 'closed' });
    await expect(call.shareScreen()).rejects.toMatchObject({ code: 'closed' });
    await expect(call.switchDevice('videoinput', 'camera')).rejects.toMatchObject({ code: 'closed' });
    await Promise.all([call.unpublish(), call.stopScreenShare()]);
    expect(opened).toBe(0);
  });

  test('a pagehide event leaves the call', async () => {
    const { page, dispatch } = testPage();
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url, { platform: { page } });
    dispatch('pagehide');
    await eventually(() => call.state === 'closed');
    expect(call.closeInfo).toMatchObject({ reason: 'left' });
  });
});

describe('requests', () => {
  test('a refusal has the gateway’s details', async () => {
    const details = [{ path: '/metadata/a', message: 'is not a number that can be kept' }];
    const gateway = await startScriptedGateway({
      metadata: () => ({ type: 'error', code: 'invalid_message', message: 'Invalid.', details }),
    });
    const call = await join(gateway.url);
    await expect(call.updateMetadata({ a: 1 })).rejects.toMatchObject({ code: 'invalid_message', details });
  });

  test('an aborted signal ends the wait for the answer', async () => {
    const gateway = await startScriptedGateway({ message: () => undefined });
    const call = await join(gateway.url);
    const abort = new AbortController();
    const sending = call.send('hello', { signal: abort.signal });
    abort.abort();
    await expect(sending).rejects.toMatchObject({ code: 'aborted' });
  });
});

test('a call that is moved continues in the other room: the same object, its event, and its later resumptions', async () => {
  const other = { room: { id: 'room_2', name: 'Blue' }, sessionId: 'sess_2', participant: participant('me2') };
  const gateway = await startScriptedGateway({
    join: () => welcome({ participants: [participant('ada')] }),
    resume: () => welcome({ resumed: true, ...other, participants: [participant('bob')] }),
  });
  const call = await join(gateway.url);
  const seen: unknown[] = [];
  call.on('moved', (room) => seen.push(['moved', room, call.sessionId, [...call.participants.keys()]]));
  call.on('closed', () => seen.push('closed'));
  (await gateway.connection(0)).end('moved');
  await eventually(() => call.state === 'connected' && seen.length > 0);
  expect(seen).toEqual([['moved', other.room, 'sess_2', ['bob']]]);
  expect([call.room, call.participant.participantId]).toEqual([other.room, 'me2']);
  const { received } = await gateway.connection(1);
  expect(received[0]).toMatchObject({ type: 'resume', roomId: 'room_1', sessionId: 'sess_me' });
  (await gateway.connection(1)).cut();
  const later = (await gateway.connection(2)).received;
  await eventually(() => later.length > 0);
  expect(later[0]).toMatchObject({ type: 'resume', roomId: 'room_2', sessionId: 'sess_2' });
  await eventually(() => call.state === 'connected');
  expect(seen).toHaveLength(1);
});
