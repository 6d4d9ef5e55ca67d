import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startRedis, startSentinel, type RedisCertificates } from '@callplane/local-servers';
import { Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { stopAtEnd } from './resources.js';
import { temporaryDirectory, testServer, type TestServer } from './test-servers.js';

const PASSWORD = 'test-redis-password';
const SENTINEL_PASSWORD = 'test-sentinel-password';
const MASTER = 'callplane';
/** Tests run with another program, such as `valkey-server`, if this variable names it. */
const PROGRAM = process.env['TEST_REDIS_PROGRAM'];
const program = PROGRAM === undefined || PROGRAM === '' ? {} : { program: PROGRAM };

/** A private certificate authority and a certificate for 127.0.0.1 and localhost. */
export interface TestAuthority extends RedisCertificates {
  /** The file with the certificate of the authority, as REDIS_CA_FILE names it. */
  caFile: string;
}

/** Creates an authority with the `openssl` command, which the tests require. */
export function makeTestAuthority(): TestAuthority {
  const dir = temporaryDirectory('authority');
  const file = (name: string): string => join(dir, name);
  const openssl = (...options: string[]): unknown => execFileSync('openssl', options, { stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-days',
    '2',
    '-subj',
    '/CN=test',
    '-out',
    file('ca.pem'),
    '-keyout',
    file('ca.key'),
  );
  openssl('req', ...newKey, '-subj', '/CN=redis', '-out', file('redis.csr'), '-keyout', file('redis.key'));
  writeFileSync(file('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
  const issuer = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '2'];
  openssl('x509', '-req', '-in', file('redis.csr'), ...issuer, '-extfile', file('names'), '-out', file('redis.pem'));
  const read = (name: string): string => readFileSync(file(name), 'utf8');
  return { ca: read('ca.pem'), cert: read('redis.pem'), key: read('redis.key'), caFile: file('ca.pem') };
}

interface ServerOptions {
  tls?: RedisCertificates;
  replicaOf?: number;
}

/** Starts a Redis for this test file alone, with an append-only file and a password. */
export async function startTestRedis(options: ServerOptions = {}): Promise<TestServer> {
  const dir = temporaryDirectory('redis');
  const port = await freePort();
  return testServer(dir, () =>
    startRedis({ dir: join(dir, 'redis'), port, password: PASSWORD, ...program, ...options }),
  );
}

export interface TestSentinels {
  /** The value of REDIS_URL. */
  readonly url: string;
  /** The value of REDIS_SENTINEL_PASSWORD. */
  readonly sentinelPassword: string;
  /** The first one is the master at the start, the others are its replicas. */
  readonly servers: readonly TestServer[];
  readonly sentinels: readonly TestServer[];
  /** What the Sentinels that answer say about the replicas. */
  replicas(): Promise<Record<string, string>[]>;
  /** The present master as the Sentinels that answer name it, from the latest promotion; null if none answers. */
  master(): Promise<TestServer | null>;
}

/**
 * Starts a master with replicas, and Sentinels that promote a replica within seconds once the master does not answer.
 * Resolves when the replicas are in step and every Sentinel knows all others, because only then can they agree.
 */
export async function startTestSentinels({
  replicas = 1,
  sentinels: count = 3,
  downAfterMs = 1000,
  tls,
}: {
  replicas?: number;
  sentinels?: number;
  downAfterMs?: number;
  tls?: RedisCertificates;
} = {}): Promise<TestSentinels> {
  const secure = tls === undefined ? {} : { tls };
  const first = await startTestRedis(secure);
  const servers = [first];
  for (let n = 0; n < replicas; n += 1) servers.push(await startTestRedis({ ...secure, replicaOf: first.port }));
  const sentinels: TestServer[] = [];
  for (let n = 0; n < count; n += 1) {
    const dir = temporaryDirectory('sentinel');
    const port = await freePort();
    const master = { name: MASTER, port: first.port, password: PASSWORD };
    const start = () =>
      startSentinel({
        dir: join(dir, 'sentinel'),
        port,
        password: SENTINEL_PASSWORD,
        master,
        quorum: Math.floor(count / 2) + 1,
        downAfterMs,
        ...program,
        ...secure,
      });
    sentinels.push(await testServer(dir, start));
  }
  await eventually(async () => {
    const views = await Promise.all(sentinels.map(viewOf));
    return views.every(
      (view) =>
        view !== null &&
        Number(view['num-slaves']) === replicas &&
        Number(view['num-other-sentinels']) === count - 1 &&
        view['flags'] === 'master',
    );
  });
  await eventually(async () => {
    const info = await overRedis(first.url, (redis) => redis.info('replication'));
    return (info.match(/state=online/g)?.length ?? 0) === replicas;
  });
  const addresses = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return {
    url: `${tls === undefined ? 'redis' : 'rediss'}+sentinel://:${PASSWORD}@${addresses}/${MASTER}`,
    sentinelPassword: SENTINEL_PASSWORD,
    servers,
    sentinels,
    replicas: async () => {
      const views = sentinels.map((sentinel) =>
        overRedis(sentinel.url, (redis) => redis.call('SENTINEL', 'REPLICAS', MASTER)),
      );
      return ((await Promise.any(views)) as string[][]).map(fieldsOf);
    },
    master: async () => {
      const views = await Promise.all(sentinels.map((sentinel) => viewOf(sentinel).catch(() => null)));
      const known = views.filter((view) => view !== null);
      known.sort((a, b) => Number(b['config-epoch']) - Number(a['config-epoch']));
      return servers.find(({ port }) => port === Number(known[0]?.['port'])) ?? null;
    },
  };
}

/** What a Sentinel says about the master; null if it does not know it. */
async function viewOf(sentinel: TestServer): Promise<Record<string, string> | null> {
  const reply = await overRedis(sentinel.url, (redis) => redis.call('SENTINEL', 'MASTER', MASTER));
  return fieldsOf(reply as string[]);
}

function fieldsOf(list: readonly string[]): Record<string, string> {
  return Object.fromEntries(list.flatMap((name, n) => (n % 2 === 0 ? [[name, list[n + 1] ?? '']] : [])));
}

/** Opens a connection for a test file. */
export async function connectToTestRedis(url: string): Promise<Redis> {
  const redis = new Redis(url, { lazyConnect: true });
  redis.on('error', () => undefined);
  stopAtEnd(() => {
    redis.disconnect();
    return Promise.resolve();
  });
  await redis.connect();
  return redis;
}

/** Runs `work` with a connection to one server. Certificates are not checked: the server is the test's own. */
export async function overRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: 3000,
    commandTimeout: 3000,
    ...(url.startsWith('rediss:') ? { tls: { rejectUnauthorized: false } } : {}),
  });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
