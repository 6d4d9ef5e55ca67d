import { describe, expect, test } from '@jest/globals';
import { diagnoseAttempt, diagnoseDelivery, DIAGNOSES } from './diagnosis.js';
import { DELIVERY_FAILURE_REASONS, type AttemptOutcome } from './vocabulary.js';

const answered = (statusCode: number) =>
  diagnoseAttempt({ outcome: 'response', errorCode: `HTTP_${statusCode}`, statusCode });
const unanswered = (outcome: AttemptOutcome, errorCode: string | null) =>
  diagnoseAttempt({ outcome, errorCode, statusCode: null });

describe('the diagnosis of an attempt', () => {
  test('names the status of an answer, and explains each class of them', () => {
    expect(answered(404)).toEqual({
      summary: 'HTTP 404: the receiver has no POST route at this path.',
      advice: DIAGNOSES.HTTP_404.advice,
    });
    for (const [status, row] of [
      [100, 'HTTP_OTHER'],
      [300, 'HTTP_OTHER'],
      [302, 'HTTP_3XX'],
      [304, 'HTTP_304'],
      [403, 'HTTP_401'],
      [418, 'HTTP_4XX'],
      [425, 'HTTP_RETRIED'],
      [503, 'HTTP_502'],
      [507, 'HTTP_500'],
    ] as const) {
      expect(answered(status)!.advice).toBe(DIAGNOSES[row].advice);
    }
  });

  test('explains codes of the network, and unknown ones by the stage of the attempt', () => {
    expect(unanswered('tls', 'SELF_SIGNED_CERT_IN_CHAIN')).toEqual(DIAGNOSES.CERT_UNTRUSTED);
    expect(unanswered('tls', 'CERT_NOT_YET_VALID')).toEqual(DIAGNOSES.CERT_NOT_YET_VALID);
    for (const [code, row] of [
      ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'TLS_CLIENT_CERTIFICATE'],
      ['ERR_SSL_WRONG_VERSION_NUMBER', 'TLS_NOT_SPOKEN'],
      ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', 'TLS_NAME_UNKNOWN'],
      ['ERR_SSL_TLSV13_ALERT_MISSING_EXTENSION', 'TLS_NAME_UNKNOWN'],
      ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'TLS_REFUSED'],
      ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', 'TLS_REFUSED'],
      ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'TLS_FAILED'],
    ] as const) {
      expect(unanswered('tls', code)).toEqual(DIAGNOSES[row]);
    }
    expect(unanswered('response', 'HPE_INVALID_CONSTANT')).toEqual(DIAGNOSES.RESPONSE_INVALID);
    for (const [outcome, row] of [
      ['blocked', 'URL_NOT_ALLOWED'],
      ['dns', 'DNS_FAILED'],
      ['connect', 'CONNECT_FAILED'],
      ['tls', 'TLS_FAILED'],
      ['timeout', 'RESPONSE_TIMEOUT'],
      ['response', 'RESPONSE_FAILED'],
    ] as const) {
      expect(unanswered(outcome, 'ESOMETHING')).toEqual(DIAGNOSES[row]);
      expect(unanswered(outcome, 'toString')).toEqual(DIAGNOSES[row]);
      expect(unanswered(outcome, null)).toEqual(DIAGNOSES[row]);
    }
    expect(unanswered('success', null)).toBeNull();
  });
});

describe('the diagnosis of a delivery', () => {
  const refused = { outcome: 'connect', errorCode: 'ECONNREFUSED', statusCode: null } as const;

  test('explains every reason with and without a last attempt, in sentences', () => {
    expect(diagnoseDelivery(null, 1, refused)).toBeNull();
    for (const reason of DELIVERY_FAILURE_REASONS) {
      for (const last of [refused, null]) {
        const { summary, advice } = diagnoseDelivery(reason, 8, last)!;
        for (const text of [summary, advice]) expect(text).toMatch(/^[A-Z][^\n]*[^.]\.$/);
      }
    }
  });

  test('takes the cause from the last attempt, and advises a replay instead of the retries that ended', () => {
    const exhausted = { outcome: 'response', errorCode: 'HTTP_503', statusCode: 503 } as const;
    expect(diagnoseDelivery('attempts_exhausted', 8, exhausted)).toEqual({
      summary: `All 8 attempts failed, the last one because of this: ${answered(503)!.summary}`,
      advice: 'Check that the receiver runs and is healthy. Then replay the delivery.',
    });
    const rejected = { outcome: 'response', errorCode: 'HTTP_404', statusCode: 404 } as const;
    expect(diagnoseDelivery('attempts_exhausted', 8, rejected)?.advice).toBe(
      'Correct the path of the URL, or deploy the route. Then replay the delivery.',
    );
    const gone = { outcome: 'response', errorCode: 'HTTP_410', statusCode: 410 } as const;
    expect(diagnoseDelivery('rejected', 1, gone)).toEqual(answered(410));
  });
});
