import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { startReceiver } from '../receivers.testkit.js';
import { NOON, startTestWorker, type TestWorker } from '../worker.testkit.js';
import { FailingEndpoints } from './failing-endpoints.js';
import { sweepRecoveries } from './recoveries.js';
import { sweepRetention } from './retention.js';
import { sweepDeliveries } from './sweep.js';

const NOWHERE = 'http://127.0.0.1:1/';
const { signal } = new AbortController();

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(async () => {
  worker.clock.set(NOON);
  const { producer } = worker.deps;
  // A slow machine may have let the last probe time out, and then no wake-up is sent.
  await eventually(() => producer.health.probe().then(() => producer.health.trouble === null));
  await producer.redis.flushall();
  await worker.sql(
    'TRUNCATE webhook_endpoints, webhook_secrets, webhook_deliveries, webhook_attempts, events, webhook_recoveries',
  );
});

const waitingJobs = () => worker.deps.producer.waitingCount(['webhook-delivery']);
const count = async (table: string) => {
  const rows = await worker.deps.database.prisma.$queryRawUnsafe<{ n: number }[]>(
    `SELECT count(*)::int AS n FROM ${table}`,
  );
  return rows[0]!.n;
};

describe('the sweep of deliveries', () => {
  test('makes a delivery with an expired lease due at once and logs the attempt', async () => {
    const id = await worker.newDelivery(NOWHERE);
    await worker.claim((await worker.row(id)).endpointId, 1, 0);
    await sweepDeliveries(worker.deps);
    expect(await worker.row(id)).toMatchObject({ status: 'pending', runAttempts: 1, leaseToken: null });
    expect(await worker.attempts(id)).toMatchObject([{ attempt: 1, outcome: 'timeout', errorCode: 'LEASE_EXPIRED' }]);
    expect(await waitingJobs()).toBe(1);
    expect(await worker.claim((await worker.row(id)).endpointId)).toMatchObject([{ runAttempt: 2 }]);
  });

  test('fails a delivery whose last attempt was not settled', async () => {
    const id = await worker.newDelivery(NOWHERE);
    await worker.sql(`UPDATE webhook_deliveries SET run_attempts = 7`);
    await worker.claim((await worker.row(id)).endpointId, 1, 0);
    await sweepDeliveries(worker.deps);
    expect(await worker.row(id)).toMatchObject({
      status: 'failed',
      failureReason: 'attempts_exhausted',
      runAttempts: 8,
    });
    expect(await waitingJobs()).toBe(0);
  });

  test('ends deliveries that were committed while their endpoint was removed', async () => {
    const [late] = await worker.emit(await worker.newEndpoint(NOWHERE));
    await worker.sql(`UPDATE webhook_endpoints SET deleted_at = now()`);
    const [other] = await worker.emit(await worker.newEndpoint(NOWHERE));
    await sweepDeliveries(worker.deps);
    expect(await worker.row(late!.id)).toMatchObject({ status: 'failed', failureReason: 'endpoint_deleted' });
    expect((await worker.row(late!.id)).completedAt).not.toBeNull();
    expect(await worker.row(other!.id)).toMatchObject({ status: 'pending', failureReason: null });
  });

  test('fails deliveries whose run is seven days old, even of a disabled endpoint', async () => {
    const [old] = await worker.emit(await worker.newEndpoint(NOWHERE, { enabled: false }));
    const [young] = await worker.emit(await worker.newEndpoint(NOWHERE));
    await worker.sql(
      `UPDATE webhook_deliveries SET run_started_at = now() - interval '7 days' WHERE id = '${old!.id}'`,
    );
    await worker.sql(
      `UPDATE webhook_deliveries SET run_started_at = now() - interval '167 hours' WHERE id = '${young!.id}'`,
    );
    await sweepDeliveries(worker.deps);
    expect(await worker.row(old!.id)).toMatchObject({ status: 'failed', failureReason: 'run_expired' });
    expect(await worker.row(young!.id)).toMatchObject({ status: 'pending' });
  });
});

