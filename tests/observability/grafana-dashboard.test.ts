import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { fileOf, prometheusConfig, read, readYaml } from './files.testkit.js';

/** Checks Grafana's configuration without a Grafana, for consistency and against docker-compose.yml. */

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
/** The file of this repository that is mounted at a path of a container. */
function mounted(service: string, path: string): string | undefined {
  for (const volume of services[service]!.volumes ?? []) {
    const [source = '', target = ''] = volume.split(':');
    const inside = posix.relative(target, path);
    if (source.startsWith('./') && !inside.startsWith('..')) return posix.join(source, inside);
  }
  return undefined;
}

describe('docker-compose.yml', () => {
  test('mounts the configuration of Prometheus, which names the apps and their metrics port', () => {
    const flag = services['prometheus']!.command!.find((each) => each.startsWith('--config.file='))!;
    expect(mounted('prometheus', flag.split('=')[1]!)).toBe('infra/prometheus/prometheus.yml');
    const [targets] = prometheusConfig.scrape_configs[0]!.dns_sd_configs as { names: string[]; port: number }[];
    const withMetrics = Object.keys(services).filter((name) => services[name]!.environment?.['METRICS_PORT']);
    expect([...targets!.names].sort()).toEqual(withMetrics.sort());
    for (const name of withMetrics) expect(services[name]!.environment!['METRICS_PORT']).toBe(String(targets!.port));
  });

  test('mounts the provisioning files where Grafana reads them', () => {
    // Grafana reads these two folders by default.
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

  test('runs the Prometheus of Grafana’s data source, with the same interval as its scrapes', () => {
    expect(datasources).toHaveLength(1);
    const [{ type, url, isDefault, jsonData }] = datasources as [(typeof datasources)[number]];
    expect([type, isDefault]).toEqual(['prometheus', true]);
    expect(services[new URL(url).hostname]).toBe(services['prometheus']);
    expect(new URL(url).port).toBe('9090');
    // Ranges of `rate` span four intervals: with too short an interval, they would contain too few scrapes.
    expect(jsonData.timeInterval).toBe(prometheusConfig.global.scrape_interval);
  });
});
