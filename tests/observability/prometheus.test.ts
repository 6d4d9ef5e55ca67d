import { randomUUID } from 'node:crypto';
import { acceptRoomEnd, Database } from '@callplane/db';
import { ATTEMPTS_PER_RUN } from '@callplane/core';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  spawnApp,
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
 * A real Prometheus scrapes the four apps and has the alerts. First nothing is wrong, and all that alerts and dashboard
 * ask has an answer; then things are made to go wrong.
 */

const APPS = ['api', 'signaling', 'cleanup-worker', 'webhook-worker'] as const;

/** What need not be there while all is well: which routes fail is not known beforehand. The alert is for minutes. */
const UNKNOWN_IN_CALM = ['callplane_http_requests_total{status=~"5.."}'];

const asGrafana = (expr: string) => expr.replaceAll('$__rate_interval', RATE_INTERVAL);

let prometheus: Awaited<ReturnType<typeof watch>>;
let apps: Record<(typeof APPS)[number], TestApp>;
let janus: TestJanus;
let database: Database;
let tenant: TestTenant;

beforeAll(async () => {
  const [target, redis, media] = await Promise.all([createTestDatabase(), startTestRedis(), startTestJanus()]);
  janus = media;
  database = new Database({ url: target.url, poolMax: 2 });
  stopAtEnd(() => database.close());
  tenant = await createTestTenant(database);
  const env = {
    ...{ DATABASE_URL: target.url, REDIS_URL: redis.url, MEDIA_NODES: `m1=${janus.url}` },
    ...{ MEDIA_API_SECRET: janus.apiSecret, MEDIA_ADMIN_KEY: janus.adminKey, SWEEP_INTERVAL_MS: '500' },
  };
  const started = await Promise.all(APPS.map((name) => spawnApp({ name, env })));
  apps = Object.fromEntries(started.map((app) => [app.name, app])) as typeof apps;
  prometheus = await watch(started);
  await eventually(
    async () => {
      // As a load balancer and Docker do; without any request the API has none to show.
      await Promise.all([fetch(`${apps.api.url}/livez`), fetch(`${apps.api.url}/readyz`)]);
      // A rate needs two scrapes of each; the media server is found and the database read by then.
      expect(await prometheus.query('sum_over_time(up[1m]) > 3')).toHaveLength(APPS.length);
      expect(await prometheus.query('min by (node) (callplane_media_node_up) == 1')).toHaveLength(1);
      expect(await prometheus.query('callplane_live')).toHaveLength(2);
      expect((await prometheus.rules()).every(({ health }) => health === 'ok')).toBe(true);
      return true;
    },
    { timeoutMs: 30_000, intervalMs: 200 },
  );
}, 60_000);

describe('every metric', () => {
  test('of ours is on the dashboard or in an alert', async () => {
    const asked = [...rules, ...panels.flatMap(({ targets = [] }) => targets)].flatMap(({ expr }) => selectorsIn(expr));
    const ours = await metricsOfOurs();
    expect(ours.filter((name) => !asked.some((selector) => selector.startsWith(name)))).toEqual([]);
  });

  test('of ours stands in docs/operations.md, and nothing else', async () => {
    const documented = new Set(read('docs/operations.md').match(/\bcallplane_[a-z_]+/g));
    expect((await metricsOfOurs()).filter((name) => !documented.has(name))).toEqual([]);
    const names = await served();
    expect([...documented].filter((name) => !names.has(name))).toEqual([]);
  });

  test('is divided by no id, URL or path', async () => {
    const labels = new Set((await prometheus.query('{app!=""}')).flatMap(({ metric }) => Object.keys(metric)));
    expect([...labels].filter((label) => /id$|url|path|room|participant$/i.test(label))).toEqual([]);
  });
});

