import { afterEach, describe, expect, test } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@callplane/testing';
import type { Call } from './call.js';
import { connect } from './connect.js';
import type { ConnectOptions } from './options.js';
import { nodePlatform, participant, startScriptedGateway, testPage, welcome } from './scripted-gateway.testkit.js';

const calls: Call[] = [];
afterEach(async () => {
  await Promise.all(calls.splice(0).map((call) => call.leave()));
});
async function join(url: string, options: Partial<ConnectOptions> = {}): Promise<Call> {
  const call = await connect({ url, token: 'jwt', ...options, platform: { ...nodePlatform, ...options.platform } });
  calls.push(call);
  return call;
}
const statesOf = (call: Call) => {
  const states: string[] = [];
  call.on('state', (state) => states.push(state));
  return states;
};

describe('joining', () => {
  test('sends the token in the first message, over the protocol’s own sub-protocol, and tells what the gateway told', async () => {
    const gateway = await startScriptedGateway({ join: () => welcome({ participants: [participant('ada')] }) });
    const call = await join(gateway.url, { autoSubscribe: false });
    const { received, protocol } = await gateway.connection(0);
    expect(protocol).toBe('callplane.v1');
    expect(received).toEqual([{ type: 'join', token: 'jwt', autoSubscribe: false, requireMedia: false }]);
    expect(call.state).toBe('connected');
    expect(call.sessionId).toBe('sess_me');
    expect([...call.participants.keys()]).toEqual(['ada']);
    expect(call.mediaState).toBe('up');
  });

  test('whoever listens right after connect() hears everything that came after the welcome', async () => {
    const gateway = await startScriptedGateway({
      join: (_, connection) => {
        connection.send(welcome({ participants: [participant('ada')] }));
        connection.send({ type: 'participantJoined', participant: participant('bob') });
        connection.send({ type: 'message', from: 'bob', data: [1], sentAt: '2030-01-01T00:00:00.000Z' });
        return undefined;
      },
    });
    const call = await join(gateway.url);
    const heard: unknown[] = [[...call.participants.keys()]];
    call.on('participantJoined', ({ name }) => heard.push(name));
    call.on('message', ({ from, data }) => heard.push([from, data]));
    await eventually(() => heard.length === 3);
    expect(heard).toEqual([['ada'], 'bob', ['bob', [1]]]);
  });

  test.each(['invalid_token', 'token_expired', 'capacity', 'media_unavailable', 'room_ended', 'removed'] as const)(
    'a refusal (%s) rejects with the gateway’s reason, and nothing is tried again',
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

  test('the close frame alone is reason enough', async () => {
    const gateway = await startScriptedGateway({
      join: (_, connection) => {
        connection.endWithoutMessage('capacity');
        return undefined;
      },
    });
    await expect(join(gateway.url)).rejects.toMatchObject({ code: 'capacity' });
  });

  test('a gateway that is not there is tried until the time is over', async () => {
    const gateway = await startScriptedGateway();
    await gateway.die();
    const began = performance.now();
    await expect(join(gateway.url, { connectTimeoutMs: 700 })).rejects.toMatchObject({ code: 'unreachable' });
    expect(performance.now() - began).toBeGreaterThan(600);
  });

  test('a gateway that drains or has lost its database is tried again', async () => {
    let tries = 0;
    const gateway = await startScriptedGateway({
      join: (_, connection) => {
        tries++;
        if (tries === 1) connection.end('drain');
        if (tries === 2) connection.end('unavailable');
        return tries > 2 ? welcome() : undefined;
      },
    });
    const call = await join(gateway.url);
    expect(call.state).toBe('connected');
    expect(tries).toBe(3);
  });

  test.each([
    [{ url: 'https://example.com' }, 'url'],
    [{ token: '' }, 'token'],
  ])('%j is refused before anything is sent', async (wrong, named) => {
    const refused = await join('ws://127.0.0.1:1', wrong).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'invalid_argument', message: expect.stringContaining(named) });
  });
});

