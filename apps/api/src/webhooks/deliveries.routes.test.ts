import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { eraseEventBody, type AfterAttempt } from '@callplane/core';
import {
  claimDeliveries,
  endDeliveriesOfDeleted,
  settleDeliveries,
  type ClaimedDelivery,
  type EndedAttempt,
} from '@callplane/db';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { attempt, delivery, finish, lease, webhook } from './webhooks.testkit.js';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
let api: TestApi;
let path: string;
beforeAll(async () => {
  api = await startTestApi();
  ({ path } = await webhook(api));
});
const row = (id: string) => api.database.prisma.webhookDelivery.findUniqueOrThrow({ where: { id } });
const ended = (claim: ClaimedDelivery, after: AfterAttempt): EndedAttempt => {
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null };
  const response = { errorCode: null, address: null, responseBody: null, responseTruncated: false, exchange: null };
  const outcome = after.status === 'succeeded' ? 'success' : 'response';
  const statusCode = { succeeded: 200, pending: 503, failed: 410 }[after.status];
  const attempt = { durationMs: 5, outcome, statusCode, timings, ...response } as const;
  return { claim, attempt, after, slotMs: 64 };
};
const replay = (at: string, expectedReplayCount: number) =>
  api.call('POST', `${at}/replay`, { body: { expectedReplayCount } });

describe('GET …/deliveries', () => {
  test('lists deliveries newest first, in pages, filtered by status and event type', async () => {
    const endpoint = await webhook(api);
    const made: string[] = [];
    for (let n = 0; n < 3; n++) made.unshift((await delivery(api, endpoint.path)).id);
    await finish(api, made[1]!, 'rejected');
    const list = async (query: string) => (await api.call('GET', `${endpoint.path}/deliveries${query}`)).body;
    const ids = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id);
    const first = await list('?limit=2');
    expect(ids(first)).toEqual(made.slice(0, 2));
    expect(ids({ data: await api.pages(`${endpoint.path}/deliveries?limit=2`) })).toEqual(made);
    expect(ids(await list('?status=failed'))).toEqual([made[1]]);
    expect(ids(await list('?failureReason=rejected&limit=1'))).toEqual([made[1]]);
    expect(ids(await list('?status=pending&eventType=webhook.test'))).toEqual([made[0], made[2]]);
    expect(await list('?eventType=room.created')).toEqual({ data: [], nextCursor: null });
    expect(first.data[0]).not.toHaveProperty('event');
    const { createdAt } = first.data[1] as { createdAt: string };
    expect(ids(await list(`?since=${createdAt}&until=${createdAt}`))).toContain(made[1]);
    expect(ids(await list('?until=2026-01-01T00:00:00Z'))).toEqual([]);
  });

  test('lists the deliveries of all endpoints, with the same filters', async () => {
    const tenant = await api.newTenant();
    const { key } = tenant;
    const endpoints = [await webhook(api, {}, key), await webhook(api, { events: ['room.ended'] }, key)];
    const made: string[] = [];
    for (const { path: at } of [...endpoints, ...endpoints]) {
      made.unshift((await api.call('POST', `${at}/test`, { key })).body.id);
    }
    await finish(api, made[3]!);
    const list = async (query: string) => (await api.call('GET', `/v1/deliveries${query}`, { key })).body;
    const ids = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id);
    const first = await list('?limit=3');
    expect(ids(first)).toEqual(made.slice(0, 3));
    expect(await list(`?limit=3&cursor=${first.nextCursor}`)).toMatchObject({
      data: [{ id: made[3] }],
      nextCursor: null,
    });
    expect(ids(await list(`?endpointId=${endpoints[1]!.id}`))).toEqual([made[0], made[2]]);
    expect(ids(await list('?status=failed&eventType=webhook.test'))).toEqual([made[3]]);
    expect(ids(await list('?failureReason=attempts_exhausted'))).toEqual([made[3]]);
    expect(ids(await list('?failureReason=rejected'))).toEqual([]);
    expect(ids(await list(`?since=2026-01-01T00:00:00Z&status=pending&limit=2`))).toEqual(made.slice(0, 2));
    const unknown = await api.call('GET', '/v1/deliveries?endpointId=whep_0', { key });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'WEBHOOK_NOT_FOUND']);
    // The deliveries of a removed endpoint stay in the list.
    expect((await api.call('DELETE', endpoints[1]!.path, { key })).status).toBe(204);
    expect(ids(await list('?limit=1'))).toEqual([made[0]]);
  });

  test('lists the deliveries of one room, with the status of the latest attempt', async () => {
    const tenant = await api.newTenant();
    const { key } = tenant;
    const endpoints = [await webhook(api, {}, key), await webhook(api, {}, key)];
    const newRoom = async () =>
      (await api.call('POST', '/v1/rooms', { key, body: { name: 'Daily' } })).body.id as string;
    const [roomId] = [await newRoom(), await newRoom()];
    const list = async (query: string) => (await api.call('GET', `/v1/deliveries?${query}`, { key })).body;
    const ofRoom = await list(`roomId=${roomId}`);
    expect(ofRoom.data).toHaveLength(2);
    expect(ofRoom.data[0]).toMatchObject({ roomId, lastStatusCode: null, lastErrorCode: null });
    const [first] = ofRoom.data as { id: string; endpointId: string }[];
    await attempt(api, first!.id, 1, 'dns');
    await attempt(api, first!.id, 2);
    const path = `/v1/webhooks/${first!.endpointId}/deliveries`;
    for (const answer of [
      (await api.call('GET', `${path}?roomId=${roomId}`, { key })).body,
      await list(`roomId=${roomId}&endpointId=${first!.endpointId}`),
    ]) {
      expect(answer.data).toMatchObject([{ id: first!.id, lastStatusCode: 503, lastErrorCode: null }]);
    }
    const page = await list(`roomId=${roomId}&limit=1`);
    expect((await list(`roomId=${roomId}&limit=1&cursor=${page.nextCursor}`)).data).toMatchObject([ofRoom.data[1]]);
    expect(endpoints.map(({ id }) => id).sort()).toEqual(
      ofRoom.data.map((row: typeof first) => row!.endpointId).sort(),
    );
    expect((await list('roomId=room_0')).data).toEqual([]);
  });
});

