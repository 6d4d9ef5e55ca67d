import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, test } from '@jest/globals';
import { rawExchange } from '@callplane/testing';
import { WebSocket } from 'ws';
import { startTestSignaling, type TestInstance, type TestSignaling } from '../signaling.testkit.js';
import { acceptUpgrades, createCallerAddress } from './door.js';

let kit: TestSignaling;
let gateway: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  gateway = await kit.start();
});

const exchange = (bytes: string) => rawExchange(gateway.url, bytes);
const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];
const upgrade = (path: string, ...headers: string[]) =>
  `GET ${path} HTTP/1.1\r\n${[...UPGRADE, ...headers].join('\r\n')}\r\n\r\n`;
const OFFER = 'Sec-WebSocket-Protocol: callplane.v1';

test.each<[string, () => string, number, string]>([
  ['an unknown path', () => upgrade('/v1/rooms', 'Host: a', OFFER), 404, 'ROUTE_NOT_FOUND'],
  [
    'an upgrade from a page of another origin',
    () => upgrade('/v1/signaling', 'Host: a', OFFER, 'Origin: https://evil.example.com'),
    403,
    'ORIGIN_NOT_ALLOWED',
  ],
  ['an upgrade without a sub-protocol', () => upgrade('/v1/signaling', 'Host: a'), 400, 'VALIDATION_FAILED'],
  ['an upgrade without Host', () => upgrade('/v1/signaling', OFFER), 400, 'VALIDATION_FAILED'],
  ['an upgrade with two Hosts', () => upgrade('/v1/signaling', 'Host: a', 'Host: b', OFFER), 400, 'VALIDATION_FAILED'],
  ['a request without Host', () => 'GET /livez HTTP/1.1\r\n\r\n', 400, 'VALIDATION_FAILED'],
  ['a request with two Hosts', () => 'GET /livez HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n', 400, 'VALIDATION_FAILED'],
  ['an unknown page', () => 'GET /livez/ HTTP/1.1\r\nHost: a\r\n\r\n', 404, 'ROUTE_NOT_FOUND'],
  ['bytes that are not HTTP', () => 'nonsense\r\n\r\n', 400, 'VALIDATION_FAILED'],
])('refuses %s with the common error body', async (_, bytes, status, code) => {
  const answer = await exchange(bytes());
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  const { error } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as { error: Record<string, string> };
  expect(error).toEqual({ code, message: expect.any(String), requestId: expect.stringMatching(/^req_/) });
  expect(answer).toContain(`x-request-id: ${error['requestId']}\r\n`);
});

test.each([
  ['drains', true, 'The gateway is shutting down. Connect again to reach another instance.'],
  ['is full', false, 'The gateway has reached its connection limit. Try again shortly.'],
])('names the reason for which a gateway that %s refuses an upgrade', async (_, isDraining, message) => {
  const server = createServer();
  const accept = () => {
    throw new Error('accepted');
  };
  acceptUpgrades(
    server,
    { count: 0, accept },
    {
      allowedOrigins: ['*'],
      connectionsMax: 0,
      isDraining: () => isDraining,
      callerAddress: () => '127.0.0.1',
    },
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const answer = await rawExchange(`http://127.0.0.1:${port}`, upgrade('/v1/signaling', 'Host: a', OFFER));
  server.close();
  expect(answer).toMatch(/^HTTP\/1\.1 503 /);
  expect(answer).toContain(`"message":"${message}"`);
});

test('accepts a page of its origins, and chooses its sub-protocol among the offered ones', async () => {
  const url = `${gateway.url.replace('http', 'ws')}/v1/signaling?x=1`;
  const socket = new WebSocket(url, ['other', 'callplane.v1'], { origin: 'https://app.example.com' });
  await once(socket, 'open');
  socket.terminate();
  expect(socket.protocol).toBe('callplane.v1');
});

test('answers health checks', async () => {
  for (const path of ['/livez', '/readyz']) expect((await fetch(`${gateway.url}${path}`)).status).toBe(200);
});

test('keeps a well-formed request id from the client', async () => {
  const answer = await exchange('GET /x HTTP/1.1\r\nHost: a\r\nx-request-id: mine-1\r\n\r\n');
  expect(answer).toContain('"requestId":"mine-1"');
});

const from = (remoteAddress: string | undefined, forwarded?: string) =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

test.each<[string[], string, string | undefined, string]>([
  // Without a matching trusted proxy, `X-Forwarded-For` is ignored.
  [[], '198.51.100.7', '203.0.113.9', '198.51.100.7'],
  [['10.0.0.0/8'], '198.51.100.7', '203.0.113.9', '198.51.100.7'],
  [['10.0.0.0/8'], '10.0.0.2', '203.0.113.9', '203.0.113.9'],
  [['10.0.0.0/8'], '10.0.0.2', undefined, '10.0.0.2'],
  // An entry that the caller put in front of the proxy's own entry is ignored.
  [['10.0.0.0/8'], '10.0.0.2', '127.0.0.1, 203.0.113.9', '203.0.113.9'],
  [['loopback'], '::1', '203.0.113.9', '203.0.113.9'],
  [['1'], '198.51.100.7', '192.0.2.1, 203.0.113.9', '203.0.113.9'],
  [['2'], '198.51.100.7', '192.0.2.1, 203.0.113.9', '192.0.2.1'],
])(
  'with the trusted proxies %p, a request from %s with X-Forwarded-For %p comes from %s',
  (trusted, remote, forwarded, expected) => {
    expect(createCallerAddress(trusted)(from(remote, forwarded))).toBe(expected);
  },
);

test('rejects a trusted proxy that is not an address, and finds no address for a closed socket', () => {
  expect(() => createCallerAddress(['nonsense'])).toThrow(TypeError);
  expect(createCallerAddress(['loopback'])(from(undefined))).toBeUndefined();
});
