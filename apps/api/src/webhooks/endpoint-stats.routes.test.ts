import { beforeAll, describe, expect, test } from '@jest/globals';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { delivery, webhook } from './webhooks.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

describe('GET /v1/webhooks/{endpointId}/stats', () => {
  test('counts attempts by outcome and shows exact durations, for each interval and in total', async () => {
    const { id: endpointId, path } = await webhook(api);
    const { id: deliveryId } = await delivery(api, path);
    const attempts = [
      ['12:00:00.000', 'success', 10],
      ['12:00:59.999', 'response', 30],
      ['12:02:00.000', 'timeout', 10_000],
      ['12:02:01.000', 'success', 20],
      // Outside of the time.
      ['11:59:59.999', 'dns', 1],
      ['12:03:00.000', 'dns', 1],
    ] as const;
    for (const [at, [time, outcome, durationMs]] of attempts.entries()) {
      await api.database.prisma.webhookAttempt.create({
        data: {
          id: `att_${deliveryId.slice(4, -1)}${at}`,
          deliveryId,
          endpointId,
          replayCount: 0,
          attempt: at + 1,
          url: 'https://example.com',
          signingKeyVersion: 1,
          startedAt: new Date(`2026-11-01T${time}Z`),
          durationMs,
          outcome,
        },
      });
    }
    const query = 'from=2026-11-01T12:00:00Z&to=2026-11-01T12:03:00Z&interval=minute';
    const { status, body } = await api.call('GET', `${path}/stats?${query}`);
    expect(status).toBe(200);
    const none = { success: 0, dns: 0, connect: 0, tls: 0, timeout: 0, response: 0, blocked: 0 };
    expect(body).toEqual({
      from: '2026-11-01T12:00:00.000Z',
      to: '2026-11-01T12:03:00.000Z',
      interval: 'minute',
      total: { attempts: 4, outcomes: { ...none, success: 2, response: 1, timeout: 1 }, p50Ms: 20, p95Ms: 10_000 },
      intervals: [
        { attempts: 2, outcomes: { ...none, success: 1, response: 1 }, p50Ms: 10, p95Ms: 30 },
        { attempts: 0, outcomes: none, p50Ms: null, p95Ms: null },
        { attempts: 2, outcomes: { ...none, success: 1, timeout: 1 }, p50Ms: 20, p95Ms: 10_000 },
      ].map((figures, at) => ({ start: `2026-11-01T12:0${at}:00.000Z`, ...figures })),
    });
    const empty = await api.call('GET', `${(await webhook(api)).path}/stats`);
    expect(empty.body.intervals).toHaveLength(24);
    expect(empty.body.total).toEqual({ attempts: 0, outcomes: none, p50Ms: null, p95Ms: null });
  });

  test.each([
    ['from=2026-11-01T12:00:00Z&to=2026-11-01T12:00:00Z', 'query.to'],
    ['from=2026-11-01T12:00:00Z&to=2026-12-31T12:00:01Z', 'query.to'],
    ['from=2026-11-01T12:00:00Z&to=2026-11-02T12:00:01Z&interval=minute', 'query.to'],
    ['from=yesterday&to=2026-11-02T12:00:00Z', 'query.from'],
    ['from=2026-11-01T12:00:00Z&to=2026-11-02T12:00:00Z&interval=second', 'query.interval'],
    ['from=2999-01-01T00:00:00Z', 'query.to'],
  ])('refuses %s', async (query, path) => {
    const endpoint = await webhook(api);
    const { status, body } = await api.call('GET', `${endpoint.path}/stats?${query}`);
    expect([status, body.error.details[0].path]).toEqual([400, path]);
  });
});