describe('GET …/deliveries/{deliveryId}', () => {
  test('shows why a delivery failed, and its event as sent', async () => {
    const made = await delivery(api, path);
    await attempt(api, made.id, 1, 'dns');
    const last = await attempt(api, made.id, 2);
    await finish(api, made.id);
    const { status, body } = await api.call('GET', made.path);
    expect(status).toBe(200);
    const stored = await api.database.prisma.event.findUniqueOrThrow({ where: { id: body.eventId } });
    expect(body.event).toEqual(JSON.parse(stored.body));
    expect(body.event).toMatchObject({ id: body.eventId, type: 'webhook.test', apiVersion: 'v1', sequence: null });
    expect(body).toMatchObject({
      status: 'failed',
      failureReason: 'attempts_exhausted',
      url: 'https://pinned.example.com/',
      attempts: 8,
      nextAttemptAt: null,
      completedAt: expect.stringMatching(TIMESTAMP),
      lastAttempt: {
        id: last,
        deliveryId: made.id,
        replayCount: 0,
        attempt: 2,
        url: 'https://pinned.example.com/',
        signingKeyVersion: 1,
        startedAt: expect.stringMatching(TIMESTAMP),
        durationMs: 12,
        outcome: 'response',
        errorCode: null,
        statusCode: 503,
        address: '93.184.216.34',
        timings: { dnsMs: 1, connectMs: 2, tlsMs: 3, firstByteMs: 4 },
        responseBody: 'maintenance',
        responseTruncated: false,
        responseHeaders: { server: 'nginx' },
        requestHeaders: {
          'x-service-signature': 't=1795000000,v1=0123abcd…',
          'x-service-delivery-id': made.id,
          'x-service-signing-key-version': '1',
        },
        earlierAddresses: [],
        phases: [
          { phase: 'dns', startMs: 0, durationMs: 1, failed: false },
          { phase: 'connect', startMs: 1, durationMs: 2, failed: false },
          { phase: 'tls', startMs: 3, durationMs: 3, failed: false },
          { phase: 'first_byte', startMs: 6, durationMs: 4, failed: false },
          { phase: 'body', startMs: 10, durationMs: 2, failed: false },
        ],
        diagnosis: {
          summary: expect.stringContaining('HTTP 503: '),
          advice: expect.stringContaining('Callplane retries'),
        },
      },
      diagnosis: {
        summary: expect.stringContaining('All 8 attempts failed'),
        advice: expect.stringContaining('replay'),
      },
    });
    // The signature covers these bytes.
    expect(body.body).toBe(stored.body);
    const attempts = await api.pages(`${made.path}/attempts?limit=1`);
    expect(attempts.map(({ attempt: number }) => number)).toEqual([2, 1]);
    expect(attempts[0]).toEqual(body.lastAttempt);
  });

  test('shows the current URL of the endpoint before the first attempt', async () => {
    const endpoint = await webhook(api);
    const made = await delivery(api, endpoint.path);
    await api.call('PATCH', endpoint.path, { body: { url: 'https://example.org/new' } });
    await api.call('POST', `${endpoint.path}/rotate-secret`);
    const { body } = await api.call('GET', made.path);
    expect(body).toMatchObject({ url: 'https://example.org/new', signingKeyVersion: 2, lastAttempt: null });
  });

  test('shows no next attempt while the endpoint is disabled', async () => {
    const endpoint = await webhook(api);
    const made = await delivery(api, endpoint.path);
    const shown = async () => [
      (await api.call('GET', made.path)).body.nextAttemptAt,
      (await api.call('GET', `${endpoint.path}/deliveries`)).body.data[0].nextAttemptAt,
    ];
    const due = expect.stringMatching(TIMESTAMP);
    expect(await shown()).toEqual([due, due]);
    await api.call('PATCH', endpoint.path, { body: { enabled: false } });
    expect(await shown()).toEqual([null, null]);
    await api.call('PATCH', endpoint.path, { body: { enabled: true } });
    expect(await shown()).toEqual([due, due]);
  });

  test('answers 404 for a delivery of another endpoint', async () => {
    const made = await delivery(api, path);
    const other = await webhook(api);
    for (const at of ['', '/attempts']) {
      const response = await api.call('GET', `${other.path}/deliveries/${made.id}${at}`);
      expect([response.status, response.body.error.code]).toEqual([404, 'DELIVERY_NOT_FOUND']);
      const nowhere = await api.call('GET', `/v1/webhooks/whep_0/deliveries/${made.id}${at}`);
      expect([nowhere.status, nowhere.body.error.code]).toEqual([404, 'WEBHOOK_NOT_FOUND']);
    }
    expect((await replay(`${other.path}/deliveries/${made.id}`, 0)).body.error.code).toBe('DELIVERY_NOT_FOUND');
  });
});

