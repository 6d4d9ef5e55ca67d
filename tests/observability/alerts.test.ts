import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stopAtEnd, temporaryDirectory } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { fileOf, prometheusConfig, read, readYaml, rules } from './files.testkit.js';

/** Checks infra/prometheus with promtool; prometheus.test.ts loads it into a real Prometheus. */

interface UnitTests {
  rule_files: string[];
  tests: { name: string; alert_rule_test: { alertname: string; exp_alerts?: object[] }[] }[];
}
const unitTests = readYaml<UnitTests>('infra/prometheus/alerts.test.yml');

function promtool(...args: string[]): string {
  const { status, error, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  if (error !== undefined) {
    throw new Error('This test needs promtool: apt-get install --no-install-recommends prometheus', { cause: error });
  }
  if (status !== 0) throw new Error(stdout + stderr);
  return stdout;
}

test('promtool accepts the configuration and the rules', () => {
  expect(promtool('check', 'config', fileOf('infra/prometheus/prometheus.yml'))).toContain('SUCCESS');
  expect(promtool('check', 'rules', fileOf('infra/prometheus/alerts.yml'))).toContain(`${rules.length} rules found`);
});

test('Alertmanager names only alerts that exist', () => {
  const named = read('infra/alertmanager/alertmanager.yml').match(/\bCallplane\w+/g) ?? [];
  expect(named.length).toBeGreaterThan(0);
  expect(rules.map(({ alert }) => alert)).toEqual(expect.arrayContaining(named));
});

describe('alerts', () => {
  test('fire at the right time with the expected texts, and not before', () => {
    const files = testsOfOneAlert();
    expect(promtool('test', 'rules', ...files).match(/SUCCESS/g)).toHaveLength(files.length);
  });

  test.each(rules.map(({ alert }) => alert))(
    '%s has a test in which it fires and one in which it does not',
    (alert) => {
      expect(unitTests.rule_files).toEqual(prometheusConfig.rule_files);
      const cases = unitTests.tests
        .flatMap(({ alert_rule_test }) => alert_rule_test)
        .filter(({ alertname }) => alertname === alert);
      expect(cases.some(({ exp_alerts = [] }) => exp_alerts.length > 0)).toBe(true);
      expect(cases.some(({ exp_alerts = [] }) => exp_alerts.length === 0)).toBe(true);
    },
  );

  test.each(rules)('$alert links a playbook that names it', ({ alert, annotations, labels }) => {
    const [file, anchor] = annotations.playbook.split('#');
    expect([file, labels.severity]).toEqual(['docs/operations/incidents.md', expect.stringMatching(/^(page|ticket)$/)]);
    const sections = read('docs/operations/incidents.md').split(/^#+ /m);
    const found = sections.filter((section) => anchorOf(section.split('\n')[0]!) === anchor);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`\`${alert}\``);
  });
});

/**
 * Writes the unit tests of each alert to a file of their own, with its rules alone: promtool evaluates every rule of a
 * file each 15 s of each test, which takes ten times as long for all of them.
 */
function testsOfOneAlert(): string[] {
  const dir = temporaryDirectory('alerts');
  stopAtEnd(() => {
    rmSync(dir, { recursive: true, force: true });
    return Promise.resolve();
  });
  const { tests, ...settings } = unitTests;
  return tests.map((unit, at) => {
    const named = new Set(unit.alert_rule_test.map(({ alertname }) => alertname));
    const itsRules = rules.filter(({ alert }) => named.has(alert));
    // promtool takes an alert without a rule for one that does not fire.
    expect([unit.name, new Set(itsRules.map(({ alert }) => alert))]).toEqual([unit.name, named]);
    writeFileSync(join(dir, `rules-${at}.yml`), stringify({ groups: [{ name: 'callplane', rules: itsRules }] }));
    const file = join(dir, `test-${at}.yml`);
    writeFileSync(file, stringify({ ...settings, rule_files: [`rules-${at}.yml`], tests: [unit] }));
    return file;
  });
}

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
