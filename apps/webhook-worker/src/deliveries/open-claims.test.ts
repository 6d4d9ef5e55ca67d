import { expect, test } from '@jest/globals';
import { REQUEST_COUNT_MAX, type ClaimedDelivery, type DueRequest } from '@callplane/db';
import { mergeRequests, splitClaim } from './open-claims.js';

const ask = (endpointId: string, count: number, since: Date | null = null, isRetry = false): DueRequest => ({
  endpointId,
  isRetry,
  count,
  since,
});

test('requests of several workers for one endpoint and kind become one, from the earliest time of all', () => {
  const [early, late] = [new Date(1000), new Date(2000)];
  const requests = [ask('a', 3, late), ask('b', 1, late), ask('a', 2, early), ask('a', 4, late, true), ask('b', 1)];
  const { merged, rest } = mergeRequests(requests);
  expect(merged.map(({ request }) => request)).toEqual([
    ask('a', 5, early),
    ask('b', 2, null),
    ask('a', 4, late, true),
  ]);
  expect(merged[0]!.sharers).toEqual([requests[0], requests[2]]);
  expect(rest).toEqual([]);
});

test('requests beyond the maximum count of an endpoint wait for the next statement', () => {
  const requests = [ask('a', REQUEST_COUNT_MAX - 4), ask('a', 8), ask('a', 4)];
  const { merged, rest } = mergeRequests(requests);
  expect(merged.map(({ request }) => request.count)).toEqual([REQUEST_COUNT_MAX]);
  expect(rest).toEqual([requests[1]]);
});

test('claimed deliveries go to the requests in their order, to each at most its count and to none twice', () => {
  const claimed = ['1', '2', '3', '4'].map((id) => ({ id }) as ClaimedDelivery);
  const claim = { endpointId: 'a', isRetry: true, claimed, isGated: false, nextInMs: 700 };
  const parts = splitClaim(claim, [ask('a', 3), ask('a', 2), ask('a', 2)]);
  expect(parts.map((part) => part.claimed.map(({ id }) => id))).toEqual([['1', '2', '3'], ['4'], []]);
  expect(parts.map(({ nextInMs }) => nextInMs)).toEqual([700, 700, 700]);
});
