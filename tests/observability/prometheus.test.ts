import { randomUUID } from 'node:crypto';
import { acceptRoomEnd, Database } from '@callplane/db';
import { ATTEMPTS_PER_RUN } from '@callplane/core';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  spawnApp,
  startTestCoturn,
  startTestJanus,
  startTestRedis,
  stopAtEnd,
  type TestApp,
  type TestJanus,
  type TestTenant,
} from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { panels, read, rules } from './files.testkit.js';
import { RATE_INTERVAL, watch } from './prometheus.testkit.js';

/**
 * A real Prometheus scrapes the four apps and loads the alerts. First everything works, and every query of the alerts
 * and the dashboard returns data; then the tests break things.
 */

const APPS = ['api', 'signaling', 'cleanup-worker', 'webhook-worker'] as const;

/**
 * Selectors without data while everything works: it is unknown in advance which routes fail. The alert needs minutes of
 * errors.
 */
const UNKNOWN_IN_CALM = [
  'callplane_http_requests_total{status=~"5.."}',
  // No TLS server, no standby and no exporter of the machine belong to this deployment.
  'up{job="machine"}',
  'callplane_certificate_valid_seconds',
  'callplane_postgres_replication_lag_bytes',
];

const asGrafana = (expr: string) => expr.replaceAll('$__rate_interval', RATE_INTERVAL);

let prometheus: Awaited<ReturnType<typeof watch>>;
let apps: Record<(typeof APPS)[number], TestApp>;
let janus: TestJanus;
let database: Database;
let tenant: TestTenant;

beforeAll(async () => {
  const [target, redis, media, coturn] = await Promise.all([
    createTestDatabase(),
    startTestRedis(),
    startTestJanus(),
    startTestCoturn(),
  ]);
  janus = media;
  database = new Database({ url: target.url, poolMax: 2 });
  stopAtEnd(() => database.close());
  tenant = await createTestTenant(database);
  const env = {
    DATABASE_URL: target.url,
    REDIS_URL: redis.url,
    MEDIA_NODES: `m1=${janus.url}`,
    MEDIA_API_SECRET: janus.apiSecret,
    MEDIA_ADMIN_KEY: janus.adminKey,
    SWEEP_INTERVAL_MS: '500',
    TURN_ADMIN_URLS: coturn.adminUrl,
    TURN_ADMIN_PASSWORD: coturn.adminPassword,
  };
  const started = await Promise.all(APPS.map((name) => spawnApp({ name, env })));
  apps = Object.fromEntries(started.map((app) => [app.name, app])) as typeof apps;
  prometheus = await watch(started);
  await eventually(
    async () => {
      // Sends requests as a load balancer and Docker do; without any, the API has no request metrics.
      await Promise.all([fetch(`${apps.api.url}/livez`), fetch(`${apps.api.url}/readyz`)]);
      // A rate needs two scrapes of each app; by then the media server is connected and the database was queried.
      expect(await prometheus.query('sum_over_time(up[1m]) > 3')).toHaveLength(APPS.length);
      expect(await prometheus.query('min by (node) (callplane_media_node_up) == 1')).toHaveLength(1);
      expect(await prometheus.query('callplane_live')).toHaveLength(2);
      expect((await prometheus.rules()).every(({ health }) => health === 'ok')).toBe(true);
      return true;
    },
    { intervalMs: 200 },
  );
});

describe('every metric', () => {
  test('of Callplane appears on the dashboard or in an alert', async () => {
    const asked = [...rules, ...panels.flatMap(({ targets = [] }) => targets)].flatMap(({ expr }) => selectorsIn(expr));
    const ours = await metricsOfOurs();
    expect(ours.filter((name) => !asked.some((selector) => selector.startsWith(name)))).toEqual([]);
  });

  test('of Callplane is documented in docs/operations/, and no other name is', async () => {
    const pages = ['monitoring', 'incidents', 'scale', 'workers'].map((page) => read(`docs/operations/${page}.md`));
    const documented = new Set(pages.join('\n').match(/\bcallplane_[a-z_]+/g));
    expect((await metricsOfOurs()).filter((name) => !documented.has(name))).toEqual([]);
    const names = await served();
    expect([...documented].filter((name) => !names.has(name))).toEqual([]);
  });

  test('has no id, URL or path as a label', async () => {
    const labels = new Set((await prometheus.query('{app!=""}')).flatMap(({ metric }) => Object.keys(metric)));
    expect([...labels].filter((label) => /id$|url|path|room|participant$/i.test(label))).toEqual([]);
  });
});

