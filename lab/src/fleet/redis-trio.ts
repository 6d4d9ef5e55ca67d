import { join } from 'node:path';
import { freePort, startRedis, startSentinel } from '@callplane/local-servers';
import { overRedis, setUsers } from '@callplane/testing';
import { Machine, until } from './machine.js';
import type { Processes } from './processes.js';

const MASTER = 'callplane';
const SENTINELS = 3;
const DOWN_AFTER_MS = 1000;
/** Longer than Sentinels need on a slow machine, in milliseconds. */
const AGREED_WITHIN_MS = 120_000;
/** Longer than servers need to be ready for a change of roles after another fault, in milliseconds. */
const READY_WITHIN_MS = 300_000;

export class RedisTrio {
  readonly servers: Machine[] = [];
  readonly sentinels: Machine[] = [];
  readonly #ports: number[] = [];
  readonly #sentinelPorts: number[] = [];

  constructor(
    private readonly processes: Processes,
    private readonly password: string,
  ) {}

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

  /** The server that the Sentinels call the master; null if none of them answers. */
  async master(): Promise<Machine | null> {
    const port = await this.#masterPort();
    return this.servers[this.#ports.indexOf(port ?? 0)] ?? null;
  }

  /** The replica becomes the master, and the master its replica. Resolves when a Sentinel says so. */
  async demote(): Promise<void> {
    let before: number | null = null;
    await until('Redis has no other master', READY_WITHIN_MS, async () => {
      const port = await this.#masterPort();
      before ??= port;
      if (port !== null && port !== before) return true;
      // The first Sentinel that can: two of them would disturb each other. One refuses while no replica is ready.
      for (const sentinel of this.#sentinelPorts) {
        const answer = await overRedis(urlOf(sentinel), (redis) => redis.call('SENTINEL', 'FAILOVER', MASTER)).catch(
          String,
        );
        if (answer === 'OK' || String(answer).includes('INPROG')) break;
      }
      return false;
    });
  }

  /** Removes all keys. Resolves when the master has done so. */
  async flush(): Promise<void> {
    await until('no Redis can be emptied', READY_WITHIN_MS, async () => {
      const flushed = await Promise.all(
        this.#ports.map((port) => overRedis(urlOf(port, this.password), (redis) => redis.flushall()).catch(() => null)),
      );
      return flushed.includes('OK');
    });
  }

  /** Gives every user of both servers further rules. Resolves when both have taken them. */
  async setUsers(...rules: string[]): Promise<void> {
    const left = new Set(this.#ports);
    await until('Redis does not take the rules', READY_WITHIN_MS, async () => {
      for (const port of left) {
        const isTaken = await setUsers({ url: urlOf(port, this.password) }, ...rules).then(
          () => true,
          () => false,
        );
        if (isTaken) left.delete(port);
      }
      return left.size === 0;
    });
  }

  /** Resolves when every Sentinel knows the others and the replica. */
  async #agreed(): Promise<void> {
    await until('the Sentinels do not find each other', AGREED_WITHIN_MS, async () => {
      const views = await this.#views();
      return views.every((view) => view['num-slaves'] === '1' && view['num-other-sentinels'] === '2');
    });
  }

  /** As the Sentinel says that knows the latest change. */
  async #masterPort(): Promise<number | null> {
    const views = (await this.#views()).filter((view) => view['port'] !== undefined);
    views.sort((a, b) => Number(b['config-epoch']) - Number(a['config-epoch']));
    return views[0] === undefined ? null : Number(views[0]['port']);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((machine) => machine.stop()));
  }

  /** Each Sentinel's view of the master; nothing if it does not answer. */
  #views(): Promise<Record<string, string>[]> {
    return Promise.all(
      this.#sentinelPorts.map((port) =>
        overRedis(urlOf(port), async (redis) => {
          const list = (await redis.call('SENTINEL', 'MASTER', MASTER)) as string[];
          return Object.fromEntries(list.flatMap((name, n) => (n % 2 === 0 ? [[name, list[n + 1] ?? '']] : [])));
        }).catch((): Record<string, string> => ({})),
      ),
    );
  }
}

/** Of a server, or of a Sentinel, which has no password. */
function urlOf(port: number, password?: string): string {
  return `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`;
}
