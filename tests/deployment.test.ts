import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';

/** Checks the settings of each app in docker-compose.yml, infra/systemd and infra/kubernetes against the app's own. */

const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');
const UNITS = join(repositoryRoot, 'infra', 'systemd');
const units = Object.fromEntries(readdirSync(UNITS).map((name) => [name, readFileSync(join(UNITS, name), 'utf8')]));

/** An app as one way of deployment starts it. */
interface Placement {
  where: string;
  app: string;
  /** By name; the value of a `_FILE` is a path. */
  settings: Record<string, string>;
  /** Names of the files that it can read. */
  secrets: string[];
  /** Whether other files cannot add settings. */
  isWhole: boolean;
  /** NaN for commands that end by themselves. */
  stopSeconds: number;
  /** Command line or variable with V8's limits. */
  heap: string;
  memory: string;
}

function inCompose(): Placement[] {
  const compose = parse(read('docker-compose.yml'), { merge: true }) as { services: Record<string, any> };
  const heap = /NODE_OPTIONS="([^"]+)"/.exec(read('infra/Dockerfile'))![1]!;
  return Object.entries(compose.services).flatMap(([name, service]) => {
    const app = /^callplane\/(?!janus:)([a-z-]+):\$/.exec(service.image)?.[1];
    if (app === undefined) return [];
    const settings = { ...service.environment };
    // For the health check of the image.
    delete settings.HEALTH_CHECK_PORT;
    const stopSeconds = Number.parseInt(service.stop_grace_period);
    const memory = service.deploy?.resources?.limits?.memory ?? '';
    const where = `the service ${name}`;
    const secrets = (service.secrets ?? []).map((one: string | { target: string }) =>
      typeof one === 'string' ? one : one.target,
    );
    return [{ where, app, settings, secrets, isWhole: true, stopSeconds, heap, memory }];
  });
}

function inSystemd(): Placement[] {
  return Object.entries(units).flatMap(([name, text]) => {
    const valuesOf = (key: string) => [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value!);
    const [start] = valuesOf('ExecStart');
    if (start === undefined) return [];
    const app = /apps\/([a-z-]+)\/dist\/main\.js/.exec(start)![1]!;
    const settings = Object.fromEntries(
      valuesOf('Environment').flatMap((value) => value.split(' ').map((setting) => setting.split('='))),
    );
    const secrets = valuesOf('LoadCredential').map((value) => value.split(':')[0]!);
    const stopSeconds = Number.parseInt(valuesOf('TimeoutStopSec')[0] ?? '');
    const [memory = ''] = valuesOf('MemoryMax');
    return [{ where: `the unit ${name}`, app, settings, secrets, isWhole: false, stopSeconds, heap: start, memory }];
  });
}

function inKubernetes(): Placement[] {
  const files = ['infra/kubernetes/1-migrate.yaml', 'infra/kubernetes/2-apps.yaml'];
  const manifests = files.flatMap((file) => parseAllDocuments(read(file)).map((document) => document.toJS()));
  return manifests.flatMap((manifest): Placement[] => {
    const pod = manifest?.spec?.template?.spec;
    return (pod?.containers ?? []).flatMap(({ name, image, env = [], resources, volumeMounts }: any) => {
      const app = /^callplane\/(?!janus:)([a-z-]+):/.exec(image)?.[1];
      if (app === undefined) return [];
      const mounts = volumeMounts.map((mount: { name: string }) => mount.name);
      const secrets = pod.volumes
        .filter((volume: any) => volume.projected !== undefined && mounts.includes(volume.name))
        .flatMap(({ projected }: any) => projected.sources[0].secret.items.map(({ key }: { key: string }) => key));
      const { NODE_OPTIONS: heap, ...settings } = Object.fromEntries(env.map((each: any) => [each.name, each.value]));
      // A part of other settings.
      delete settings.POD_NAME;
      const where = `the container ${name} of ${manifest.kind} ${manifest.metadata.name}`;
      const stopSeconds = pod.terminationGracePeriodSeconds ?? Number.NaN;
      return [{ where, app, settings, secrets, isWhole: false, stopSeconds, heap, memory: resources.limits.memory }];
    });
  });
}

async function configOf(app: string) {
  const module = await import(pathToFileURL(join(repositoryRoot, 'apps', app, 'dist', 'config.js')).href);
  return Object.values(module).find((each) => typeof each === 'object') as {
    properties: Record<string, { secret?: boolean; default?: unknown }>;
    required?: string[];
  };
}