describe('the retention sweep', () => {
  test('deletes rows 30 days after their end, but no row that others still reference', async () => {
    const receiver = await startReceiver();
    const endpointId = await worker.newEndpoint(receiver.url);
    const [old, young, open] = await worker.emit(endpointId, 3);
    await worker.attempt(old!.id);
    await worker.attempt(young!.id);
    await worker.sql(`UPDATE webhook_deliveries SET completed_at = now() - interval '30 days' WHERE id = '${old!.id}'`);
    await worker.sql(
      `UPDATE webhook_deliveries SET completed_at = now() - interval '29 days' WHERE id = '${young!.id}'`,
    );
    await worker.sql(`UPDATE events SET created_at = now() - interval '31 days'`);
    await sweepRetention(worker.deps, signal);
    expect((await worker.deps.database.prisma.webhookDelivery.findMany()).map(({ id }) => id).sort()).toEqual(
      [young!.id, open!.id].sort(),
    );
    expect([await count('events'), await count('webhook_attempts')]).toEqual([2, 1]);
    await worker.sql(`UPDATE webhook_endpoints SET deleted_at = now() - interval '31 days'`);
    await sweepRetention(worker.deps, signal);
    expect(await count('webhook_endpoints')).toBe(1);
    await worker.sql(`UPDATE webhook_deliveries SET status = 'failed', failure_reason = 'endpoint_deleted',
      completed_at = now() - interval '31 days'`);
    await sweepRetention(worker.deps, signal);
    for (const table of ['webhook_endpoints', 'webhook_secrets', 'webhook_deliveries', 'webhook_attempts', 'events'])
      expect(await count(table)).toBe(0);
  });

  test('deletes only events that are older than 30 days and unreferenced, across many batches', async () => {
    await worker.sql(`INSERT INTO events (id, environment_id, type, body, created_at)
      SELECT 'evt_' || n, '${worker.tenant.environmentId}', 'webhook.test', '{}', now() - n * interval '1 hour'
      FROM generate_series(1, 2000) n`);
    const endpointId = await worker.newEndpoint(NOWHERE);
    await worker.sql(`INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at)
      SELECT 'dlv_' || n, '${worker.tenant.environmentId}', '${endpointId}', 'evt_' || n, 'webhook.test', 'pending', now()
      FROM generate_series(1400, 2000) n`);
    await sweepRetention(worker.deps, signal);
    expect(await count('events')).toBe(719 + 601);
  });

  test('deletes a replaced secret once no open run is pinned to it', async () => {
    const id = await worker.newDelivery(NOWHERE);
    await worker.attempt(id);
    await worker.sql(`INSERT INTO webhook_secrets SELECT endpoint_id, 2, secret_sealed, now() FROM webhook_secrets`);
    await worker.sql(`UPDATE webhook_endpoints SET signing_key_version = 2`);
    await sweepRetention(worker.deps, signal);
    await worker.sql(`UPDATE webhook_secrets SET created_at = now() - interval '2 hours' WHERE version = 2`);
    await sweepRetention(worker.deps, signal);
    expect(await count('webhook_secrets')).toBe(2);
    await worker.sql(`UPDATE webhook_deliveries SET status = 'succeeded', completed_at = now()`);
    await sweepRetention(worker.deps, signal);
    expect(await count('webhook_secrets')).toBe(1);
  });
});

describe('endpoints whose attempts all fail', () => {
  const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 60 * 60 * 1000);

  test('are disabled after the configured days, and other endpoints of the environment get an event', async () => {
    const failing = await worker.newEndpoint(NOWHERE, { failingSince: daysAgo(5.1), lastFailedAt: daysAgo(0) });
    const half = await worker.newEndpoint(NOWHERE, { failingSince: daysAgo(3), lastFailedAt: daysAgo(0.4) });
    const fine = await worker.newEndpoint(NOWHERE);
    const endpoints = new FailingEndpoints(worker.deps, 5);
    await endpoints.sweep();
    await endpoints.sweep();
    expect(await worker.endpoint(failing)).toMatchObject({
      enabled: false,
      disabledReason: 'Every attempt has failed for 5 days.',
      updatedAt: NOON,
    });
    expect(await worker.endpoint(half)).toMatchObject({ enabled: true });
    const deliveries = await worker.deps.database.prisma.webhookDelivery.findMany({ include: { event: true } });
    expect(deliveries.map(({ endpointId }) => endpointId).sort()).toEqual([half, fine].sort());
    expect(JSON.parse(deliveries[0]!.event.body)).toMatchObject({
      type: 'webhook.disabled',
      sequence: null,
      data: { webhook: { id: failing, url: NOWHERE, enabled: false, createdAt: NOON.toISOString() } },
    });
    expect(await waitingJobs()).toBe(2);
    const warnings = worker.lines.filter(({ message }) => message === 'webhook endpoint fails and will be disabled');
    expect(warnings).toMatchObject([{ endpointId: half }]);
  });

  test('stay enabled if they failed once and nothing was sent to them since', async () => {
    const silent = await worker.newEndpoint(NOWHERE, { failingSince: daysAgo(100), lastFailedAt: daysAgo(99) });
    const [delivery] = await worker.emit(silent);
    const endpoints = new FailingEndpoints(worker.deps, 5);
    await endpoints.sweep();
    expect(await worker.endpoint(silent)).toMatchObject({ enabled: true });
    expect(worker.lines.filter(({ endpointId }) => endpointId === silent)).toEqual([]);
    // With the next failure, all attempts of the endpoint in that time have failed.
    await worker.attempt(delivery!.id);
    await endpoints.sweep();
    expect(await worker.endpoint(silent)).toMatchObject({ enabled: false });
  });

  test('stay enabled by default', async () => {
    const id = await worker.newEndpoint(NOWHERE, { failingSince: daysAgo(1000), lastFailedAt: daysAgo(0) });
    await new FailingEndpoints(worker.deps, 0).sweep();
    expect(await worker.endpoint(id)).toMatchObject({ enabled: true });
  });
});

