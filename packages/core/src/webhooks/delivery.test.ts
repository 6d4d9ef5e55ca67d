import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ATTEMPTS_PER_RUN, BACKOFF_SECONDS } from '../operations/schedule.js';
import { afterAttempt, classifyStatus, isProof, RUN_AGE_MS_MAX, SLOW_ATTEMPT_MS } from './delivery.js';
import { ATTEMPT_OUTCOMES, type AttemptOutcome } from './vocabulary.js';

const noJitter = () => 0;
const mostJitter = () => 1 - Number.EPSILON;
const attempt = (changes: Partial<Parameters<typeof afterAttempt>[0]>) =>
  afterAttempt({ runAttempt: 1, outcome: 'connect', statusCode: null, runAgeMs: 0, random: noJitter, ...changes });
const retried = (outcome: AttemptOutcome, statusCode: number | null = null) =>
  attempt({ outcome, statusCode }).status === 'pending';

describe('statuses', () => {
  test('2xx succeeds; 408, 425, 429 and 5xx are retried; every other is final', () => {
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

describe('after an attempt', () => {
  test('a success ends the run, however old it is and whichever attempt it was', () => {
    for (let runAttempt = 1; runAttempt <= ATTEMPTS_PER_RUN; runAttempt++) {
      expect(attempt({ runAttempt, outcome: 'success', statusCode: 204, runAgeMs: RUN_AGE_MS_MAX * 2 })).toEqual({
        status: 'succeeded',
      });
    }
  });

  test('failures of name, connection, certificate and time are retried, and so is an answer that is none', () => {
    for (const outcome of ['dns', 'connect', 'tls', 'timeout'] as const) expect(retried(outcome)).toBe(true);
    expect(retried('response', null)).toBe(true);
    // The head arrived, the rest did not.
    expect(retried('response', 200)).toBe(true);
    expect(retried('timeout', 200)).toBe(true);
    // Slow in answering what would have been final.
    expect(retried('timeout', 404)).toBe(true);
  });

  test('an unsafe destination is final', () => {
    expect(attempt({ outcome: 'blocked' })).toEqual({ status: 'failed', reason: 'unsafe_destination' });
    expect(attempt({ outcome: 'blocked', runAttempt: 8 })).toEqual({ status: 'failed', reason: 'unsafe_destination' });
  });

  test('a whole run by the clock: eight attempts, each after the wait that the contract says', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 8 }),
        (jitter) => {
          let clockMs = 0;
          let runAttempt = 1;
          for (;;) {
            const next = attempt({ runAttempt, runAgeMs: clockMs, random: () => jitter[runAttempt - 1]! });
            if (next.status !== 'pending') {
              expect(next).toEqual({ status: 'failed', reason: 'attempts_exhausted' });
              break;
            }
            const waitMs = BACKOFF_SECONDS[runAttempt - 1]! * 1000;
            expect(next.delayMs).toBeGreaterThanOrEqual(waitMs);
            expect(next.delayMs).toBeLessThanOrEqual(waitMs * 1.2);
            clockMs += next.delayMs + 10_000;
            runAttempt++;
          }
          expect(runAttempt).toBe(ATTEMPTS_PER_RUN);
        },
      ),
    );
  });

  test('no attempt comes later than seven days after the run began', () => {
    const sevenDaysMs = 7 * 24 * 3600 * 1000;
    for (const [index, seconds] of BACKOFF_SECONDS.entries()) {
      const runAttempt = index + 1;
      const latestMs = sevenDaysMs - seconds * 1000;
      const expired = { status: 'failed', reason: 'run_expired' };
      expect(attempt({ runAttempt, runAgeMs: latestMs })).toEqual({ status: 'pending', delayMs: seconds * 1000 });
      expect(attempt({ runAttempt, runAgeMs: latestMs + 1 })).toEqual(expired);
      // The jitter counts.
      expect(attempt({ runAttempt, runAgeMs: latestMs, random: mostJitter })).toEqual(expired);
      expect(attempt({ runAttempt, runAgeMs: sevenDaysMs - seconds * 1200, random: mostJitter }).status).toBe(
        'pending',
      );
    }
    const last = { runAttempt: ATTEMPTS_PER_RUN, runAgeMs: sevenDaysMs * 2 };
    expect(attempt(last)).toEqual({ status: 'failed', reason: 'attempts_exhausted' });
    expect(attempt({ ...last, outcome: 'response', statusCode: 410 })).toEqual({
      status: 'failed',
      reason: 'rejected',
    });
  });

  test('whatever comes, at most eight attempts are made and none after the seventh day', () => {
    fc.assert(
      fc.property(
        fc.record({
          runAttempt: fc.integer({ min: 1, max: 12 }),
          outcome: fc.constantFrom(...ATTEMPT_OUTCOMES),
          statusCode: fc.option(fc.integer({ min: 100, max: 999 })),
          runAgeMs: fc.integer({ min: 0, max: RUN_AGE_MS_MAX * 2 }),
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

describe('proof of an endpoint', () => {
  test('is a success within two seconds and nothing else', () => {
    expect(isProof('success', 204, 0)).toBe(true);
    expect(isProof('success', 200, SLOW_ATTEMPT_MS - 1)).toBe(true);
    expect(isProof('success', 200, SLOW_ATTEMPT_MS)).toBe(false);
    for (const outcome of ATTEMPT_OUTCOMES.filter((each) => each !== 'success')) {
      expect(isProof(outcome, 200, 1)).toBe(false);
      expect(isProof(outcome, null, 1)).toBe(false);
    }
  });
});
