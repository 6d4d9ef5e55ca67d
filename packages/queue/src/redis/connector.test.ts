import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually, stopAtEnd } from '@callplane/testing';
import type { Cluster } from 'ioredis';
import { connectorOf, type Follower, type Guide } from './connector.js';
import { connectRedis, disconnectRedis } from './redis.js';
import type { RedisAddress } from './redis-target.js';

const ELSEWHERE = { host: '127.0.0.1', port: 1 };

let address: RedisAddress;
const accepted: Socket[] = [];
const server = createServer((socket) => accepted.push(socket.on('error', () => undefined)));
stopAtEnd(() => new Promise((resolve) => server.close(resolve)));

beforeEach(async () => {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
});
afterEach(() => {
  for (const socket of accepted.splice(0)) socket.destroy();
});

/** A guide whose answers a test gives, and a connection that it leads. */
function guided() {
  const questions: ((found: RedisAddress) => void)[] = [];
  const followers = new Set<Follower>();
  const guide: Guide = { followers, find: () => new Promise((resolve) => questions.push(resolve)) };
  const connection = new (connectorOf(guide, null, 100))({});
  return {
    followers,
    connection,
    connect: () => connection.connect(() => undefined) as Promise<Socket>,
    answer: (found: RedisAddress) => questions.shift()?.(found),
  };
}

const closed = (stream: Socket) => new Promise((resolve) => stream.once('close', resolve));

test('a connection that still looks for its address follows, and leaves that address when the guide leads elsewhere', async () => {
  const { followers, connection, connect, answer } = guided();
  const connecting = connect();
  expect(followers.size).toBe(1);
  // It has no address to leave yet.
  for (const follower of followers) follower.leave(ELSEWHERE);
  answer(address);
  const stream = await connecting;
  expect(stream.destroyed).toBe(false);
  for (const follower of followers) follower.leave(address);
  expect(stream.destroyed).toBe(false);
  for (const follower of followers) follower.leave(ELSEWHERE);
  expect(stream.destroyed).toBe(true);
  await closed(stream);
  expect(followers.size).toBe(0);
  connection.disconnect();
});

test('a connection that ends while it looks for its address no longer follows', async () => {
  const { followers, connection, connect } = guided();
  const connecting = connect();
  connection.disconnect();
  expect((await connecting).destroyed).toBe(true);
  expect(followers.size).toBe(0);
});

test('the end of an earlier attempt does not end the following of a later one', async () => {
  const { followers, connection, connect, answer } = guided();
  const first = connect();
  answer(address);
  const stream = await first;
  const second = connect();
  stream.destroy();
  await closed(stream);
  expect(followers.size).toBe(1);
  answer(address);
  (await second).destroy();
  await closed(await second);
  expect(followers.size).toBe(0);
  connection.disconnect();
});

test('a second error of a socket, such as an alert after a refused certificate, does not end the process', async () => {
  const connection = new (connectorOf(null, null, 100))(address);
  const stream = await connection.connect(() => undefined);
  const fail = (message: string) => () => stream.emit('error', new Error(message));
  for (const message of ['refused', 'alert']) expect(fail(message)).not.toThrow();
  connection.disconnect();
  await closed(stream);
});

test('a second error of a socket to a node of a cluster does not end the process either', async () => {
  const ignored = { onLost: () => undefined, onReady: () => undefined };
  const url = `redis+cluster://${address.host}:${address.port}`;
  const cluster = connectRedis(url, 'command', ignored) as Cluster;
  stopAtEnd(() => disconnectRedis(cluster));
  await eventually(() => cluster.nodes().length > 0);
  const [node] = cluster.nodes();
  node!.connect().catch(() => undefined);
  const stream = await eventually(() => (node as { stream?: Socket }).stream);
  for (const message of ['refused', 'alert', 'another']) {
    expect(() => stream.emit('error', new Error(message))).not.toThrow();
  }
});