describe('a recovery', () => {
  const at = (hour: number) => new Date(Date.UTC(2029, 0, 1, hour));

  /** Creates 250 failed deliveries, one per hour. The first one has already been replayed 100 times. */
  async function failedDeliveries(): Promise<string> {
    const endpointId = await worker.newEndpoint(NOWHERE);
    await worker.sql(`INSERT INTO events (id, environment_id, type, body, created_at)
      VALUES ('evt_1', '${worker.tenant.environmentId}', 'webhook.test', '{}', now())`);
    await worker.sql(`INSERT INTO webhook_deliveries
      (id, environment_id, endpoint_id, event_id, event_type, status, failure_reason, run_attempts, replay_count, url, secret_version, created_at, completed_at)
      SELECT 'dlv_' || (1000 + n), '${worker.tenant.environmentId}', '${endpointId}', 'evt_1', 'webhook.test', 'failed',
        'attempts_exhausted', 8, CASE n WHEN 1 THEN 100 ELSE 0 END, 'http://old/', 1,
        timestamptz '2029-01-01T00:00:00Z' + n * interval '1 hour', now()
      FROM generate_series(1, 250) n`);
    return endpointId;
  }
  async function newRecovery(endpointId: string, more: { since?: Date; until?: Date; dryRun?: boolean } = {}) {
    const { environmentId } = worker.tenant;
    const data = { id: 'rcv_1', environmentId, endpointId, since: at(0), until: at(1000), dryRun: false, ...more };
    await worker.deps.database.prisma.webhookRecovery.create({ data: { ...data, status: 'pending', createdAt: NOON } });
  }
  const recovery = () => worker.deps.database.prisma.webhookRecovery.findUniqueOrThrow({ where: { id: 'rcv_1' } });
  /** Expires the pause between two steps and runs the next step. */
  const step = async () => {
    await worker.sql(
      `UPDATE webhook_recoveries SET lease_expires_at = now() - interval '1 second' WHERE lease_token IS NOT NULL`,
    );
    await sweepRecoveries(worker.deps, signal, 60_000);
  };

  test('replays the window in paced steps that several workers share', async () => {
    const endpointId = await failedDeliveries();
    await newRecovery(endpointId);
    await Promise.all(Array.from({ length: 4 }, () => sweepRecoveries(worker.deps, signal, 60_000)));
    expect(await recovery()).toMatchObject({ status: 'pending', matched: 100, replayed: 99, skipped: 1 });
    // One doorbell wakes the endpoint, regardless of the number of replayed deliveries.
    expect(await waitingJobs()).toBe(1);
    await step();
    await step();
    await step();
    expect(await recovery()).toMatchObject({
      status: 'completed',
      matched: 250,
      replayed: 249,
      skipped: 1,
      leaseToken: null,
    });
    expect((await recovery()).completedAt).not.toBeNull();
    expect(await worker.row('dlv_1002')).toMatchObject({
      status: 'pending',
      failureReason: null,
      replayCount: 1,
      runAttempts: 0,
      url: null,
    });
    expect(await worker.row('dlv_1001')).toMatchObject({ status: 'failed', replayCount: 100 });
  });

  test('replays only deliveries in its window, and none in a dry run', async () => {
    const endpointId = await failedDeliveries();
    await newRecovery(endpointId, { since: at(1), until: at(3), dryRun: true });
    await step();
    expect(await recovery()).toMatchObject({ status: 'completed', matched: 3, replayed: 0, skipped: 1 });
    expect(await count(`webhook_deliveries WHERE status = 'pending'`)).toBe(0);
    await worker.sql('DELETE FROM webhook_recoveries');
    await newRecovery(endpointId, { since: at(1), until: at(3) });
    await step();
    expect(await recovery()).toMatchObject({ status: 'completed', matched: 3, replayed: 2, skipped: 1 });
    expect(await count(`webhook_deliveries WHERE status = 'pending'`)).toBe(2);
  });

  test('pauses while its endpoint is disabled, and is cancelled when the endpoint is deleted or on request', async () => {
    const endpointId = await failedDeliveries();
    await newRecovery(endpointId);
    await step();
    await worker.sql(`UPDATE webhook_endpoints SET enabled = false`);
    await step();
    expect(await recovery()).toMatchObject({ status: 'pending', matched: 100 });
    await worker.sql(`UPDATE webhook_endpoints SET deleted_at = now()`);
    await step();
    expect(await recovery()).toMatchObject({ status: 'cancelled', matched: 100 });
    await worker.sql('DELETE FROM webhook_recoveries');
    await newRecovery(endpointId);
    await worker.sql(`UPDATE webhook_recoveries SET status = 'cancelled'`);
    await step();
    expect(await recovery()).toMatchObject({ matched: 0 });
  });
});
