import { beforeAll, describe, expect, test } from '@jest/globals';
import { startTestApi, type TestApi } from '../api.testkit.js';

const PATH = '/v1/webhooks/signature-contract';
let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

describe('GET /v1/webhooks/signature-contract', () => {
  test('returns every field of the signing and retry policy', async () => {
    const { status, body } = await api.call('GET', PATH);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      version: 'v1',
      algorithm: 'HMAC-SHA256',
      signatureHeader: 'x-service-signature',
      deliveryIdHeader: 'x-service-delivery-id',
      replayCountHeader: 'x-service-replay-count',
      secretVersionHeader: 'x-service-signing-key-version',
      toleranceSeconds: 300,
      attemptsPerRun: 8,
      maximumExplicitReplays: 100,
      concurrencyPerWorker: 4,
      leaseSeconds: 120,
      backoffSeconds: [5, 30, 120, 600, 1800, 3600, 21600],
      deliveryDeadlineSeconds: 10,
      dnsDeadlineSeconds: 5,
      maximumRunAgeDays: 7,
      terminalRetentionDays: 30,
    });
    const texts = [
      'signedContent',
      'signatureFormat',
      'secretEncoding',
      'deduplication',
      'replay',
      'backoffJitter',
      'retryPolicy',
      'retention',
      'replayInput',
      'replayDestination',
      'verification',
    ];
    for (const name of texts) expect(body[name]).toEqual(expect.stringMatching(/.{20}/));
    expect(Object.keys(body)).toHaveLength(27);
    expect(body.backoffJitter).toContain('20 percent');
  });
});
