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

interface ServerOptions {
  /** More lines for its configuration. */
  settings?: readonly string[];
  tls?: RedisCertificates;
  replicaOf?: number;
  /** Makes it the first node of a cluster. */
  isCluster?: boolean;
}

/** Starts a Redis for this test file alone, with an append-only file and a password. */
export async function startTestRedis({ isCluster, ...options }: ServerOptions = {}): Promise<TestServer> {
  const dir = temporaryDirectory('redis');
  const port = await freePort();
  // The default port of a cluster's bus lies where outgoing connections have theirs.
  const cluster = isCluster === true ? ['cluster-enabled yes', `cluster-port ${await freePort()}`] : [];
  const settings = [...(options.settings ?? []), ...cluster];
  return testServer(dir, () =>
    startRedis({ dir: join(dir, 'redis'), port, password: PASSWORD, ...program, ...options, settings }),
  );
}

interface TestSentinels {
  /** The value of REDIS_URL. */
  readonly url: string;
  /** The value of REDIS_SENTINEL_PASSWORD. */
  readonly sentinelPassword: string;
  /** The master at the start, and its replica. */
  readonly servers: readonly TestServer[];
  /** The present master as the Sentinels that answer name it, from the latest promotion; null if none answers. */
  master(): Promise<TestServer | null>;
}

/**
 * Starts a master with a replica, and Sentinels that promote the replica within seconds once the master does not answer.
 * Resolves when the replica is in step and every Sentinel knows all others, because only then can they agree.
 */
export async function startTestSentinels({
  sentinels: count = 3,
  tls,
}: { sentinels?: number; tls?: RedisCertificates } = {}): Promise<TestSentinels> {
  const secure = tls === undefined ? {} : { tls };
  const first = await startTestRedis(secure);
  const servers = [first, await startTestRedis({ ...secure, replicaOf: first.port })];
  const master = { name: MASTER, port: first.port, password: PASSWORD };
  const quorum = Math.floor(count / 2) + 1;
  const options = { password: SENTINEL_PASSWORD, master, quorum, downAfterMs: 1000, ...program, ...secure };
  const sentinels: TestServer[] = [];
  for (let n = 0; n < count; n += 1) {
    const dir = temporaryDirectory('sentinel');
    const port = await freePort();
    sentinels.push(await testServer(dir, () => startSentinel({ dir: join(dir, 'sentinel'), port, ...options })));
  }
  await eventually(async () => {
    const views = await Promise.all(sentinels.map(viewOf));
    return views.every(
      (view) =>
        view['num-slaves'] === '1' && Number(view['num-other-sentinels']) === count - 1 && view['flags'] === 'master',
    );
  });
  await eventually(async () => {
    const info = await overRedis(first.url, (redis) => redis.info('replication'));
    return info.includes('state=online');
  });
  const addresses = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return {
    url: `${tls === undefined ? 'redis' : 'rediss'}+sentinel://:${PASSWORD}@${addresses}/${MASTER}`,
    sentinelPassword: SENTINEL_PASSWORD,
    servers,
    master: async () => {
      const views = await Promise.all(sentinels.map((sentinel) => viewOf(sentinel).catch(() => null)));
      const known = views.filter((view) => view !== null);
      known.sort((a, b) => Number(b['config-epoch']) - Number(a['config-epoch']));
      return servers.find(({ port }) => port === Number(known[0]?.['port'])) ?? null;
    },
  };
}

/** The view of a Sentinel of the master. */
async function viewOf(sentinel: TestServer): Promise<Record<string, string>> {
  const reply = await overRedis(sentinel.url, (redis) => redis.call('SENTINEL', 'MASTER', MASTER));
  const list = reply as string[];
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