describe('POST …/replay', () => {
  test('starts a new run with the current URL and secret', async () => {
    const endpoint = await webhook(api);
    const made = await delivery(api, endpoint.path);
    await finish(api, made.id);
    await api.database.prisma.webhookDelivery.update({
      where: { id: made.id },
      data: { runStartedAt: new Date(0), dueAt: new Date(0) },
    });
    await api.call('PATCH', endpoint.path, { body: { url: 'https://example.org/' } });
    await api.call('POST', `${endpoint.path}/rotate-secret`);
    const before = Date.now();
    const { status, body } = await replay(made.path, 0);
    expect(status).toBe(202);
    expect(body).toMatchObject({
      id: made.id,
      status: 'pending',
      failureReason: null,
      completedAt: null,
      replayCount: 1,
      attempts: 0,
      url: 'https://example.org/',
      signingKeyVersion: 2,
      nextAttemptAt: expect.stringMatching(TIMESTAMP),
    });
    const stored = await row(made.id);
    expect(stored).toMatchObject({ url: null, secretVersion: null });
    for (const time of [stored.runStartedAt, stored.dueAt])
      expect(Math.abs(time.getTime() - before)).toBeLessThan(60_000);
    await finish(api, made.id, null);
    expect((await replay(made.path, 1)).body.replayCount).toBe(2);
  });

  test('answers with the first of several conflicts', async () => {
    const endpoint = await webhook(api);
    const made = await delivery(api, endpoint.path);
    const conflict = async (count: number) => {
      const { status, body } = await replay(made.path, count);
      return [status, body.error.code];
    };
    const set = (data: object) => api.database.prisma.webhookDelivery.update({ where: { id: made.id }, data });
    await set({ replayCount: 100 });
    await api.call('PATCH', endpoint.path, { body: { enabled: false } });
    const mismatch = await replay(made.path, 7);
    expect([mismatch.status, mismatch.body.error.code]).toEqual([409, 'REPLAY_COUNT_MISMATCH']);
    expect(mismatch.body.error.details).toEqual([
      { path: 'body.expectedReplayCount', message: 'the replay count is 100' },
    ]);
    expect(await conflict(100)).toEqual([409, 'DELIVERY_NOT_TERMINAL']);
    await lease(api, made.id);
    expect(await conflict(100)).toEqual([409, 'DELIVERY_NOT_TERMINAL']);
    await finish(api, made.id);
    expect(await conflict(100)).toEqual([409, 'REPLAY_LIMIT_REACHED']);
    await set({ replayCount: 99 });
    expect(await conflict(99)).toEqual([409, 'WEBHOOK_DISABLED']);
    await api.call('PATCH', endpoint.path, { body: { enabled: true } });
    expect((await replay(made.path, 99)).status).toBe(202);
    await finish(api, made.id);
    await api.call('DELETE', endpoint.path);
    expect(await conflict(0)).toEqual([404, 'WEBHOOK_NOT_FOUND']);
  });

  test('accepts one of several concurrent replays', async () => {
    const made = await delivery(api, path);
    await finish(api, made.id);
    const answers = await Promise.all(Array.from({ length: 8 }, () => replay(made.path, 0)));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
    for (const { status, body } of answers.filter((answer) => answer.status !== 202))
      expect([status, body.error.code]).toEqual([409, 'REPLAY_COUNT_MISMATCH']);
    expect((await row(made.id)).replayCount).toBe(1);
  });
});