describe('coming back', () => {
  test('a connection that is cut is made again with the session’s secret, and the others’ changes are told', async () => {
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
    const heard: string[] = [];
    call.on('participantLeft', ({ name }) => heard.push(`-${name}`));
    call.on('participantJoined', ({ name }) => heard.push(`+${name}`));
    (await gateway.connection(0)).cut();
    const second = await gateway.connection(1);
    await eventually(() => states.includes('connected'));
    expect(second.received).toEqual([
      { type: 'resume', sessionId: 'sess_me', resumeSecret: 'secret', autoSubscribe: true },
    ]);
    expect(states).toEqual(['reconnecting', 'connected']);
    expect(heard).toEqual(['-ada', '+eve']);

    // And again, with the newest secret.
    second.cut();
    const third = await gateway.connection(2);
    await eventually(() => third.received.length > 0);
    expect(third.received[0]).toMatchObject({ type: 'resume', resumeSecret: 'secret-2' });
  });

  test.each(['drain', 'unavailable', 'rate_limited', 'slow_consumer', 'timeout'] as const)(
    'a gateway that says %s is resumed',
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
    '%s ends the call at once, with its reason',
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

  test('a resume that is refused ends the call with the reason', async () => {
    const gateway = await startScriptedGateway({
      resume: (_, connection) => {
        connection.end('invalid_session');
        return undefined;
      },
    });
    const call = await join(gateway.url);
    (await gateway.connection(0)).cut();
    await eventually(() => call.state === 'closed');
    expect(call.closeInfo).toMatchObject({ reason: 'invalid_session' });
  });

  test('it gives up when the grace period is over', async () => {
    const gateway = await startScriptedGateway({ join: () => welcome({ reconnectGraceSeconds: 1 }) });
    const call = await join(gateway.url);
    const closed = new Promise((resolve) => call.once('closed', resolve));
    const began = performance.now();
    await gateway.die();
    expect(await closed).toMatchObject({ reason: 'connection_lost' });
    const took = performance.now() - began;
    expect(took).toBeGreaterThan(800);
    expect(took).toBeLessThan(3_000);
  });

  test('the news that the network is back ends the pause', async () => {
    const { page, tell } = testPage();
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
    // After 200, 400 and 800 ms; the next pause takes 1.6 s.
    await gateway.connection(3);
    await delay(50);
    isUp = true;
    const began = performance.now();
    tell('online');
    await eventually(() => call.state === 'connected');
    expect(performance.now() - began).toBeLessThan(800);
  });

  test('a gateway that no longer answers pings is left', async () => {
    const { page, tell } = testPage();
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url, { platform: { page } });
    (await gateway.connection(0)).freeze();
    tell('offline');
    await eventually(async () => (await gateway.connection(1)).received.length > 0);
    await eventually(() => call.state === 'connected');
  });

  test('pings keep an idle connection alive', async () => {
    const gateway = await startScriptedGateway({ join: () => welcome({ pingIntervalSeconds: 0.1 }) });
    await join(gateway.url);
    const { received } = await gateway.connection(0);
    await eventually(() => received.filter(({ type }) => type === 'ping').length >= 3);
  });
});

describe('requests', () => {
  test('answers find their requests in whatever order they come', async () => {
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

  test('one whose answer was lost with the connection says so; one made meanwhile waits for the next', async () => {
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

  test('one that is never answered ends after its time', async () => {
    const gateway = await startScriptedGateway({ message: () => undefined });
    const call = await join(gateway.url, { requestTimeoutMs: 100 });
    await expect(call.send('?')).rejects.toMatchObject({ code: 'no_answer' });
    expect(call.state).toBe('connected');
  });

  test('what was subscribed and unsubscribed is asked for again when the gateway starts anew', async () => {
    const gateway = await startScriptedGateway({ resume: () => welcome({ resumed: true }) });
    const call = await join(gateway.url);
    await call.subscribe({ participantId: 'ada', trackId: 'camera', layer: { spatial: 1 } });
    await call.unsubscribe({ participantId: 'bob', trackId: 'camera' });
    (await gateway.connection(0)).cut();
    const { received } = await gateway.connection(1);
    await eventually(() => received.length === 3);
    expect(received.slice(1)).toMatchObject([
      { type: 'subscribe', tracks: [{ participantId: 'ada', trackId: 'camera', layer: { spatial: 1 } }] },
      { type: 'unsubscribe', tracks: [{ participantId: 'bob', trackId: 'camera' }] },
    ]);
  });

  test('ICE servers are renewed before they expire', async () => {
    const soon = () => new Date(Date.now() + 1_500).toISOString();
    const gateway = await startScriptedGateway({
      join: () => welcome({ iceServersExpireAt: soon() }),
      iceServers: () => ({ type: 'iceServers', iceServers: [], iceServersExpireAt: soon() }),
    });
    await join(gateway.url);
    const { received } = await gateway.connection(0);
    await eventually(() => received.some(({ type }) => type === 'iceServers'));
  });
});

describe('leaving', () => {
  test('tells the gateway and ends without a try to come back; twice is once', async () => {
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

  test('works while the connection is lost', async () => {
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url);
    await gateway.die();
    await eventually(() => call.state === 'reconnecting');
    await call.leave();
    expect(call.closeInfo).toMatchObject({ reason: 'left' });
  });

  test('a frozen gateway holds nobody for longer than about a second', async () => {
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url);
    (await gateway.connection(0)).freeze();
    const began = performance.now();
    await call.leave();
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  test('the page’s going is a leaving', async () => {
    const { page, tell } = testPage();
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url, { platform: { page } });
    tell('pagehide');
    await eventually(() => call.state === 'closed');
    expect(call.closeInfo).toMatchObject({ reason: 'left' });
  });
});
