import { expect, test } from '@jest/globals';
import { contextRoutes } from '../context/context.routes.js';
import { unlimitedRequests } from './request-context.js';

const request = (method: string, path: string) => ({ method, baseUrl: '/v1', path });

test('only reads of a route with rateLimited: false are exempt from rate limits', () => {
  const isUnlimited = unlimitedRequests(contextRoutes({ console: null }));
  expect(['GET', 'HEAD', 'POST'].map((method) => isUnlimited(request(method, '/')))).toEqual([true, true, false]);
  expect(isUnlimited(request('GET', '/rooms'))).toBe(false);
});

test('a route with a parameter in its path cannot be exempt from rate limits', () => {
  const routes = contextRoutes({ console: null }).map((route) => ({ ...route, path: '/v1/rooms/{roomId}' }));
  expect(() => unlimitedRequests(routes)).toThrow('/v1/rooms/{roomId} cannot be compared as text');
});
