import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Prisma } from '@callplane/db';
import { createTestTenant, eventually } from '@callplane/testing';
import { startReceiver } from '../receivers.testkit.js';
import { NOON, startTestWorker, type TestWorker } from '../worker.testkit.js';
import { FailingEndpoints, sweepDeliveries, sweepRecoveries, sweepRetention } from './sweep.js';

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
    'TRUNCATE webhook_endpoints, webhook_secrets, webhook_deliveries, webhook_attempts, events, webhook_recoveries CASCADE',
  );
});

const waitingJobs = () => worker.deps.producer.waitingCount(['webhook-delivery', 'webhook-delivery-slow']);
const count = async (table: string) => {
  const rows = await worker.deps.database.sql.$queryRaw<{ n: number }[]>`
    SELECT count(*)::int AS n FROM ${Prisma.raw(table)}`;
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
    const rotatedAt = (time: string) =>
      worker.sql(`UPDATE webhook_endpoints SET signing_key_version = 2, updated_at = ${time} WHERE id IN (
        SELECT endpoint_id FROM webhook_secrets WHERE version = 2)`);
    await rotatedAt(`now() - interval '2 hours'`);
    await sweepRetention(worker.deps, signal);
    expect(await count('webhook_secrets')).toBe(2);
    await worker.sql(`UPDATE webhook_deliveries SET status = 'succeeded', completed_at = now()`);
    // A claim that began before the rotation may still pin the old one.
    await rotatedAt('now()');
    await sweepRetention(worker.deps, signal);
    expect(await count('webhook_secrets')).toBe(2);
    await rotatedAt(`now() - interval '2 hours'`);
    await sweepRetention(worker.deps, signal);
    expect(await count('webhook_secrets')).toBe(1);
  });

  test('keeps the old and the next secret until an hour after the activation', async () => {
    const endpointId = await worker.newEndpoint(NOWHERE);
    await worker.sql(`INSERT INTO webhook_secrets
      SELECT endpoint_id, 2, secret_sealed, now() FROM webhook_secrets WHERE endpoint_id = '${endpointId}'`);
    const versionsAfter = async (activation: string) => {
      await worker.sql(`UPDATE webhook_endpoints SET next_signing_key_version = 2, next_activates_at = ${activation}
        WHERE id = '${endpointId}'`);
      await sweepRetention(worker.deps, signal);
      const secrets = await worker.deps.database.prisma.webhookSecret.findMany({ where: { endpointId } });
      return secrets.map(({ version }) => version).sort();
    };
    expect(await versionsAfter(`now() + interval '1 day'`)).toEqual([1, 2]);
    expect(await versionsAfter(`now() - interval '59 minutes'`)).toEqual([1, 2]);
    expect(await versionsAfter(`now() - interval '61 minutes'`)).toEqual([2]);
  });
});

