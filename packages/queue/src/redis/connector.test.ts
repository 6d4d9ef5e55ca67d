import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually, stopAtEnd } from '@callplane/testing';
import { Redis } from 'ioredis';
import { connectorOf } from './connector.js';
import type { RedisAddress } from './redis-target.js';

let address: RedisAddress;
const accepted: Socket[] = [];
const connections: Redis[] = [];

beforeAll(async () => {
  const server = createServer((socket) => accepted.push(socket.on('error', () => undefined)));
  stopAtEnd(() => new Promise((resolve) => server.close(resolve)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
});
afterEach(() => {
  for (const redis of connections.splice(0)) redis.disconnect();
  for (const socket of accepted.splice(0)) socket.destroy();
});

test('a second error of a socket, such as an alert after a refused certificate, does not end the process', async () => {
  const stream = await new (connectorOf(() => Promise.resolve(address), null))().connect();
  const fail = (message: string) => () => stream.emit('error', new Error(message));
  for (const message of ['refused', 'alert', 'another']) expect(fail(message)).not.toThrow();
  stream.destroy();
});

test('a connection whose address is unknown says why, and tries again', async () => {
  let attempts = 0;
  const find = () => Promise.reject(new Error(`WRONGPASS ${(attempts += 1)}`));
  const redis = new Redis({ Connector: connectorOf(find, null), retryStrategy: () => 1 });
  connections.push(redis);
  const errors: string[] = [];
  redis.on('error', ({ message }) => errors.push(message));
  await eventually(() => attempts > 2);
  expect(errors.slice(0, 2)).toEqual(['WRONGPASS 1', 'WRONGPASS 2']);
});