describe('while all is well', () => {
  test('every alert is understood, and none is raised', async () => {
    const loaded = await prometheus.rules();
    expect(loaded.map(({ name }) => name)).toEqual(rules.map(({ alert }) => alert));
    expect(loaded.map(({ name, health, lastError }) => [name, health, lastError])).toEqual(
      rules.map(({ alert }) => [alert, 'ok', undefined]),
    );
    // Three times in a row, so that a machine that was busy for a moment does not count.
    const evaluations = new Set<string>();
    await eventually(
      async () => {
        const [alerts, evaluation] = [await prometheus.alerts(), await prometheus.lastEvaluation()];
        if (alerts.length > 0) evaluations.clear();
        else evaluations.add(evaluation);
        expect(alerts).toEqual([]);
        return evaluations.size > 3;
      },
      { timeoutMs: 20_000, intervalMs: 200 },
    );
  });

  // What is not there cannot be compared with anything: such an alert would never be raised.
  test.each(
    rules
      .flatMap(({ alert, expr }) => [...new Set(selectorsIn(expr))].map((selector) => [alert, selector] as const))
      .filter(([, selector]) => !UNKNOWN_IN_CALM.includes(selector)),
  )('%s finds %s', async (_alert, selector) => {
    await anyOf(selector);
  });

  test.each(
    panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr, legendFormat }) => [title, expr, legendFormat] as const),
    ),
  )('the panel %s shows something: %s', async (_title, expr, legendFormat) => {
    const series = await anyOf(asGrafana(expr));
    // A legend without its label, or one for two lines, tells nobody anything.
    const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
    const legends = series.map(({ metric }) => labels.map((label) => metric[label]));
    expect(legends.flat()).not.toContain(undefined);
    expect(new Set(legends.map((legend) => JSON.stringify(legend))).size).toBe(legends.length);
  });
});

describe('when something breaks', () => {
  test('the first clean-up that fails for good is heard of', async () => {
    const response = await fetch(`${apps.api.url}/v1/rooms`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Doomed' }),
    });
    const { id } = (await response.json()) as { id: string };
    const accepted = await acceptRoomEnd(database, tenant, id, new Date());
    // As a worker leaves it that died in the last attempt.
    await database.prisma.$executeRawUnsafe(
      `UPDATE runtime_operations SET attempts = ${ATTEMPTS_PER_RUN}, run_attempts = ${ATTEMPTS_PER_RUN}, lease_token = '${randomUUID()}',
        lease_expires_at = now() - interval '1 second' WHERE id = '${accepted!.operation.id}'`,
    );
    expect(await prometheus.alert('CallplaneOperationsFail')).toMatchObject({
      state: 'firing',
      labels: { severity: 'page' },
      annotations: { summary: 'A clean-up has failed eight times.' },
    });
    // Seen as growth from 0, too: no process stays young.
    const growth = 'sum(increase(callplane_operations_finished_total{status="failed"}[1m])) > 0';
    await eventually(async () => (await prometheus.query(growth)).length === 1);
  });

  test('a media server that is gone', async () => {
    janus.kill('SIGKILL');
    expect(await prometheus.alert('CallplaneMediaNodeDown')).toMatchObject({
      labels: { node: 'm1', severity: 'page' },
      annotations: { summary: 'No app reaches the media server m1.' },
    });
  });

  test('a process that is gone, and the last of its kind', async () => {
    const instance = new URL(apps['webhook-worker'].metricsUrl).host;
    apps['webhook-worker'].kill('SIGKILL');
    expect(await prometheus.alert('CallplaneInstanceDown')).toMatchObject({
      labels: { instance, job: 'callplane', severity: 'ticket' },
    });
    expect(await prometheus.alert('CallplaneAppMissing')).toMatchObject({
      labels: { app: 'webhook-worker', severity: 'page' },
      annotations: { summary: 'No webhook-worker can be scraped.' },
    });
    // The others are there.
    const missing = (await prometheus.alerts()).filter(({ labels }) => labels['alertname'] === 'CallplaneAppMissing');
    expect(missing).toHaveLength(1);
  });
});

/** What it finds; on a busy machine a scrape or two may have failed just now. */
function anyOf(expr: string) {
  return eventually(
    async () => {
      const found = await prometheus.query(expr);
      expect(found).not.toEqual([]);
      return found;
    },
    { timeoutMs: 5000, intervalMs: 200 },
  );
}

/** `callplane_live{what="rooms"}` and the like. */
function selectorsIn(expr: string): string[] {
  return expr.match(/\b(?:(?:callplane|nodejs|process)_\w+|up)\b(?:\{[^}]*\})?/g) ?? [];
}

/** Names that can be asked for. */
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
