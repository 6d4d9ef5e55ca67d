import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, startRedis, startSentinel } from '@callplane/local-servers';
import { Redis } from 'ioredis';
import { Machine } from './machine.js';
import type { Processes } from './processes.js';

const MASTER = 'callplane';
const SENTINELS = 3;
const DOWN_AFTER_MS = 1000;
const LOOK_EVERY_MS = 100;
/** Longer than Sentinels need on a slow machine, in milliseconds. */
const AGREED_WITHIN_MS = 120_000;

/** A Redis with a replica and three Sentinels. */
export class RedisTrio {
  readonly servers: Machine[] = [];
  readonly sentinels: Machine[] = [];
  readonly #ports: number[] = [];
  readonly #sentinelPorts: number[] = [];

  constructor(
    private readonly processes: Processes,
    private readonly password: string,
  ) {}

  /** The value of REDIS_URL. */
  get url(): string {
    const hosts = this.#sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',');
    return `redis+sentinel://:${this.password}@${hosts}/${MASTER}`;
  }

  async start(): Promise<void> {
    const [first, second] = [await freePort(), await freePort()];
    this.#ports.push(first, second);
    const { password, processes } = this;
    for (const [n, port] of this.#ports.entries()) {
      const dir = join(processes.dir, `redis-${n + 1}`);
      const replica = n === 0 ? {} : { replicaOf: first };
      // After a promotion, the Sentinels write into the configuration of a server whom it follows.
      const machine = new Machine(
        `redis ${n + 1}`,
        (onSpawn) => startRedis({ dir, port, password, onSpawn, ...replica }),
        processes,
      );
      this.servers.push(machine);
      await machine.start();
    }
    for (let n = 1; n <= SENTINELS; n += 1) {
      const [dir, port] = [join(processes.dir, `sentinel-${n}`), await freePort()];
      this.#sentinelPorts.push(port);
      const master = { name: MASTER, port: first, password };
      const machine = new Machine(
        `sentinel ${n}`,
        (onSpawn) => startSentinel({ dir, port, master, quorum: 2, downAfterMs: DOWN_AFTER_MS, onSpawn }),
        processes,
      );
      this.sentinels.push(machine);
      await machine.start();
    }
    await this.#agreed();
  }

  /** Resolves when every Sentinel knows the others and the replica. */
  async #agreed(): Promise<void> {
    const untilMs = performance.now() + AGREED_WITHIN_MS;
    while (performance.now() < untilMs) {
      const views = await Promise.all(this.#sentinelPorts.map((port) => this.#view(port)));
      if (views.every((view) => view['num-slaves'] === '1' && view['num-other-sentinels'] === '2')) return;
      await delay(LOOK_EVERY_MS);
    }
    throw new Error(`the Sentinels did not find each other within ${AGREED_WITHIN_MS / 1000} s`);
  }

  /** Removes all keys. */
  async flush(): Promise<void> {
    await Promise.all(
      this.#ports.map((port) => over(port, this.password, (redis) => redis.flushall()).catch(() => null)),
    );
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((machine) => machine.stop()));
  }

  #view(port: number): Promise<Record<string, string>> {
    return over(port, undefined, async (redis) => {
      const list = (await redis.call('SENTINEL', 'MASTER', MASTER)) as string[];
      return Object.fromEntries(list.flatMap((name, n) => (n % 2 === 0 ? [[name, list[n + 1] ?? '']] : [])));
    }).catch(() => ({}));
  }
}

async function over<T>(port: number, password: string | undefined, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({
    host: '127.0.0.1',
    port,
    ...(password === undefined ? {} : { password }),
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: 1000,
    commandTimeout: 1000,
    maxRetriesPerRequest: 0,
  });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
