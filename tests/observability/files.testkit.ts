import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@callplane/testing';
import { parse } from 'yaml';

/** Typed access to the files of infra/prometheus and infra/grafana. */

export interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; playbook: string };
}

interface Panel {
  title: string;
  targets?: { expr: string; legendFormat: string }[];
}

export interface PrometheusConfig {
  global: { scrape_interval: string; evaluation_interval: string };
  rule_files: string[];
  scrape_configs: { job_name: string; dns_sd_configs?: object[] }[];
}

export const fileOf = (path: string) => join(repositoryRoot, path);
export const read = (path: string) => readFileSync(fileOf(path), 'utf8');
export const readYaml = <T>(path: string) => parse(read(path)) as T;

export const prometheusConfig = readYaml<PrometheusConfig>('infra/prometheus/prometheus.yml');
export const rules = readYaml<{ groups: { rules: Rule[] }[] }>('infra/prometheus/alerts.yml').groups.flatMap(
  (group) => group.rules,
);
const dashboard = JSON.parse(read('infra/grafana/dashboards/callplane.json')) as { panels: Panel[] };
export const panels = dashboard.panels.filter(({ targets = [] }) => targets.length > 0);
