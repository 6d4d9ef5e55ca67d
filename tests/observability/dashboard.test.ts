import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { dashboard, fileOf, panels, prometheusConfig, read, readYaml, type Panel } from './files.testkit.js';

/** No Grafana takes part: what it is given is compared with itself and with docker-compose.yml. */

interface Service {
  command?: string[];
  environment?: Record<string, string>;
  volumes?: string[];
}
const { services } = parse(read('docker-compose.yml'), { merge: true }) as { services: Record<string, Service> };
const { datasources } = readYaml<{
  datasources: { uid: string; type: string; url: string; isDefault: boolean; jsonData: { timeInterval: string } }[];
}>('infra/grafana/provisioning/datasources/prometheus.yml');
const { providers } = readYaml<{ providers: { type: string; options: { path: string } }[] }>(
  'infra/grafana/provisioning/dashboards/callplane.yml',
);
/** The file of this repository that a container sees there. */
function mounted(service: string, path: string): string | undefined {
  for (const volume of services[service]!.volumes ?? []) {
    const [source = '', target = ''] = volume.split(':');
    const inside = posix.relative(target, path);
    if (source.startsWith('./') && !inside.startsWith('..')) return posix.join(source, inside);
  }
  return undefined;
}

describe('docker-compose.yml', () => {
  test('shows Prometheus its configuration, and that names apps and the port of their metrics', () => {
    const flag = services['prometheus']!.command!.find((each) => each.startsWith('--config.file='))!;
    expect(mounted('prometheus', flag.split('=')[1]!)).toBe('infra/prometheus/prometheus.yml');
    const [targets] = prometheusConfig.scrape_configs[0]!.dns_sd_configs as { names: string[]; port: number }[];
    const withMetrics = Object.keys(services).filter((name) => services[name]!.environment?.['METRICS_PORT']);
    expect([...targets!.names].sort()).toEqual(withMetrics.sort());
    for (const name of withMetrics) expect(services[name]!.environment!['METRICS_PORT']).toBe(String(targets!.port));
  });

  test('shows Grafana what is provisioned where it looks', () => {
    // Grafana reads these two folders of its own accord.
    for (const folder of ['datasources', 'dashboards']) {
      const inside = mounted('grafana', `/etc/grafana/provisioning/${folder}`);
      expect(inside).toBe(`infra/grafana/provisioning/${folder}`);
    }
    expect(providers.map(({ type }) => type)).toEqual(['file']);
    expect(mounted('grafana', `${providers[0]!.options.path}/callplane.json`)).toBe(
      'infra/grafana/dashboards/callplane.json',
    );
    expect(existsSync(fileOf('infra/grafana/dashboards/callplane.json'))).toBe(true);
  });

  test('has the Prometheus that Grafana asks, as often as it has news', () => {
    expect(datasources).toHaveLength(1);
    const [{ type, url, isDefault, jsonData }] = datasources as [(typeof datasources)[number]];
    expect([type, isDefault]).toEqual(['prometheus', true]);
    expect(services[new URL(url).hostname]).toBe(services['prometheus']);
    expect(new URL(url).port).toBe('9090');
    // Ranges of `rate` are four of these: with a shorter one than the real one they would hold too few scrapes.
    expect(jsonData.timeInterval).toBe(prometheusConfig.global.scrape_interval);
  });
});

describe('the dashboard', () => {
  test('asks the provisioned data source, and no other', () => {
    const { type, uid } = datasources[0]!;
    for (const { title, datasource, targets = [] } of panels) {
      for (const asked of [datasource, ...targets.map((target) => target.datasource)]) {
        expect([title, asked]).toEqual([title, { type, uid }]);
      }
    }
  });

  test('knows every variable that it uses', () => {
    expect(dashboard.templating.list).toEqual([]);
    const used = panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => expr.match(/\$\{?\w+/g) ?? []));
    expect([...new Set(used)]).toEqual(['$__rate_interval']);
  });

  test('has panels and queries that can be told apart', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { title, targets = [] } of panels) {
      const refIds = targets.map(({ refId }) => refId);
      expect([title, new Set(refIds).size]).toEqual([title, refIds.length]);
    }
  });

  test('has panels that lie beside one another, on 24 columns', () => {
    const overlap = ({ gridPos: a }: Panel, { gridPos: b }: Panel) =>
      a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
    for (const [index, panel] of dashboard.panels.entries()) {
      const { x, y, w, h } = panel.gridPos;
      expect([panel.title, x >= 0 && y >= 0 && w > 0 && h > 0 && x + w <= 24]).toEqual([panel.title, true]);
      const over = dashboard.panels.slice(index + 1).filter((other) => overlap(panel, other));
      expect([panel.title, over.map(({ title }) => title)]).toEqual([panel.title, []]);
    }
  });

  test('says in what each panel counts: seconds where seconds are asked, rates where rates are', () => {
    for (const { title, fieldConfig, targets = [] } of panels) {
      for (const { expr } of targets)
        expect([title, expr, fieldConfig?.defaults.unit]).toEqual([title, expr, unitOf(expr)]);
    }
  });

  test('has nothing but rows beside them', () => {
    const others = dashboard.panels.filter((panel) => !panels.includes(panel));
    // A row that is closed would hold its panels itself, and these tests would not see them.
    for (const { type, panels: inside } of others) expect([type, inside]).toEqual(['row', []]);
  });
});

/** Grafana's name for it. */
function unitOf(expr: string): string {
  if (/_seconds(_bucket)?\b/.test(expr)) return 's';
  if (/process_cpu_seconds_total/.test(expr)) return 'percentunit';
  if (/_bytes\b/.test(expr)) return 'bytes';
  if (/\brate\(callplane_http/.test(expr)) return 'reqps';
  return /\brate\(/.test(expr) ? 'ops' : 'short';
}
