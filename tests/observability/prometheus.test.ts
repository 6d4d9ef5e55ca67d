import { join } from 'node:path';
import { freePort, serverDirectory, serverFile, startServer, withoutRoot } from '@callplane/local-servers';
import {
  createTestDatabase,
  eventually,
  spawnApp,
  startMediaAgent,
  startTestCoturn,
  startTestJanus,
  startTestRedis,
  temporaryDirectory,
  testServer,
  type TestApp,
  type TestServer,
} from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { fileOf, panels, prometheusConfig, read, rules } from './files.testkit.js';

/**
 * A real Prometheus scrapes the five apps and an agent, and loads the alerts. Everything works, and every query of the alerts and the
 * dashboard returns data. alerts.test.ts checks when they fire.
 */

const APPS = ['api', 'signaling', 'cleanup-worker', 'webhook-worker', 'recorder'] as const;

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

interface LoadedRule {
  name: string;
  health: string;
  lastError?: string;
}

const SCRAPE_SECONDS = 1;
/** Grafana's $__rate_interval: four scrapes, unless the resolution of the panel is coarser. */
const RATE_INTERVAL = `${4 * SCRAPE_SECONDS}s`;

const asGrafana = (expr: string) => expr.replaceAll('$__rate_interval', RATE_INTERVAL);

let prometheus: Awaited<ReturnType<typeof watch>>;
let apps: Record<(typeof APPS)[number], TestApp>;

beforeAll(async () => {
  const [target, redis, janus, coturn] = await Promise.all([
    createTestDatabase(),
    startTestRedis(),
    startTestJanus(),
    startTestCoturn(),
  ]);
  const recordingsFolder = temporaryDirectory('recordings');
  const env = {
    DATABASE_URL: target.url,
    REDIS_URL: redis.url,
    MEDIA_NODES: `m1=${janus.url}`,
    MEDIA_API_SECRET: janus.apiSecret,
    MEDIA_ADMIN_KEY: janus.adminKey,
    SWEEP_INTERVAL_MS: '500',
    RECORDINGS_FOLDER: recordingsFolder,
    RECORDER_SCRATCH_FOLDER: temporaryDirectory('scratch'),
    TURN_ADMIN_URLS: coturn.adminUrl,
    TURN_ADMIN_PASSWORD: coturn.adminPassword,
  };
  const started = await Promise.all(APPS.map((name) => spawnApp({ name, env })));
  apps = Object.fromEntries(started.map((app) => [app.name, app])) as typeof apps;
  const metricsPort = await freePort();
  startMediaAgent(janus, 'm1', { databaseUrl: target.url, recordingsFolder, metricsPort });
  prometheus = await watch([...started.map(({ metricsUrl }) => new URL(metricsUrl).host), `127.0.0.1:${metricsPort}`]);
  await eventually(
    async () => {
      // Sends requests as a load balancer and Docker do; without any, the API has no request metrics.
      await Promise.all([fetch(`${apps.api.url}/livez`), fetch(`${apps.api.url}/readyz`)]);
      // A rate needs two scrapes of each app; by then the media server is connected and the database was queried.
      expect(await prometheus.query('sum_over_time(up[1m]) > 3')).toHaveLength(APPS.length + 1);
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

/**
 * Prometheus with the configuration and rules of infra/prometheus. Only the targets are local ports, and scrapes and
 * evaluations run every second in place of every 15 seconds.
 */
async function watch(targets: readonly string[]) {
  const ruleFiles = prometheusConfig.rule_files.map((name) => fileOf(`infra/prometheus/${name}`));
  const interval = `${SCRAPE_SECONDS}s`;
  const config = {
    ...prometheusConfig,
    global: { ...prometheusConfig.global, scrape_interval: interval, evaluation_interval: interval },
    rule_files: ruleFiles,
    // Neither Alertmanager nor the exporter of the machine runs here.
    alerting: {},
    scrape_configs: prometheusConfig.scrape_configs
      .filter(({ job_name }) => job_name === 'callplane')
      .map(({ dns_sd_configs: _names, ...rest }) => ({
        ...rest,
        static_configs: [{ targets }],
      })),
  };
  const server = await startPrometheus(JSON.stringify(config), ruleFiles);

  /** @throws with the error that Prometheus reports. */
  const ask = async <T>(path: string, parameters: Record<string, string> = {}): Promise<T> => {
    const response = await fetch(`${server.url}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`);
    const body = (await response.json()) as { status: string; error?: string; warnings?: string[]; data: T };
    if (body.status !== 'success' || body.warnings !== undefined) {
      throw new Error(`${path} ${JSON.stringify(parameters)}: ${body.error ?? body.warnings?.join() ?? ''}`);
    }
    return body.data;
  };
  const groups = async () => (await ask<{ groups: { rules: LoadedRule[]; lastEvaluation: string }[] }>('rules')).groups;
  return {
    query: async (expr: string) =>
      (await ask<{ result: { metric: Record<string, string> }[] }>('query', { query: expr })).result,
    alerts: async () => (await ask<{ alerts: object[] }>('alerts')).alerts,
    rules: async () => (await groups()).flatMap(({ rules }) => rules),
    /** The time of the last evaluation of each rule group. */
    lastEvaluation: async () => (await groups()).map(({ lastEvaluation }) => lastEvaluation).join(),
    metadata: () => ask<Record<string, { type: string }[]>>('metadata'),
  };
}

/** Fails if the configuration or a rule is invalid. */
async function startPrometheus(config: string, ruleFiles: string[]): Promise<TestServer> {
  const top = temporaryDirectory('prometheus');
  const dir = join(top, 'prometheus');
  const configFile = join(dir, 'prometheus.yml');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  return testServer(top, () => {
    serverDirectory(dir);
    serverFile(configFile, config);
    return startServer({
      name: 'prometheus',
      port,
      url,
      command: withoutRoot([configFile, ...ruleFiles], [dir])('prometheus', [
        `--config.file=${configFile}`,
        `--storage.tsdb.path=${join(dir, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ]),
      logFile: join(dir, 'prometheus.log'),
      isReady: () =>
        fetch(`${url}/-/ready`).then(
          ({ ok }) => ok,
          () => false,
        ),
      onSpawn: undefined,
    });
  });
}
