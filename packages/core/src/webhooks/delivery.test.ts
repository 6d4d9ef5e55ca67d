import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ATTEMPTS_PER_RUN } from '../operations/operation.js';
import { afterAttempt, classifyStatus, RUN_AGE_MS_MAX } from './delivery.js';
import { ATTEMPT_OUTCOMES, type AttemptOutcome } from './vocabulary.js';

const noJitter = () => 0;
const attempt = (changes: Partial<Parameters<typeof afterAttempt>[0]>) =>
  afterAttempt({
    runAttempt: 1,
    outcome: 'connect',
    statusCode: null,
    runAgeMs: 0,
    retryRejected: false,
    random: noJitter,
    ...changes,
  });
const retried = (outcome: AttemptOutcome, statusCode: number | null = null) =>
  attempt({ outcome, statusCode }).status === 'pending';

describe('classifyStatus', () => {
  test('accepts 2xx, retries 408, 425, 429 and 5xx, and rejects every other status', () => {
    for (let status = 100; status <= 999; status++) {
      const expected =
        status >= 200 && status < 300
          ? 'success'
          : [408, 425, 429].includes(status) || (status >= 500 && status < 600)
            ? 'retry'
            : 'rejected';
      expect([status, classifyStatus(status)]).toEqual([status, expected]);
      if (expected !== 'success') {
        expect([status, attempt({ outcome: 'response', statusCode: status })]).toEqual([
          status,
          expected === 'retry' ? { status: 'pending', delayMs: 5000 } : { status: 'failed', reason: 'rejected' },
        ]);
      }
    }
  });
});

describe('a delivery after an attempt', () => {
  test('is retried after failures of DNS, connection, TLS and time, and after a response that is not HTTP', () => {
    for (const outcome of ['dns', 'connect', 'tls', 'timeout'] as const) expect(retried(outcome)).toBe(true);
    expect(retried('response', null)).toBe(true);
  });

  test('is retried after any rejection but 410 if its endpoint retries rejected ones, with the same schedule', () => {
    for (let statusCode = 300; statusCode <= 999; statusCode++) {
      for (let runAttempt = 1; runAttempt <= ATTEMPTS_PER_RUN; runAttempt++) {
        const answered = { runAttempt, outcome: 'response', retryRejected: true } as const;
        const expected =
          statusCode === 410 ? { status: 'failed', reason: 'rejected' } : attempt({ ...answered, statusCode: 503 });
        expect([statusCode, attempt({ ...answered, statusCode })]).toEqual([statusCode, expected]);
      }
    }
    expect(attempt({ outcome: 'blocked', retryRejected: true })).toEqual({
      status: 'failed',
      reason: 'unsafe_destination',
    });
  });

  test('fails at once at an unsafe destination', () => {
    expect(attempt({ outcome: 'blocked' })).toEqual({ status: 'failed', reason: 'unsafe_destination' });
    expect(attempt({ outcome: 'blocked', runAttempt: 8 })).toEqual({ status: 'failed', reason: 'unsafe_destination' });
  });

  test('gets at most eight attempts and none after the seventh day, for any input', () => {
    fc.assert(
      fc.property(
        fc.record({
          runAttempt: fc.integer({ min: 1, max: 12 }),
          outcome: fc.constantFrom(...ATTEMPT_OUTCOMES),
          statusCode: fc.option(fc.integer({ min: 100, max: 999 })),
          runAgeMs: fc.integer({ min: 0, max: RUN_AGE_MS_MAX * 2 }),
          retryRejected: fc.boolean(),
        }),
        (input) => {
          const next = attempt(input);
          if (next.status !== 'pending') return;
          expect(input.runAttempt).toBeLessThan(ATTEMPTS_PER_RUN);
          expect(input.runAgeMs + next.delayMs).toBeLessThanOrEqual(RUN_AGE_MS_MAX);
        },
      ),
    );
  });
});
