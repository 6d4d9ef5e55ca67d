import { expect, test } from '@jest/globals';
import { IceServers } from './ice-servers.js';
import { platformOf } from './platform.js';
import type { Session } from './signaling/session.js';

const policies = { iceTransportPolicy: 'relay', bundlePolicy: 'max-bundle' };
const serversOf = (username: string) => [{ urls: ['turn:a'], username }];

/** A gateway that issues numbered credentials, and connections that keep their configuration. */
function stage() {
  let nowMs = 5_000;
  const targets: unknown[] = [];
  const request = async (message: object) => {
    targets.push((message as { target?: string }).target);
    return { type: 'iceServers', iceServers: serversOf(`fresh ${targets.length}`) };
  };
  const iceServers = new IceServers({ request } as unknown as Session, () => nowMs, 'relay');
  iceServers.welcome({ iceServers: serversOf('welcome'), iceServersTtlSeconds: 100 });
  const newConnection = () => {
    const connection = {
      configuration: iceServers.configuration,
      setConfiguration: (one: RTCConfiguration) => (connection.configuration = one),
    };
    return connection as typeof connection & RTCPeerConnection;
  };
  const pass = (seconds: number) => (nowMs += 1000 * seconds);
  return { iceServers, targets, newConnection, pass };
}

test('the credentials of the welcome serve the first connection in each direction', async () => {
  const { iceServers, targets, newConnection, pass } = stage();
  pass(79);
  const [first, second] = [newConnection(), newConnection()];
  await iceServers.open('publisher', first);
  await iceServers.open('subscriber', newConnection());
  expect([targets, first.configuration]).toEqual([[], { ...policies, iceServers: serversOf('welcome') }]);
  await iceServers.open('publisher', second);
  expect([targets, second.configuration]).toEqual([['publisher'], { ...policies, iceServers: serversOf('fresh 1') }]);
});

test('a first connection has fresh credentials if the lifetime of the welcome’s is nearly over', async () => {
  const { iceServers, targets, newConnection, pass } = stage();
  pass(80);
  await iceServers.open('subscriber', newConnection());
  expect(targets).toEqual(['subscriber']);
});

test('each ICE restart has fresh credentials', async () => {
  const { iceServers, targets, newConnection } = stage();
  const connection = newConnection();
  await iceServers.open('publisher', connection);
  await iceServers.renew('publisher', connection);
  await iceServers.renew('publisher', connection);
  expect([targets.length, connection.configuration.iceServers]).toEqual([2, serversOf('fresh 2')]);
});

test('the clock of this machine plays no part', () => {
  expect(platformOf().now()).toBeLessThanOrEqual(performance.now());
});
