import { describe, expect, test } from '@jest/globals';
import { ApiError } from './api-error.js';
import { AttemptKey } from './attempt-key.js';

const refused = (status: number, code: string) => new ApiError(status, { code, message: code });

describe('the idempotency key of a change', () => {
  test('stays for the same input while the outcome of an attempt is unknown', () => {
    const attempts = new AttemptKey();
    const key = attempts.keyFor({ name: 'Surgery' });
    for (const failure of [
      refused(0, 'NO_ANSWER'),
      refused(503, 'UNAVAILABLE'),
      refused(409, 'IDEMPOTENCY_CONFLICT'),
    ]) {
      attempts.failed(failure);
      expect(attempts.keyFor({ name: 'Surgery' })).toBe(key);
    }
    expect(key).toMatch(/^[0-9a-f]{32}$/);
  });

  test('is another one for another input, after a success and after a refusal', () => {
    const attempts = new AttemptKey();
    const keys = [attempts.keyFor({ name: 'Surgery' }), attempts.keyFor({ name: 'Ward' })];
    attempts.succeeded();
    keys.push(attempts.keyFor({ name: 'Ward' }));
    attempts.failed(refused(400, 'VALIDATION_FAILED'));
    keys.push(attempts.keyFor({ name: 'Ward' }));
    expect(new Set(keys).size).toBe(4);
  });
});
