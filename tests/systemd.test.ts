import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

/** Checks infra/systemd: with systemd's own checker where it is installed, and against the apps' settings. */

const FOLDER = join(repositoryRoot, 'infra', 'systemd');
const units = Object.fromEntries(readdirSync(FOLDER).map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')]));
const APPS = ['api', 'signaling', 'cleanup-worker', 'webhook-worker'];
const valuesOf = (unit: string, key: string) =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value!);
const compose = parse(readFileSync(join(repositoryRoot, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: Record<string, { secrets?: string[] }>;
};
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

describe('the systemd units', () => {
  (hasSystemd ? test : test.skip)('are accepted by systemd-analyze verify, which finds a wrong one', () => {
    const dir = temporaryDirectory('systemd');
    try {
      for (const [name, text] of Object.entries(units)) {
        // The program need not be at its place on this machine.
        writeFileSync(join(dir, name), text.replaceAll('/usr/bin/node', process.execPath));
      }
      const verify = (...names: string[]) => {
        const { stderr } = spawnSync(
          'systemd-analyze',
          ['verify', '--man=no', ...names.map((name) => join(dir, name))],
          {
            encoding: 'utf8',
          },
        );
        // Other units of the machine may have problems of their own.
        return stderr.split('\n').filter((line) => line.includes('callplane'));
      };
      expect(verify(...Object.keys(units))).toEqual([]);
      writeFileSync(join(dir, 'callplane-wrong.service'), '[Service]\nExecStart=/bin/true\nMemoryMaxx=1\n');
      expect(verify('callplane-wrong.service').join()).toContain('MemoryMaxx');
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  test.each(APPS)('callplane-%s@ has only known settings, the secrets of its app, and time to stop', async (app) => {
    const unit = units[`callplane-${app}@.service`]!;
    const module = await import(pathToFileURL(join(repositoryRoot, 'apps', app, 'dist', 'config.js')).href);
    const { properties } = Object.values(module).find((each) => typeof each === 'object') as {
      properties: Record<string, { secret?: boolean; default?: unknown }>;
    };
    expect(valuesOf(unit, 'ExecStart').join()).toContain(` apps/${app}/dist/main.js`);
    const secrets = valuesOf(unit, 'LoadCredential').map((value) => value.split(':')[0]!);
    expect([...secrets].sort()).toEqual([...compose.services[app]!.secrets!].sort());
    for (const setting of valuesOf(unit, 'Environment').flatMap((value) => value.split(' '))) {
      const [name, value] = setting.split('=') as [string, string];
      if (name === 'NODE_ENV') continue;
      const known = properties[name.replace(/_FILE$/, '')];
      expect([name, known?.secret === true]).toEqual([name, name.endsWith('_FILE')]);
      expect([name, known]).toEqual([name, expect.anything()]);
      if (name.endsWith('_FILE')) expect(secrets).toContain(value.replace('%d/', ''));
    }
    const deadlineMs = Number(properties['SHUTDOWN_DEADLINE_MS']!.default);
    expect(Number.parseInt(valuesOf(unit, 'TimeoutStopSec')[0]!) * 1000).toBeGreaterThanOrEqual(deadlineMs + 5000);
    const [, semi, old] = /semi-space-size=(\d+) --max-old-space-size=(\d+)/.exec(unit)!;
    const heapShare = (Number(old) + 3 * Number(semi)) / Number.parseInt(valuesOf(unit, 'MemoryMax')[0]!);
    expect(heapShare).toBeCloseTo(2 / 3, 2);
  });

  test('of the media agent and of the migration get the secrets and settings that rtc reads', async () => {
    const module = await import(pathToFileURL(join(repositoryRoot, 'apps/cli/dist/config.js')).href);
    const { properties } = Object.values(module).find((each) => typeof each === 'object') as {
      properties: Record<string, { secret?: boolean }>;
    };
    for (const name of ['media-agent', 'migrate']) {
      const unit = units[`callplane-${name}.service`]!;
      const secrets = valuesOf(unit, 'LoadCredential').map((value) => value.split(':')[0]!);
      const settings = valuesOf(unit, 'Environment').filter((setting) => setting !== 'NODE_ENV=production');
      const files = settings.map((setting) => setting.split('=') as [string, string]);
      expect(files.map(([, value]) => value.replace('%d/', '')).sort()).toEqual(secrets.sort());
      for (const [setting] of files) expect(properties[setting.replace(/_FILE$/, '')]).toMatchObject({ secret: true });
    }
  });

  test('share one sandbox', () => {
    const sandboxes = Object.entries(units)
      .filter(([name]) => name.endsWith('.service'))
      .map(([, text]) => /^# The app needs the network[\s\S]*?^UMask=.*$/m.exec(text)?.[0]);
    expect(sandboxes).toHaveLength(6);
    expect(new Set(sandboxes).size).toBe(1);
    expect(sandboxes[0]).toContain('NoNewPrivileges=yes');
  });
});