const placements = [...inCompose(), ...inSystemd(), ...inKubernetes()];
const SERVERS = ['api', 'cleanup-worker', 'recorder', 'signaling', 'webhook-worker'];

describe('every way of deployment', () => {
  test('runs every app, and rtc for migrations', () => {
    for (const each of [inCompose(), inSystemd(), inKubernetes()]) {
      expect([...new Set(each.map(({ app }) => app))].sort()).toEqual([...SERVERS, 'cli'].sort());
    }
  });

  test('gives an app the same secrets', () => {
    for (const app of SERVERS) {
      // In Kubernetes, the file with the app's own user of Redis is named after the app.
      const own = `${app.replaceAll('-', '_')}_redis_url`;
      const given = placements
        .filter((each) => each.app === app)
        .map(({ secrets }) =>
          secrets
            .map((name) => (name === own ? 'redis_url' : name))
            .sort()
            .join(' '),
        );
      expect([app, new Set(given).size]).toEqual([app, 1]);
    }
    // The gateway's role in PostgreSQL has the least rights, and no key to secrets in rows.
    for (const { secrets } of placements.filter(({ app }) => app === 'signaling')) {
      expect(secrets).toContain('gateway_database_url');
      expect(secrets).not.toContain('database_url');
      expect(secrets).not.toContain('encryption_keys');
    }
  });
});

test.each(placements)(
  '$where has only known settings, its secrets as files, and every required setting',
  async (each) => {
    const { properties, required = [] } = await configOf(each.app);
    const names = Object.keys(each.settings).filter((name) => name !== 'NODE_ENV');
    const known = (name: string) => properties[name.replace(/_FILE$/, '')];
    expect(names.filter((name) => known(name) === undefined)).toEqual([]);
    expect(names.filter((name) => (known(name)!.secret === true) !== name.endsWith('_FILE'))).toEqual([]);
    const files = names.filter((name) => name.endsWith('_FILE')).map((name) => basename(each.settings[name]!));
    expect(files.filter((file) => !each.secrets.includes(file))).toEqual([]);
    const missing = required.filter(
      (name) => !names.includes(name) && !names.includes(`${name}_FILE`) && !('default' in properties[name]!),
    );
    if (each.isWhole) expect(missing).toEqual([]);
  },
);

test.each(placements.filter(({ app }) => SERVERS.includes(app)))(
  '$where has time to drain, and a heap of two thirds of its memory',
  async ({ app, settings, stopSeconds, heap, memory }) => {
    const { properties } = await configOf(app);
    const setMs = Number.parseInt(settings['SHUTDOWN_DEADLINE_MS'] ?? '');
    const deadlineMs = Number.isNaN(setMs) ? Number(properties['SHUTDOWN_DEADLINE_MS']!.default) : setMs;
    const delayMs = Number(settings['DRAIN_DELAY_MS'] ?? 0);
    expect(stopSeconds * 1000).toBeGreaterThanOrEqual(delayMs + deadlineMs + 5000);
    const [, semi, old] = /semi-space-size=(\d+) --max-old-space-size=(\d+)/.exec(heap)!;
    const megabytes = Number.parseInt(memory) * (memory.includes('G') ? 1024 : 1);
    expect((Number(old) + 3 * Number(semi)) / megabytes).toBeCloseTo(2 / 3, 1);
  },
);

describe('the systemd units', () => {
  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

  (hasSystemd ? test : test.skip)('are accepted by systemd-analyze verify, which finds a wrong one', () => {
    const dir = temporaryDirectory('systemd');
    try {
      for (const [name, text] of Object.entries(units)) {
        // The program need not be at its place on this machine.
        writeFileSync(join(dir, name), text.replaceAll('/usr/bin/node', process.execPath));
      }
      const verify = (...names: string[]) => {
        const files = names.map((name) => join(dir, name));
        const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files], { encoding: 'utf8' });
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

  test('share one sandbox', () => {
    const sandboxes = Object.entries(units)
      .filter(([name]) => name.endsWith('.service'))
      .map(([, text]) => /^# The app needs the network[\s\S]*?^UMask=.*$/m.exec(text)?.[0]);
    expect(new Set(sandboxes).size).toBe(1);
    expect(sandboxes[0]).toContain('NoNewPrivileges=yes');
  });
});
