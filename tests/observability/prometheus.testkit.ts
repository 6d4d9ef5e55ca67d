import { join } from 'node:path';
import { freePort, serverDirectory, serverFile, startServer, withoutRoot } from '@callplane/local-servers';
import { eventually, temporaryDirectory, testServer, type TestApp, type TestServer } from '@callplane/testing';
import { fileOf, prometheusConfig } from './files.testkit.js';

export interface Sample {
  metric: Record<string, string>;
  value: [time: number, value: string];
}
export interface Alert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  state: 'pending' | 'firing';
}
export interface LoadedRule {
  name: string;
  health: string;
  lastError?: string;
  state: string;
}

const SCRAPE_SECONDS = 1;

/** Grafana's $__rate_interval: four scrapes, unless the resolution of the panel is coarser. */
export const RATE_INTERVAL = `${4 * SCRAPE_SECONDS}s`;

/**
 * Prometheus with the configuration and rules of infra/prometheus. Only the targets are local ports, and scrapes and
 * evaluations run every second in place of every 15 seconds.
 */
export async function watch(apps: readonly TestApp[]) {
  const ruleFiles = prometheusConfig.rule_files.map((name) => fileOf(`infra/prometheus/${name}`));
  const interval = `${SCRAPE_SECONDS}s`;
  const targets = apps.map(({ metricsUrl }) => new URL(metricsUrl).host);
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
  const query = async (expr: string) => (await ask<{ result: Sample[] }>('query', { query: expr })).result;
  const alerts = async () => (await ask<{ alerts: Alert[] }>('alerts')).alerts;
  const groups = async () => (await ask<{ groups: { rules: LoadedRule[]; lastEvaluation: string }[] }>('rules')).groups;
  return {
    query,
    alerts,
    rules: async () => (await groups()).flatMap(({ rules }) => rules),
    /** The time of the last evaluation of each rule group. */
    lastEvaluation: async () => (await groups()).map(({ lastEvaluation }) => lastEvaluation).join(),
    metadata: () => ask<Record<string, { type: string }[]>>('metadata'),
    /** The alert of this name, once it is there. */
    alert: (name: string, labels: Record<string, string> = {}) =>
      eventually(async () =>
        (await alerts()).find(
          (each) =>
            each.labels['alertname'] === name &&
            Object.entries(labels).every(([label, value]) => each.labels[label] === value),
        ),
      ),
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
