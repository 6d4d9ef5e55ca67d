import { expect, test } from '@jest/globals';
import { ApiError, shownAnswer } from './api-error.js';

const failure = (status: number) => new ApiError(status, { code: 'X', message: 'x' });

test('an answer stays on the page during an outage, and goes once the API refuses the read', () => {
  expect(shownAnswer({ data: 'room', error: null })).toBe('room');
  for (const status of [0, 429, 503]) expect(shownAnswer({ data: 'room', error: failure(status) })).toBe('room');
  for (const status of [403, 404]) expect(shownAnswer({ data: 'room', error: failure(status) })).toBeUndefined();
});
