import { describe, expect, test } from '@jest/globals';
import { freePort } from '@callplane/local-servers';
import type { CloseReason } from '../protocol.generated.js';
import { nodePlatform, startScriptedGateway, testToken } from '../scripted-gateway.testkit.js';
import { testConnection, type ConnectionTestOptions, type ConnectionTestStep } from '../test-connection.js';
import { fakeConnections, type FakeLine } from './fake-line.testkit.js';

const STUN = { urls: ['stun:turn.example.com:3478'] };
const TURN = {
  urls: ['turn:turn.example.com:3478?transport=udp', 'turn:turn.example.com?transport=tcp', 'turns:t.example.com:443'],
  username: 'u',
  credential: 'c',
};
const OPEN: FakeLine = { open: ['udp', 'tcp', 'tls'], udp: true };

async function run(line: FakeLine, options: Partial<ConnectionTestOptions> = {}) {
  const gateway = await startScriptedGateway();
  const { all, RTCPeerConnection } = fakeConnections(line);
  const told: ConnectionTestStep[] = [];
  const tested = await testConnection({
    url: gateway.url,
    iceServers: [STUN, TURN],
    seconds: 1,
    onStep: (step) => told.push(step),
    platform: { ...nodePlatform, RTCPeerConnection },
    ...options,
  });
  expect(all.every(({ isClosed }) => isClosed)).toBe(true);
  expect([...told].sort(byName)).toEqual([...tested.steps].sort(byName));
  const outcomes = Object.fromEntries(tested.steps.map(({ name, outcome }) => [name, outcome]));
  const messages = Object.fromEntries(tested.steps.map(({ name, message }) => [name, message]));
  return { ...tested, outcomes, messages, all, gateway };
}
const byName = (a: ConnectionTestStep, b: ConnectionTestStep) => a.name.localeCompare(b.name);

