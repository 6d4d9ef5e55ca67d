import { describe, expect, test } from '@jest/globals';
import { attemptPhases, type TimedAttempt } from './attempt-phases.js';

const NOTHING = {
  outcome: 'success',
  errorCode: null,
  statusCode: 200,
  durationMs: 100,
  dnsMs: null,
  connectMs: null,
  tlsMs: null,
  firstByteMs: null,
  earlierAddresses: [],
} satisfies TimedAttempt;
/** Phases as `name start+duration`, with an exclamation mark for the one that failed. */
const phases = (attempt: Partial<TimedAttempt>) =>
  attemptPhases({ ...NOTHING, ...attempt }).map(
    ({ phase, startMs, durationMs, failed }) => `${phase} ${startMs}+${durationMs}${failed ? '!' : ''}`,
  );

describe('the phases of an attempt', () => {
  test('follow one another and add up to its duration', () => {
    expect(phases({ dnsMs: 5, connectMs: 10, tlsMs: 20, firstByteMs: 30 })).toEqual([
      'dns 0+5',
      'connect 5+10',
      'tls 15+20',
      'first_byte 35+30',
      'body 65+35',
    ]);
  });

  test.each([
    ['dns', 'ENOTFOUND', { dnsMs: 99 }, ['dns 0+100!']],
    ['connect', 'ECONNREFUSED', { dnsMs: 40 }, ['dns 0+40', 'connect 40+60!']],
    ['tls', 'CERT_HAS_EXPIRED', { connectMs: 40 }, ['connect 0+40', 'tls 40+60!']],
    ['timeout', 'CONNECT_TIMEOUT', {}, ['connect 0+100!']],
    ['timeout', 'TLS_TIMEOUT', { connectMs: 1 }, ['connect 0+1', 'tls 1+99!']],
    ['timeout', 'RESPONSE_TIMEOUT', { connectMs: 1 }, ['connect 0+1', 'first_byte 1+99!']],
    ['response', 'ECONNRESET', { connectMs: 1 }, ['connect 0+1', 'first_byte 1+99!']],
    ['blocked', 'ADDRESS_NOT_PUBLIC', { dnsMs: 3 }, ['dns 0+3']],
  ] as const)('end with the failed one after %s (%s)', (outcome, errorCode, times, expected) => {
    expect(phases({ outcome, errorCode, statusCode: null, ...times })).toEqual(expected);
  });
});
