import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTestDatabase, repositoryRoot, spawnApp, startTestRedis } from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

/** Alerts and dashboard ask for metrics that some app really has, with labels that they really have. */

const APPS = ['api', 'signaling', 'cleanup-worker', 'webhook-worker'];
const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; playbook: string };
}
const rules = (parse(read('infra/prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const dashboard = JSON.parse(read('infra/grafana/dashboards/callplane.json')) as {
  panels: { id: number; title: string; type: string; targets?: { expr: string }[] }[];
};
const expressions = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];
/** Names that can be asked for, with the labels that samples of them carried. */
const names = new Set<string>(['up']);

beforeAll(async () => {
  const [database, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const apps = await Promise.all(
    APPS.map((name) => spawnApp({ name, env: { DATABASE_URL: database.url, REDIS_URL: redis.url } })),
  );
  for (const app of apps) {
    const text = await (await fetch(app.metricsUrl)).text();
    for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      names.add(name!);
      if (type === 'histogram') for (const suffix of ['bucket', 'sum', 'count']) names.add(`${name!}_${suffix}`);
    }
  }
  await Promise.all(apps.map((app) => app.stop()));
});

describe('every metric that is asked for exists', () => {
  test.each(expressions)('%s: %s', (_where, expr) => {
    const asked = expr.match(/\b(callplane|nodejs|process)_\w+/g) ?? (/\bup\b/.test(expr) ? ['up'] : []);
    expect(asked).not.toEqual([]);
    expect(asked.filter((name) => !names.has(name))).toEqual([]);
  });
});

test('every metric of ours is on the dashboard or in an alert', () => {
  const asked = expressions.map(([, expr]) => expr).join('\n');
  const ours = [...names].filter((name) => name.startsWith('callplane_') && !/_(bucket|sum|count)$/.test(name));
  expect(ours.filter((name) => !asked.includes(name))).toEqual([]);
});

test('every metric of ours stands in docs/operations.md, and nothing else', () => {
  const documented = new Set(read('docs/operations.md').match(/\bcallplane_[a-z_]+/g));
  const ours = [...names].filter((name) => name.startsWith('callplane_'));
  expect(ours.filter((name) => !/_(bucket|sum|count)$/.test(name) && !documented.has(name))).toEqual([]);
  expect([...documented].filter((name) => !names.has(name))).toEqual([]);
});

test('no label holds an id, a URL or a path', () => {
  const labels = expressions.flatMap(([, expr]) =>
    [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/,\s*/)),
  );
  expect(labels.filter((label) => /id$|url|path|room|participant$/i.test(label))).toEqual([]);
});

test('every alert leads to a playbook that is there', () => {
  const headings = new Set(
    [...read('docs/operations.md').matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
  for (const { alert, annotations, labels } of rules) {
    const [file, anchor] = annotations.playbook.split('#');
    expect([alert, file, labels.severity]).toEqual([
      alert,
      'docs/operations.md',
      expect.stringMatching(/^(page|ticket)$/),
    ]);
    expect([alert, headings.has(anchor!)]).toEqual([alert, true]);
  }
});
