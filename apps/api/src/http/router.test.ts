import { describe, expect, test } from '@jest/globals';
import { contextRoutes } from '../context/context.routes.js';
import { unlimitedRequests } from './request-context.js';
import { parsePrefer } from './router.js';

describe('Prefer', () => {
  test.each([
    [undefined, null, null],
    ['', null, null],
    ['return=minimal', null, null],
    ['respond-async', 0, 'respond-async'],
    ['wait=0', 0, 'wait=0'],
    ['wait=7', 7000, 'wait=7'],
    ['Wait = "7"; foo, respond-async', 7000, 'wait=7'],
    ['wait=3600', 10_000, 'wait=10'],
    ['wait=-1', null, null],
    ['wait=1.5', null, null],
    ['wait=soon, respond-async', 0, 'respond-async'],
  ])('of %j results in a wait of %j ms', (header, waitMs, applied) => {
    expect(parsePrefer(header)).toEqual({ waitMs, applied });
  });
});

const request = (method: string, path: string) => ({ method, path: `/v1${path}` });

test('only reads of a route with rateLimited: false are exempt from rate limits', () => {
  const isUnlimited = unlimitedRequests(contextRoutes({ console: null }));
  expect(['GET', 'HEAD', 'POST'].map((method) => isUnlimited(request(method, '/')))).toEqual([true, true, false]);
  expect(isUnlimited(request('GET', ''))).toBe(true);
  expect(isUnlimited(request('GET', '/rooms'))).toBe(false);
});

test('a route with a parameter in its path cannot be exempt from rate limits', () => {
  const routes = contextRoutes({ console: null }).map((route) => ({ ...route, path: '/v1/rooms/{roomId}' }));
  expect(() => unlimitedRequests(routes)).toThrow('/v1/rooms/{roomId} cannot be compared as text');
});
