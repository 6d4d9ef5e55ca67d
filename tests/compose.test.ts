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
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

/** Checks the file without a Docker engine, against the schema of the Compose specification and against the apps. */

interface Service {
  image?: string;
  environment?: Record<string, string>;
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  user?: string;
  read_only?: boolean;
  healthcheck?: { test?: string[] };
  ports?: string[];
  profiles?: string[];
  deploy?: { resources?: { limits?: object } };
  restart?: string;
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
const NOT_PASSED_ON: [names: RegExp, reason: string][] = [
  [/^REDIS_(PASSWORD|(CA|CERT|KEY)_FILE|SENTINEL_(USERNAME|PASSWORD))$/, 'for a Redis of your own'],
  [/^DATABASE_(PASSWORD(_FILE)?|CA_FILE|POOLER|DIRECT_URL)$/, 'for a PostgreSQL of your own'],
  [/^OTEL_(EXPORTER_OTLP_(PROTOCOL|HEADERS)|SERVICE_NAME|RESOURCE_ATTRIBUTES|SDK_DISABLED)$/, 'the default fits'],
  [/^OTEL_((TRACES|METRICS|LOGS)_EXPORTER|METRIC_EXPORT_INTERVAL)$/, 'the default fits'],
  [/^MEDIA_DATABASE_URL$/, 'for `rtc media agent`, which runs beside media servers of other machines'],
  [/^MEDIA_ALLOW_OUTDATED$/, 'the image builds a current Janus'],
  [/^INSTANCE_ID$/, 'for who starts processes on one machine'],
  [/^(HEALTH_)?HOST$/, 'containers listen on all of their own addresses'],
  [/^(HEALTH_PORT|PRISMA_DIR)$/, 'set by the image'],
  [/^DRAIN_(DELAY|IDLE)_MS$/, 'go with infra/nginx'],
  [
    /^(RECORDER_)?(LEASE|SWEEP_INTERVAL|DELIVERY_DEADLINE|DNS_DEADLINE)_MS$/,
    'part of the contract; shorter in tests only',
  ],
  [/^CALLPLANE_(URL|SIGNALING_URL|API_KEY)$/, 'for `rtc listen` and `rtc doctor --from-here`, which run elsewhere'],
];
/** Settings with a fixed value in docker-compose.yml, with the reason. */
const FIXED: Record<string, string> = {
  NODE_ENV: 'containers are for production',
  PORT: 'infra/nginx/upstreams.conf names it',
  HEALTH_CHECK_PORT: 'goes with PORT',
  RECORDINGS_FOLDER: 'a volume of that file',
  RECORDER_SCRATCH_FOLDER: 'a volume of that file',
  MEDIA_CAPTURE_FOLDER: 'a volume of that file',
  METRICS_HOST: 'Prometheus asks from the containers’ network',
  METRICS_PORT: 'infra/prometheus/prometheus.yml names it',
};

async function settingsOf(app: string): Promise<string[]> {
  const module = await import(pathToFileURL(join(repositoryRoot, 'apps', app, 'dist', 'config.js')).href);
  const config = Object.values(module).find((each) => typeof each === 'object') as { properties: object };
  return Object.keys(config.properties);
}
const appOf = ({ image }: Service) => /^callplane\/(?!janus:)([a-z-]+):\$/.exec(image ?? '')?.[1];

describe('docker-compose.yml', () => {
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

  test('every server has limits, a restart policy and a health check, and every app a read-only file system', () => {
    for (const [name, service] of services) {
      const { restart, deploy, healthcheck, read_only } = service;
      const isApp = appOf(service) !== undefined;
      if (isApp) expect([name, read_only]).toEqual([name, true]);
      if (['migrate', 'cli'].includes(name)) continue;
      const limits = { cpus: expect.any(String), memory: expect.any(String), pids: expect.any(Number) };
      expect([name, restart, deploy?.resources?.limits]).toEqual([name, 'unless-stopped', limits]);
      // The images of the apps have their own.
      if (!isApp) expect([name, healthcheck?.test]).toEqual([name, expect.any(Array)]);
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

  test.each(APPS)('%s gets every setting that it knows, unless there is a reason', async (app) => {
    const given = new Set(
      services
        .filter(([, service]) => appOf(service) === app)
        .flatMap(([, { environment = {} }]) => Object.keys(environment))
        .map((name) => name.replace(/_FILE$/, '')),
    );
    const known = await settingsOf(app);
    const isExcused = (name: string) => NOT_PASSED_ON.some(([names]) => names.test(name));
    expect(known.filter((name) => !given.has(name) && !isExcused(name))).toEqual([]);
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
});

describe('infra/secrets.sh', () => {
  test('creates every secret once and denies other users access to the folder', () => {
    const root = mkdtempSync(join(tmpdir(), 'callplane-test-secrets-'));
    try {
      mkdirSync(join(root, 'infra'));
      for (const name of ['secrets.sh', 'redis'])
        cpSync(join(repositoryRoot, 'infra', name), join(root, 'infra', name), { recursive: true });
      const run = () => execFileSync(join(root, 'infra', 'secrets.sh'), { encoding: 'utf8' });
      expect(run().trim().split('\n')).toHaveLength(Object.keys(compose.secrets).length);
      const contents = () =>
        readdirSync(join(root, 'secrets')).map((name) => [name, readFileSync(join(root, 'secrets', name), 'utf8')]);
      const made = contents();
      expect(made.map(([name]) => name).sort()).toEqual(Object.keys(compose.secrets).sort());
      const values = made.map(([, value]) => value).filter((value) => value !== '');
      expect(new Set(values).size).toBe(values.length);
      const empty = made.filter(([, value]) => value === '').map(([name]) => name);
      expect(empty.sort()).toEqual(['recordings_s3_secret', 'webhook_proxy_url']);
      expect(statSync(join(root, 'secrets')).mode & 0o777).toBe(0o700);
      expect(run()).toBe('');
      expect(contents()).toEqual(made);
      // A missing file alone is made, from a URL of other servers, whose password is in a file of its own.
      const servers = 'db1.example.com:5432,db2.example.com:5432/callplane?sslmode=verify-full';
      for (const name of ['database_url', 'media_database_url']) rmSync(join(root, 'secrets', name));
      writeFileSync(join(root, 'secrets', 'database_url'), `postgresql://callplane@${servers}`);
      expect(run()).toBe('made secrets/media_database_url\n');
      const own = readFileSync(join(root, 'secrets', 'media_database_url'), 'utf8');
      expect(own.replace(/:[0-9a-f]{48}@/, '@')).toBe(`postgresql://callplane_media@${servers}`);
      rmSync(join(root, 'secrets', 'api_redis_url'));
      writeFileSync(join(root, 'secrets', 'redis_url'), 'rediss+sentinel://:p@s1,s2,s3/callplane');
      expect(run()).toBe('made secrets/api_redis_url\nmade secrets/redis_users\n');
      const redisUrl = readFileSync(join(root, 'secrets', 'api_redis_url'), 'utf8');
      expect(redisUrl.replace(/:[0-9a-f]{48}@/, '@')).toBe('rediss+sentinel://callplane-api@s1,s2,s3/callplane');
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});