describe('POST …/retry', () => {
  const retry = async (at: string) => {
    const { status, body } = await api.call('POST', `${at}/retry`);
    return { status, body, code: body.error?.code };
  };
  const set = (id: string, data: object) => api.database.prisma.webhookDelivery.update({ where: { id }, data });
  const inAnHour = () => new Date(Date.now() + 3_600_000);
  const claimOf = async (endpointId: string) => {
    const request = {
      endpointId,
      lane: 'slow' as const,
      token: randomUUID(),
      leaseMs: 60_000,
      deliveriesMax: 1,
      afterRoomId: '',
    };
    return (await claimDeliveries(api.database, request)).claimed;
  };

  test('brings the next attempt forward to now, and leaves the run as it is', async () => {
    const made = await delivery(api, path);
    const run = { runAttempts: 4, replayCount: 2, url: 'https://pinned.example.com/', secretVersion: 1 };
    await set(made.id, { ...run, dueAt: inAnHour() });
    const before = await row(made.id);
    const { status, body } = await retry(made.path);
    expect(status).toBe(202);
    expect(body).toMatchObject({ id: made.id, status: 'pending', replayCount: 2, attempts: 4, url: run.url });
    expect(Date.parse(body.nextAttemptAt)).toBeLessThan(Date.now() + 60_000);
    const { dueAt } = await row(made.id);
    expect(await row(made.id)).toEqual({ ...before, dueAt });
    // Repeated: the attempt is due already, and keeps its place before younger ones.
    expect((await retry(made.path)).body).toEqual(body);
  });

  test('answers with the first of several conflicts', async () => {
    const endpoint = await webhook(api);
    const made = await delivery(api, endpoint.path);
    await api.call('PATCH', endpoint.path, { body: { enabled: false } });
    expect(await retry(made.path)).toMatchObject({ status: 409, code: 'WEBHOOK_DISABLED' });
    await lease(api, made.id);
    expect(await retry(made.path)).toMatchObject({ status: 409, code: 'DELIVERY_IN_FLIGHT' });
    for (const reason of ['rejected', null] as const) {
      await finish(api, made.id, reason);
      expect(await retry(made.path)).toMatchObject({ status: 409, code: 'DELIVERY_NOT_PENDING' });
    }
    const other = await webhook(api);
    expect(await retry(`${other.path}/deliveries/${made.id}`)).toMatchObject({ code: 'DELIVERY_NOT_FOUND' });
    await api.call('DELETE', endpoint.path);
    expect(await retry(made.path)).toMatchObject({ status: 404, code: 'WEBHOOK_NOT_FOUND' });
  });

  test('races with the settling of its delivery: the outcome is kept, and the delivery is claimed once more at most', async () => {
    const endpoint = await webhook(api);
    const { sql, prisma } = api.database;
    const claim = () => claimOf(endpoint.id);
    const outcomes: AfterAttempt[] = [
      { status: 'pending', delayMs: 3_600_000 },
      { status: 'succeeded' },
      { status: 'failed', reason: 'rejected' },
    ];
    for (let round = 0; round < 12; round++) {
      const after = outcomes[round % outcomes.length]!;
      const made = await delivery(api, endpoint.path);
      const [claimed] = await claim();
      const [first, [settled], second] = await Promise.all([
        retry(made.path),
        settleDeliveries(sql, [ended(claimed!, after)]),
        retry(made.path),
      ]);
      expect(settled).toEqual({ id: made.id, leaseToken: claimed!.leaseToken });
      const finished = after.status === 'pending' ? [202, undefined] : [409, 'DELIVERY_NOT_PENDING'];
      for (const { status, code } of [first, second]) {
        expect([finished, [409, 'DELIVERY_IN_FLIGHT']]).toContainEqual([status, code]);
      }
      const stored = await row(made.id);
      expect(stored).toMatchObject({ status: after.status, runAttempts: 1, replayCount: 0, leaseToken: null });
      const isForward = [first, second].some(({ status }) => status === 202);
      expect(stored.status === 'pending' && stored.dueAt.getTime() < Date.now() + 60_000).toBe(isForward);
      expect((await claim()).map(({ id, runAttempt }) => [id, runAttempt])).toEqual(isForward ? [[made.id, 2]] : []);
      // The worker repeats the statement if it did not learn of its commit.
      expect(await settleDeliveries(sql, [ended(claimed!, after)])).toEqual([]);
      expect(await prisma.webhookAttempt.count({ where: { deliveryId: made.id } })).toBe(1);
      await finish(api, made.id);
    }
  });

  test('races with a replay, a disabling and a deletion, and leaves every delivery in a state that fits', async () => {
    for (let round = 0; round < 10; round++) {
      const endpoint = await webhook(api);
      const failed = await delivery(api, endpoint.path);
      const pending = await delivery(api, endpoint.path);
      await finish(api, failed.id);
      await set(pending.id, { dueAt: inAnHour() });
      const [ended, replayed, ...retried] = await Promise.all([
        round % 2 === 0
          ? api.call('DELETE', endpoint.path)
          : api.call('PATCH', endpoint.path, { body: { enabled: false } }),
        replay(failed.path, 0),
        retry(failed.path),
        retry(pending.path),
      ]);
      expect([200, 204]).toContain(ended.status);
      expect([202, 404, 409]).toContain(replayed.status);
      for (const { status } of retried) expect([202, 404, 409]).toContain(status);
      // The deletion skips a row that another transaction has locked; the next sweep of a worker ends it.
      await endDeliveriesOfDeleted(api.database.sql, 60_000, 100);
      const [a, b] = [await row(failed.id), await row(pending.id)];
      if (round % 2 === 0) {
        expect([a.status, b.status]).toEqual(['failed', 'failed']);
        continue;
      }
      expect(a).toMatchObject({ status: replayed.status === 202 ? 'pending' : 'failed', leaseToken: null });
      expect(b).toMatchObject({ status: 'pending', replayCount: 0, runAttempts: 0 });
      expect(b.dueAt.getTime() < Date.now() + 60_000).toBe(retried[1].status === 202);
    }
  });
});

test('a delivery of an erased event shows the erased event, and its replay answers 409 EVENT_ERASED', async () => {
  const { path: endpointPath } = await webhook(api);
  const made = await delivery(api, endpointPath);
  await finish(api, made.id);
  const { eventId } = await row(made.id);
  const { prisma } = api.database;
  const { body } = await prisma.event.findUniqueOrThrow({ where: { id: eventId } });
  const erasedAt = new Date();
  await prisma.event.update({ where: { id: eventId }, data: { body: eraseEventBody(body, erasedAt), erasedAt } });
  const shown = (await api.call('GET', made.path)).body;
  expect(shown.event).toMatchObject({ id: eventId, erasedAt: erasedAt.toISOString() });
  const refused = await replay(made.path, 0);
  expect([refused.status, refused.body.error.code]).toEqual([409, 'EVENT_ERASED']);
  // The list of events marks the event as erased.
  // Readers stay behind open transactions, also of other tests on this server.
  await eventually(async () => {
    const { data } = (await api.call('GET', '/v1/events?type=webhook.test&limit=100')).body;
    return data.filter((event: { erasedAt?: string }) => event.erasedAt !== undefined).length === 1;
  });
});
