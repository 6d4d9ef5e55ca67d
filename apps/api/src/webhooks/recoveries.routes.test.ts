import { beforeAll, describe, expect, test } from '@jest/globals';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { webhook } from './webhooks.testkit.js';

let api: TestApi;
let path: string;
let id: string;
beforeAll(async () => {
  api = await startTestApi();
  ({ path, id } = await webhook(api));
});
const recover = (body: object, at = path) => api.call('POST', `${at}/recoveries`, { body });

describe('POST …/recoveries', () => {
  test('accepts a window in any time zone, and a read returns it', async () => {
    const { status, body } = await recover({
      since: '2026-01-02T03:04:05+01:00',
      until: '2026-01-03T00:00:00.5Z',
      dryRun: true,
    });
    expect(status).toBe(202);
    expect(body).toEqual({
      id: expect.stringMatching(/^rcv_[0-9a-z]{26}$/),
      endpointId: id,
      since: '2026-01-02T02:04:05.000Z',
      until: '2026-01-03T00:00:00.500Z',
      dryRun: true,
      includePending: true,
      status: 'pending',
      matched: 0,
      replayed: 0,
      woken: 0,
      skipped: 0,
      createdAt: expect.any(String),
      completedAt: null,
    });
    expect((await api.call('GET', `${path}/recoveries/${body.id}`)).body).toEqual(body);
  });

  test('ends the window now if its end is missing or in the future', async () => {
    for (const until of [undefined, '2999-01-01T00:00:00Z']) {
      const { body } = await recover({ since: '2026-01-01T00:00:00Z', ...(until === undefined ? {} : { until }) });
      expect(body.until).toBe(body.createdAt);
      expect(body.dryRun).toBe(false);
      expect(body.includePending).toBe(true);
    }
  });

  test.each([
    [{ since: '2026-02-30T00:00:00Z' }, ['body.since']],
    [{ since: '2016-12-31T23:59:60Z' }, ['body.since']],
    [{ since: '0000-01-01T00:00:00Z' }, ['body.since']],
    [{ since: '2026-01-01T00:00:00Z', until: '9999-12-31T23:59:59-23:59' }, ['body.until']],
    [{ since: '2999-01-01T00:00:00Z' }, ['body.since']],
    [{ since: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' }, ['body.since']],
    [{ since: '2026-01-01T00:00:00Z', until: '2026-01-01T00:00:00Z' }, ['body.since']],
    [{ since: 'x', until: 'y', dryRun: 'no' }, ['body.dryRun', 'body.since', 'body.until']],
  ])('rejects %j and names %j', async (body, paths) => {
    const response = await recover(body);
    expect(response.status).toBe(400);
    const reported = new Set(response.body.error.details.map((d: { path: string }) => d.path));
    expect([...reported].sort()).toEqual(paths);
  });

  test('answers 429 while ten recoveries of the endpoint are pending, whichever requests come at once', async () => {
    const endpoint = await webhook(api);
    const window = { since: '2026-01-01T00:00:00Z' };
    const answers = await Promise.all(Array.from({ length: 25 }, () => recover(window, endpoint.path)));
    const count = (status: number) => answers.filter((answer) => answer.status === status).length;
    expect([count(202), count(429)]).toEqual([10, 15]);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.body.error.message).toContain('Cancel one');
    expect(refused.headers['retry-after']).toBe('10');
    expect((await recover(window)).status).toBe(202);
    const { id: cancelled } = answers.find(({ status }) => status === 202)!.body;
    expect((await api.call('DELETE', `${endpoint.path}/recoveries/${cancelled}`)).status).toBe(204);
    expect((await recover(window, endpoint.path)).status).toBe(202);
  });
});

describe('GET and DELETE …/recoveries/{recoveryId}', () => {
  test('cancel a recovery once, and change nothing when repeated', async () => {
    const at = `${path}/recoveries/${(await recover({ since: '2026-01-01T00:00:00Z' })).body.id}`;
    expect((await api.call('DELETE', at)).status).toBe(204);
    const cancelled = (await api.call('GET', at)).body;
    expect(cancelled).toMatchObject({ status: 'cancelled', completedAt: expect.any(String) });
    expect((await api.call('DELETE', at)).status).toBe(204);
    expect((await api.call('GET', at)).body).toEqual(cancelled);
  });

  test('leave a complete recovery complete', async () => {
    const { body } = await recover({ since: '2026-01-01T00:00:00Z' });
    await api.database.prisma.webhookRecovery.update({
      where: { id: body.id },
      data: { status: 'completed', completedAt: new Date(), matched: 3, replayed: 2, skipped: 1 },
    });
    expect((await api.call('DELETE', `${path}/recoveries/${body.id}`)).status).toBe(204);
    expect((await api.call('GET', `${path}/recoveries/${body.id}`)).body).toMatchObject({
      status: 'completed',
      matched: 3,
      replayed: 2,
      skipped: 1,
    });
  });

  test('answer 404 for an unknown recovery, a recovery of another endpoint, and an unknown endpoint', async () => {
    const { body } = await recover({ since: '2026-01-01T00:00:00Z' });
    const other = await webhook(api);
    for (const method of ['GET', 'DELETE']) {
      for (const [at, code] of [
        [`${path}/recoveries/rcv_0`, 'RECOVERY_NOT_FOUND'],
        [`${other.path}/recoveries/${body.id}`, 'RECOVERY_NOT_FOUND'],
        [`/v1/webhooks/whep_0/recoveries/${body.id}`, 'WEBHOOK_NOT_FOUND'],
      ] as const) {
        const response = await api.call(method, at);
        expect([response.status, response.body.error.code]).toEqual([404, code]);
      }
    }
  });
});

describe('GET …/recoveries', () => {
  test('lists the recoveries of the endpoint newest first, in pages', async () => {
    const endpoint = await webhook(api);
    const made: string[] = [];
    for (let n = 0; n < 3; n++) {
      made.unshift((await recover({ since: '2026-01-01T00:00:00Z', dryRun: true }, endpoint.path)).body.id);
    }
    const listed = await api.pages(`${endpoint.path}/recoveries?limit=2`);
    expect(listed.map(({ id }) => id)).toEqual(made);
    expect(listed[0]).toEqual((await api.call('GET', `${endpoint.path}/recoveries/${made[0]}`)).body);
    const unknown = await api.call('GET', '/v1/webhooks/whep_0/recoveries');
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'WEBHOOK_NOT_FOUND']);
  });
});