describe('while everything works', () => {
  test('every alert loads without an error, and none fires', async () => {
    const loaded = await prometheus.rules();
    expect(loaded.map(({ name }) => name)).toEqual(rules.map(({ alert }) => alert));
    expect(loaded.map(({ name, health, lastError }) => [name, health, lastError])).toEqual(
      rules.map(({ alert }) => [alert, 'ok', undefined]),
    );
    // Needs several evaluations in a row without an alert, so that a moment of load on the machine does not fail the
    // test.
    const evaluations = new Set<string>();
    await eventually(
      async () => {
        const [alerts, evaluation] = [await prometheus.alerts(), await prometheus.lastEvaluation()];
        if (alerts.length > 0) evaluations.clear();
        else evaluations.add(evaluation);
        expect(alerts).toEqual([]);
        return evaluations.size > 3;
      },
      { intervalMs: 200 },
    );
  });

  // A comparison with a missing series yields nothing: such an alert would never fire.
  test.each(
    rules
      .flatMap(({ alert, expr }) => [...new Set(selectorsIn(expr))].map((selector) => [alert, selector] as const))
      .filter(([, selector]) => !UNKNOWN_IN_CALM.includes(selector)),
  )('the alert %s finds the series %s', async (_alert, selector) => {
    await anyOf(selector);
  });

  test.each(
    panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr, legendFormat }) => [title, expr, legendFormat] as const),
    ),
  )('the panel %s shows data: %s', async (_title, expr, legendFormat) => {
    const series = await anyOf(asGrafana(expr));
    // A legend with a missing label, or one shared by two lines, is useless.
    const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
    const legends = series.map(({ metric }) => labels.map((label) => metric[label]));
    expect(legends.flat()).not.toContain(undefined);
    expect(new Set(legends.map((legend) => JSON.stringify(legend))).size).toBe(legends.length);
  });
});

describe('when something breaks, an alert', () => {
  test('fires for the first cleanup that fails permanently', async () => {
    const response = await fetch(`${apps.api.url}/v1/rooms`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Doomed' }),
    });
    const { id } = (await response.json()) as { id: string };
    const accepted = await acceptRoomEnd(database, tenant, id, new Date());
    // The state that a worker leaves if it dies in the last attempt.
    await database.prisma.$executeRawUnsafe(
      `UPDATE runtime_operations SET attempts = ${ATTEMPTS_PER_RUN}, run_attempts = ${ATTEMPTS_PER_RUN}, lease_token = '${randomUUID()}',
        lease_expires_at = now() - interval '1 second' WHERE id = '${accepted!.operation.id}'`,
    );
    expect(await prometheus.alert('CallplaneOperationsFail')).toMatchObject({
      state: 'firing',
      labels: { severity: 'page' },
      annotations: { summary: 'A clean-up has failed in all eight attempts.' },
    });
    // The increase from 0 must also be visible, because no process stays younger than the window.
    const growth = 'sum(increase(callplane_operations_finished_total{status="failed"}[1m])) > 0';
    await eventually(async () => (await prometheus.query(growth)).length === 1);
  });

  test('fires for a media server that is down', async () => {
    janus.kill('SIGKILL');
    expect(await prometheus.alert('CallplaneMediaNodeDown')).toMatchObject({
      labels: { node: 'm1', severity: 'page' },
      annotations: { summary: 'No app can reach the media server m1.' },
    });
  });

  test('fires for a process that is down, and for the last process of its kind', async () => {
    const instance = new URL(apps['webhook-worker'].metricsUrl).host;
    apps['webhook-worker'].kill('SIGKILL');
    expect(await prometheus.alert('CallplaneInstanceDown')).toMatchObject({
      labels: { instance, job: 'callplane', severity: 'ticket' },
    });
    expect(await prometheus.alert('CallplaneAppMissing')).toMatchObject({
      labels: { app: 'webhook-worker', severity: 'page' },
      annotations: { summary: 'No webhook-worker can be scraped.' },
    });
    // The other apps are still present.
    const missing = (await prometheus.alerts()).filter(({ labels }) => labels['alertname'] === 'CallplaneAppMissing');
    expect(missing).toHaveLength(1);
  });
});

/** The result of a query; retries because on a busy machine a scrape may just have failed. */
function anyOf(expr: string) {
  return eventually(
    async () => {
      const found = await prometheus.query(expr);
      expect(found).not.toEqual([]);
      return found;
    },
    { intervalMs: 200 },
  );
}

/** Metric selectors in an expression, such as `callplane_live{what="rooms"}`. */
function selectorsIn(expr: string): string[] {
  return expr.match(/\b(?:(?:callplane|nodejs|process)_\w+|up)\b(?:\{[^}]*\})?/g) ?? [];
}

/** Metric names that a query can use. */
async function served(): Promise<Set<string>> {
  const metadata = Object.entries(await prometheus.metadata());
  return new Set([
    'up',
    ...metadata.flatMap(([name, [first]]) =>
      first?.type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  ]);
}

async function metricsOfOurs(): Promise<string[]> {
  return Object.keys(await prometheus.metadata()).filter((name) => name.startsWith('callplane_'));
}
