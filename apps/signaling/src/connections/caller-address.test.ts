import type { IncomingMessage } from 'node:http';
import { expect, test } from '@jest/globals';
import { createCallerAddress } from './door.js';

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
