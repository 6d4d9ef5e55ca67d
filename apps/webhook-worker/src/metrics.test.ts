import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, spawnApp } from '@callplane/testing';
import { randomUUID } from 'node:crypto';
import { startReceiver } from './receivers.testkit.js';
import { FailingEndpoints, sweepDeliveries } from './sweep/sweep.js';
import { startTestWorker, type TestWorker } from './worker.testkit.js';

const NOWHERE = 'http://127.0.0.1:65535/';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});

/** The value of a series, or 0 if the series does not exist yet. */
function valueIn(text: string, series: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.split(' ').at(-1));
}
let before = '';
beforeEach(async () => {
  before = await worker.metrics();
});
/** How much each series has grown during the test. */
async function grown(...series: string[]): Promise<number[]> {
  const now = await worker.metrics();
  return series.map((each) => valueIn(now, each) - valueIn(before, each));
}
const app = 'app="webhook-worker"';

describe('the metrics of the webhook worker', () => {
  test('count attempts by outcome, and finished runs by status and reason', async () => {
    const receiver = await startReceiver();
    const refusing = await startReceiver((_request, response) => response.writeHead(410).end());
    await worker.attempt(await worker.newDelivery(receiver.url));
    await worker.attempt(await worker.newDelivery(refusing.url));
    await worker.attempt(await worker.newDelivery(NOWHERE));
    expect(
      await grown(
        `callplane_webhook_attempts_total{outcome="success",${app}}`,
        `callplane_webhook_attempts_total{outcome="response",${app}}`,
        `callplane_webhook_attempts_total{outcome="connect",${app}}`,
        `callplane_webhook_deliveries_finished_total{status="succeeded",reason="none",${app}}`,
        `callplane_webhook_deliveries_finished_total{status="failed",reason="rejected",${app}}`,
        `callplane_webhook_delivery_start_lag_seconds_count{${app}}`,
        `callplane_webhook_attempt_duration_seconds_count{${app}}`,
      ),
    ).toEqual([1, 1, 1, 1, 1, 3, 3]);
    expect(await worker.metrics()).not.toMatch(/(dlv|whep|env|evt)_/);
  });

  test('count lost leases and swept deliveries', async () => {
    const id = await worker.newDelivery(NOWHERE);
    const thief = await startReceiver((_request, response) => {
      void worker
        .sql(`UPDATE webhook_deliveries SET lease_token = '${randomUUID()}' WHERE status = 'delivering'`)
        .then(() => response.end());
    });
    await worker.attempt(await worker.newDelivery(thief.url));
    await worker.sql(
      `UPDATE webhook_deliveries SET lease_expires_at = now() - interval '1 second' WHERE lease_token IS NOT NULL`,
    );
    await worker.sql(`UPDATE webhook_deliveries SET run_attempts = 7 WHERE id = '${id}'`);
    await worker.claim((await worker.row(id)).endpointId, 1, 0);
    await sweepDeliveries(worker.deps);
    expect(
      await grown(
        `callplane_webhook_leases_lost_total{${app}}`,
        `callplane_webhook_swept_total{what="lease_expired",${app}}`,
        `callplane_webhook_deliveries_finished_total{status="failed",reason="attempts_exhausted",${app}}`,
      ),
    ).toEqual([1, 2, 1]);
  });

  test('count failing endpoints, warnings about them and endpoints that were disabled', async () => {
    const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 60 * 60 * 1000);
    await worker.sql('UPDATE webhook_endpoints SET enabled = false');
    await worker.newEndpoint(NOWHERE, { failingSince: daysAgo(3), lastFailedAt: daysAgo(0) });
    await worker.newEndpoint(NOWHERE, { failingSince: daysAgo(6), lastFailedAt: daysAgo(0) });
    const failing = new FailingEndpoints(worker.deps, 5);
    await failing.sweep();
    await failing.sweep();
    await failing.count();
    expect(
      await grown(
        `callplane_webhook_endpoints_failing{${app}}`,
        `callplane_webhook_disable_warnings_total{${app}}`,
        `callplane_webhook_endpoints_disabled_total{${app}}`,
      ),
    ).toEqual([1, 1, 1]);
  });

  test('are served by the process together with process metrics, and a stopped process releases its sweeps', async () => {
    await worker.sql(`TRUNCATE webhook_deliveries, webhook_attempts`);
    const process = await spawnApp({
      name: 'webhook-worker',
      env: {
        DATABASE_URL: worker.databaseUrl,
        REDIS_URL: worker.redis.url,
        WEBHOOK_ALLOW_HTTP: 'true',
        WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
      },
    });
    const scrape = async () => (await fetch(process.metricsUrl)).text();
    let answer: (() => void) | undefined;
    const receiver = await startReceiver((_request, response) => {
      answer = () => response.end();
    });
    const rows = await worker.emit(await worker.newEndpoint(receiver.url));
    await worker.deps.producer.wakeDeliveries(rows);
    await eventually(() => receiver.requests.length === 1);
    expect(valueIn(await scrape(), `callplane_webhook_in_flight{${app}}`)).toBe(1);
    answer?.();
    await eventually(
      async () => valueIn(await scrape(), `callplane_webhook_attempts_total{outcome="success",${app}}`) === 1,
    );
    await eventually(async () => valueIn(await scrape(), `callplane_webhook_in_flight{${app}}`) === 0);
    expect(valueIn(await scrape(), `nodejs_eventloop_lag_p99_seconds{${app}}`)).toBeGreaterThan(0);
    const sweep = 'webhook-worker deliveries';
    await eventually(async () => valueIn(await scrape(), `callplane_sweep_held{sweep="${sweep}",${app}}`) === 1);
    await eventually(async () => valueIn(await scrape(), `callplane_sweep_age_seconds{sweep="${sweep}",${app}}`) >= 0);
    const held = () =>
      worker.deps.database.sql.$queryRaw<unknown[]>`SELECT name FROM sweeps WHERE held_until > now() ORDER BY name`;
    expect(await held()).toContainEqual({ name: sweep });
    expect(await process.stop()).toEqual({ code: 0, signal: null });
    expect(await held()).toEqual([]);
  });
});