describe('a test of the connection', () => {
  test('passes every step of an open line, and measures its loop', async () => {
    const { outcomes, loop, isUsable, steps } = await run({ ...OPEN, tripMs: 30 });
    expect(Object.entries(outcomes)).toEqual(
      ['webSocket', 'turnUdp', 'turnTcp', 'turnTls', 'udp', 'loop'].map((name) => [name, 'passed']),
    );
    expect(isUsable).toBe(true);
    expect(loop!.roundTripMs).toBeGreaterThanOrEqual(29);
    expect(loop!.lossPercent).toBe(0);
    expect(loop!.kbitPerSecond).toBeGreaterThan(100);
    expect(steps.at(-1)!.durationMs).toBeGreaterThanOrEqual(1000);
  });

  test('names the blocked paths, and the ports to open', async () => {
    const { outcomes, messages, isUsable, all } = await run({ open: ['tls'], udp: false });
    expect(outcomes).toMatchObject({ turnUdp: 'failed', turnTcp: 'failed', turnTls: 'passed', udp: 'failed' });
    expect(messages).toMatchObject({
      turnUdp: 'TURN over UDP is blocked. Open UDP port 3478 to turn.example.com.',
      turnTcp: 'TURN over TCP is blocked. Open TCP port 3478 to turn.example.com.',
      udp: expect.stringContaining('Open outgoing UDP'),
    });
    expect(isUsable).toBe(true);
    // Both ends of the loop take the only relay that works.
    expect(all.at(-1)!.configuration.iceServers).toEqual([{ ...TURN, urls: ['turns:t.example.com:443'] }]);
  });

  test('finds a line unusable over which no media flows, or no signaling', async () => {
    const noMedia = await run({ open: [], udp: false });
    expect(noMedia.outcomes).toMatchObject({ webSocket: 'passed', udp: 'skipped', loop: 'skipped' });
    expect(noMedia.isUsable).toBe(false);
    const url = `ws://127.0.0.1:${await freePort()}`;
    const noSignaling = await run(OPEN, { url });
    expect(noSignaling.outcomes).toMatchObject({ webSocket: 'failed', turnUdp: 'passed' });
    expect(noSignaling.messages['webSocket']).toContain(`No WebSocket reaches ${url.slice(5)}`);
    expect(noSignaling.isUsable).toBe(false);
    const unknown = await run(OPEN, { url, iceServers: undefined, token: testToken });
    expect(new Set(Object.values(unknown.outcomes))).toEqual(new Set(['failed', 'skipped']));
  });

  test('tells a relay that refuses from one that does not answer, and a loop that the relay refuses', async () => {
    const refuses = { errorCode: 486, errorText: 'Allocation Quota Reached' };
    const refused = await run({ ...OPEN, open: [], refuses });
    expect(refused.messages['turnUdp']).toContain('turn.example.com:3478 answers and refuses a relay: 486 Allocation');
    const unlooped = await run({ ...OPEN, loops: false });
    expect(unlooped).toMatchObject({ outcomes: { udp: 'passed', loop: 'failed' }, loop: undefined, isUsable: true });
  });

  test('reports the loss and the rate of a poor line in its sentence', async () => {
    const { loop, messages } = await run({ ...OPEN, losesEvery: { up: 5 }, bytesPerSecond: 25_000 });
    expect(loop!.lossUpPercent).toBeGreaterThan(10);
    expect(loop!.lossUpPercent).toBeLessThan(30);
    expect(loop).toMatchObject({ lossDownPercent: 0, lossPercent: loop!.lossUpPercent });
    expect(loop!.kbitPerSecond).toBeLessThan(250);
    expect(messages['loop']).toMatch(/% up, 0 % down, \d+ kbit\/s\. Too slow for video.* Sound will break/);
  });

  test('tells the losses of the two ways apart if it has relays over UDP and over TLS, else their sum', async () => {
    const [down, both] = await Promise.all([
      run({ ...OPEN, open: ['udp', 'tls'], losesEvery: { down: 5 } }),
      run({ ...OPEN, open: ['udp'], losesEvery: { up: 10, down: 10 } }),
    ]);
    expect(down.loop).toMatchObject({ lossUpPercent: 0, lossPercent: down.loop!.lossDownPercent });
    expect(down.loop!.lossDownPercent).toBeGreaterThan(10);
    expect(both.loop).toMatchObject({ lossUpPercent: undefined, lossDownPercent: undefined });
    expect(both.loop!.lossPercent).toBeGreaterThan(0);
    expect(both.messages['loop']).toMatch(/loss [\d.]+ %, \d+ kbit/);
  });

  test('gets ICE servers for a token without a join', async () => {
    const gateway = await startScriptedGateway({
      test: (_, connection) => {
        queueMicrotask(() => connection.end('left'));
        const expiry = { iceServersExpireAt: '2030-01-01T00:00:00.000Z', iceServersTtlSeconds: 60 };
        return { type: 'iceServers', iceServers: [TURN], ...expiry };
      },
    });
    const tested = await run(OPEN, { url: gateway.url, token: testToken, iceServers: undefined });
    expect(tested.outcomes).toMatchObject({ turnTls: 'passed', loop: 'passed' });
    expect(gateway.connections.flatMap(({ received }) => received.map(({ type }) => type))).toEqual(['test']);
  });

  test.each<CloseReason>(['token_expired', 'too_many_attempts'])('rejects with %s of the gateway', async (reason) => {
    const gateway = await startScriptedGateway({
      test: (_, connection) => {
        connection.end(reason);
        return undefined;
      },
    });
    const testing = run(OPEN, { url: gateway.url, token: testToken, iceServers: undefined });
    await expect(testing).rejects.toMatchObject({ code: reason });
  });

  test('ends at once when its signal is aborted, and refuses wrong options', async () => {
    const { all, RTCPeerConnection } = fakeConnections(OPEN);
    const { url } = await startScriptedGateway();
    const abort = new AbortController();
    const options = { url, iceServers: [TURN], platform: { ...nodePlatform, RTCPeerConnection }, signal: abort.signal };
    const onStep = ({ name }: ConnectionTestStep) => name === 'udp' && abort.abort();
    await expect(testConnection({ ...options, onStep })).rejects.toMatchObject({ code: 'aborted' });
    expect(all.every(({ isClosed }) => isClosed)).toBe(true);
    const { signal: _, ...lasting } = options;
    await expect(testConnection({ ...lasting, seconds: 60 })).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(testConnection({ url, platform: options.platform })).rejects.toMatchObject({ code: 'invalid_token' });
  });
});