describe('endpoints whose attempts all fail', () => {
  const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 60 * 60 * 1000);

  test('are disabled after the configured days, and other endpoints of the environment get an event', async () => {
    const failing = await worker.newEndpoint(NOWHERE, { failingSince: daysAgo(5.1), lastFailedAt: daysAgo(0) });
    const half = await worker.newEndpoint(NOWHERE, { failingSince: daysAgo(3), lastFailedAt: daysAgo(0.4) });
    await worker.sql(`UPDATE webhook_endpoints SET failing_reported_since = failing_since`);
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
    // The other one fails as well.
    expect(deliveries.map(({ endpointId }) => endpointId)).toEqual([fine]);
    expect(JSON.parse(deliveries[0]!.event.body)).toMatchObject({
      type: 'webhook.disabled',
      sequence: null,
      data: { webhook: { id: failing, url: NOWHERE, enabled: false, createdAt: NOON.toISOString() } },
    });
    expect(await waitingJobs()).toBe(1);
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
});

describe('endpoints that fail', () => {
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
  /** Log lines with this message since `before`. */
  let before = 0;
  const said = (message: string) => worker.lines.slice(before).filter((line) => line.message === message);

  test('for 15 minutes are reported once by one of several workers, and once more when they work again', async () => {
    before = worker.lines.length;
    const receiver = await startReceiver();
    const failing = await worker.newEndpoint(receiver.url, {
      failingSince: minutesAgo(16),
      lastFailedAt: minutesAgo(3),
    });
    await worker.newEndpoint(NOWHERE, { failingSince: minutesAgo(14), lastFailedAt: minutesAgo(3) });
    const once = minutesAgo(16);
    await worker.newEndpoint(NOWHERE, { failingSince: once, lastFailedAt: once });
    await worker.newEndpoint(NOWHERE, { failingSince: minutesAgo(9 * 60), lastFailedAt: minutesAgo(8 * 60 + 1) });
    const off = { failingSince: minutesAgo(16), lastFailedAt: minutesAgo(3), enabled: false };
    await worker.newEndpoint(NOWHERE, off);
    let shown = -1;
    const metrics = { ...worker.deps.metrics, setEndpointsFailing: (count: number) => void (shown = count) };
    const workers = [0, 1, 2].map(() => new FailingEndpoints({ ...worker.deps, metrics }, 0));
    await Promise.all(workers.map((endpoints) => endpoints.sweep()));
    await workers[0]!.sweep();
    await workers[1]!.count();
    expect(said('webhook endpoint fails')).toMatchObject([{ endpointId: failing, failingSince: expect.anything() }]);
    expect(shown).toBe(1);
    expect(said('webhook endpoint works again')).toEqual([]);

    const [delivery] = await worker.emit(failing);
    await worker.attempt(delivery!.id);
    await Promise.all(workers.map((endpoints) => endpoints.sweep()));
    await workers[1]!.count();
    expect(said('webhook endpoint works again')).toMatchObject([{ endpointId: failing }]);
    expect(shown).toBe(0);
  });

  /** The events of this type, with the endpoints that get them. */
  async function sent(type: string) {
    const { prisma } = worker.deps.database;
    const events = await prisma.event.findMany({
      where: { type },
      include: { deliveries: true },
      orderBy: { id: 'asc' },
    });
    return events.map(({ body, deliveries }) => ({
      data: JSON.parse(body).data,
      to: deliveries.map(({ endpointId }) => endpointId),
    }));
  }

  test('and work again are told to the subscribed endpoints of their environment, once for each spell', async () => {
    const [began, again] = [minutesAgo(20), minutesAgo(16)];
    const failing = await worker.newEndpoint(NOWHERE, { failingSince: began, lastFailedAt: minutesAgo(1) });
    const subscribed = await worker.newEndpoint(NOWHERE);
    const unsubscribed = await worker.newEndpoint(NOWHERE);
    const foreign = await createTestTenant(worker.deps.database);
    await worker.newEndpoint(NOWHERE, { environmentId: foreign.environmentId });
    await worker.sql(`UPDATE webhook_endpoints SET events = '{room.created}' WHERE id = '${unsubscribed}'`);
    const workers = [0, 1, 2].map(() => new FailingEndpoints(worker.deps, 0));
    const sweep = () => Promise.all(workers.map((endpoints) => endpoints.sweep()));
    await sweep();
    await sweep();
    const failed = { data: { webhook: { id: failing, failingSince: began.toISOString() } }, to: [subscribed] };
    expect(await sent('webhook.endpoint.failing')).toMatchObject([failed]);
    expect(await sent('webhook.endpoint.recovered')).toEqual([]);

    // An attempt succeeds, and later ones have failed for 16 minutes before the next sweep.
    const now = { failingSince: again, lastFailedAt: minutesAgo(0) };
    await worker.deps.database.prisma.webhookEndpoint.update({ where: { id: failing }, data: now });
    await sweep();
    await sweep();
    expect(await sent('webhook.endpoint.recovered')).toMatchObject([
      { data: { webhook: { id: failing }, failedSince: began.toISOString() }, to: [subscribed] },
    ]);
    expect(await sent('webhook.endpoint.failing')).toMatchObject([
      failed,
      { data: { webhook: { failingSince: again.toISOString() } }, to: [subscribed] },
    ]);
  });

  test('together are reported once each, to the endpoints that work', async () => {
    const states = { failingSince: minutesAgo(20), lastFailedAt: minutesAgo(1) };
    const failing: string[] = [];
    for (let n = 0; n < 45; n++) failing.push(await worker.newEndpoint(NOWHERE, states));
    // It has failed too, though not for 15 minutes.
    failing.push(await worker.newEndpoint(NOWHERE, { ...states, failingSince: minutesAgo(14) }));
    const works = await worker.newEndpoint(NOWHERE);
    const failedOnce = await worker.newEndpoint(NOWHERE, { failingSince: NOON, lastFailedAt: NOON });
    const sweep = () => new FailingEndpoints(worker.deps, 0).sweep();
    await sweep();
    const reports = await sent('webhook.endpoint.failing');
    expect(new Set(reports.map(({ data }) => data.webhook.id))).toEqual(new Set(failing.slice(0, 45)));
    for (const { to } of reports) expect(to.sort()).toEqual([works, failedOnce].sort());

    await worker.sql(`UPDATE webhook_endpoints SET failing_since = NULL, last_failed_at = NULL`);
    await sweep();
    const recovered = await sent('webhook.endpoint.recovered');
    expect(recovered).toHaveLength(45);
    for (const { to } of recovered) expect(to.sort()).toEqual([works, failedOnce, failing[45]].sort());
  });

  test('and are disabled together are reported to the endpoints that work', async () => {
    const states = { failingSince: minutesAgo(3 * 24 * 60), lastFailedAt: minutesAgo(0) };
    const failing = [0, 1, 2].map(() => worker.newEndpoint(NOWHERE, states));
    await Promise.all(failing);
    const works = await worker.newEndpoint(NOWHERE);
    await new FailingEndpoints(worker.deps, 2).sweep();
    expect((await sent('webhook.disabled')).map(({ to }) => to)).toEqual([[works], [works], [works]]);
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
  async function newRecovery(
    endpointId: string,
    more: { since?: Date; until?: Date; dryRun?: boolean; includePending?: boolean } = {},
  ) {
    const { environmentId } = worker.tenant;
    const window = { since: at(0), until: at(1000) };
    const data = { id: 'rcv_1', environmentId, endpointId, ...window, dryRun: false, includePending: true, ...more };
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
    // One turn of the endpoint is added, regardless of the number of replayed deliveries.
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

  /** Makes every second delivery pending, with its next attempt in an hour. */
  const halfPending = () =>
    worker.sql(`UPDATE webhook_deliveries SET status = 'pending', failure_reason = NULL, completed_at = NULL,
      run_attempts = 4, due_at = now() + interval '1 hour' WHERE substr(id, 5)::int % 2 = 0`);
  const due = () => count(`webhook_deliveries WHERE status = 'pending' AND due_at <= now()`);

  test('brings pending deliveries of the window forward, in their runs, and replays the failed ones', async () => {
    const endpointId = await failedDeliveries();
    await halfPending();
    await newRecovery(endpointId, { since: at(1), until: at(20), dryRun: true });
    await step();
    const counts = { status: 'completed', matched: 20, skipped: 1 };
    expect(await recovery()).toMatchObject({ ...counts, replayed: 0, woken: 0 });
    expect(await due()).toBe(0);
    await worker.sql('DELETE FROM webhook_recoveries');
    await newRecovery(endpointId, { since: at(1), until: at(20), includePending: false });
    await step();
    expect(await recovery()).toMatchObject({ ...counts, matched: 10, replayed: 9, woken: 0 });
    await worker.sql('DELETE FROM webhook_recoveries');
    await newRecovery(endpointId, { since: at(1), until: at(21) });
    await step();
    // The nine that the recovery before has replayed are due already, and pending.
    expect(await recovery()).toMatchObject({ ...counts, matched: 21, replayed: 1, woken: 19 });
    expect(await worker.row('dlv_1002')).toMatchObject({
      status: 'pending',
      replayCount: 0,
      runAttempts: 4,
      url: 'http://old/',
    });
    expect(await worker.row('dlv_1021')).toMatchObject({ status: 'pending', replayCount: 1, runAttempts: 0 });
    expect(await due()).toBe(20);
    expect(await waitingJobs()).toBe(1);
  });

  test('goes slower while many deliveries of its endpoint are due, and stops when it is cancelled', async () => {
    const endpointId = await failedDeliveries();
    await worker.sql(`UPDATE webhook_deliveries SET status = 'pending', failure_reason = NULL, completed_at = NULL,
      run_attempts = 1, due_at = now() + interval '1 hour'`);
    await newRecovery(endpointId);
    const dueAfter: number[] = [];
    for (let steps = 0; steps < 3; steps++) {
      await step();
      dueAfter.push(await due());
    }
    expect(dueAfter).toEqual([100, 200, 210]);
    await worker.sql(`UPDATE webhook_deliveries SET status = 'succeeded', completed_at = now() WHERE due_at <= now()`);
    await worker.sql(`UPDATE webhook_recoveries SET status = 'cancelled', lease_token = NULL, lease_expires_at = NULL`);
    await step();
    expect([await due(), await recovery()]).toMatchObject([0, { status: 'cancelled', woken: 210 }]);
    await worker.sql(`UPDATE webhook_recoveries SET status = 'pending'`);
    await step();
    expect([await due(), await recovery()]).toMatchObject([40, { status: 'completed', woken: 250, matched: 250 }]);
  });

  test('waits for deliveries in flight, and takes them once their attempts have failed', async () => {
    const endpointId = await worker.newEndpoint(NOWHERE);
    const made = await worker.emit(endpointId, 4);
    const claims = await worker.claim(endpointId, 3);
    const window = { since: new Date(0), until: new Date('2100-01-01') };
    await newRecovery(endpointId, window);
    await step();
    expect(await recovery()).toMatchObject({ status: 'pending', matched: 1, woken: 1 });
    expect((await recovery()).inFlight.sort()).toEqual(claims.map(({ id }) => id).sort());
    const [retried, failed, succeeded] = claims.map(({ id }) => id);
    const free = `lease_token = NULL, lease_expires_at = NULL`;
    const done = `${free}, completed_at = now()`;
    await worker.sql(`UPDATE webhook_deliveries SET status = 'pending', ${free}, due_at = now() + interval '1 hour'
      WHERE id = '${retried}'`);
    await step();
    expect(await recovery()).toMatchObject({ status: 'pending', matched: 2, woken: 2 });
    await worker.sql(
      `UPDATE webhook_deliveries SET status = 'failed', failure_reason = 'rejected', ${done} WHERE id = '${failed}'`,
    );
    await worker.sql(`UPDATE webhook_deliveries SET status = 'succeeded', ${done} WHERE id = '${succeeded}'`);
    await step();
    expect(await recovery()).toMatchObject({ status: 'completed', matched: 3, woken: 2, replayed: 1, inFlight: [] });
    expect(await due()).toBe(made.length - 1);
  });

  test('forgets no delivery in flight, also when more are in flight than it keeps', async () => {
    const endpointId = await failedDeliveries();
    await worker.sql(`DELETE FROM webhook_deliveries WHERE substr(id, 5)::int > 1130`);
    await worker.sql(`UPDATE webhook_deliveries SET status = 'delivering', failure_reason = NULL, completed_at = NULL,
      run_attempts = 2, lease_token = gen_random_uuid(), lease_expires_at = now() + interval '1 hour'`);
    await newRecovery(endpointId);
    for (let steps = 0; steps < 2; steps++) {
      await step();
      expect(await recovery()).toMatchObject({ status: 'pending', matched: 0, position: 'dlv_1100' });
      expect((await recovery()).inFlight).toHaveLength(100);
    }
    await worker.sql(`UPDATE webhook_deliveries SET status = 'pending', lease_token = NULL, lease_expires_at = NULL,
      due_at = now() + interval '1 hour'`);
    await step();
    expect(await recovery()).toMatchObject({ status: 'pending', woken: 100, inFlight: [] });
    await step();
    expect(await recovery()).toMatchObject({ status: 'completed', matched: 130, woken: 130, inFlight: [] });
    expect(await due()).toBe(130);
  });
});
