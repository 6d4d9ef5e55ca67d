import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, startPostgres } from '@callplane/local-servers';
import { copyPostgres } from '@callplane/testing';
import pg from 'pg';
import { Machine, until } from './machine.js';
import type { Processes } from './processes.js';

const STANDBY = 'standby';
/** Room on the small disk of each server. */
const DISK = '700m';
const SETTINGS = [
  'max_wal_size=96MB',
  'min_wal_size=64MB',
  'wal_keep_size=64MB',
  'wal_receiver_timeout=5s',
  'wal_sender_timeout=5s',
];
/** Bytes of one write that fills a disk. With small ones, a busy machine needs a minute. The last write is shorter. */
const CHUNK = 4 * 1024 * 1024;
/** Longer than a server needs that shares a busy machine with everything else, in milliseconds. */
const CONNECT_WITHIN_MS = 60_000;
/** For one statement of an administrator, such as the checkpoint before a copy. */
const STATEMENT_WITHIN_MS = 120_000;
/** Longer than a standby needs to catch up on a slow machine, in milliseconds. */
const IN_STEP_WITHIN_MS = 300_000;

interface Node {
  machine: Machine;
  port: number;
  disk: string;
  dataDir: string;
  isStandby: boolean;
}

/** PostgreSQL with a synchronous standby. Each has a small disk of its own where this process may mount one. */
export class PostgresPair {
  readonly nodes: Node[] = [];
  readonly hasSmallDisks: boolean;
  #primary = 0;

  constructor(
    private readonly processes: Processes,
    private readonly password: string,
  ) {
    const isRoot = process.platform === 'linux' && process.getuid?.() === 0;
    this.hasSmallDisks = isRoot && canMount(join(processes.dir, 'probe'));
  }

  get primary(): Node {
    return this.#node(this.#primary);
  }

  get standby(): Node {
    return this.#node(1 - this.#primary);
  }

  #node(index: number): Node {
    const node = this.nodes[index];
    if (node === undefined) throw new Error('PostgreSQL has not been started');
    return node;
  }

  /** The URL of the application's role for these ports, which lead to the two servers. */
  urlFor(ports: readonly number[]): string {
    const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',');
    return `postgresql://callplane:${this.password}@${hosts}/callplane?target_session_attrs=read-write`;
  }

  async start(): Promise<void> {
    for (const name of ['postgres 1', 'postgres 2']) this.nodes.push(await this.#newNode(name));
    await this.primary.machine.start();
    await this.#makeStandby();
  }

  /**
   * The standby becomes the primary, and the former primary, which must be dead or frozen, gets a copy and becomes the
   * standby. Resolves when commits wait for it again.
   */
  async promote(): Promise<void> {
    const former = this.primary;
    await this.#asAdmin(this.standby, (client) => client.query('SELECT pg_promote(true, 60)'));
    this.standby.isStandby = false;
    this.#primary = 1 - this.#primary;
    await this.#alter('RESET synchronous_standby_names');
    // It must never accept a write again: it may be frozen and not dead.
    former.machine.kill();
    await this.#makeStandby();
  }

  async fill(): Promise<void> {
    const chunk = Buffer.alloc(CHUNK);
    const ballast = await open(join(this.primary.disk, 'ballast'), 'w');
    try {
      for (;;) await ballast.write(chunk);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      await ballast.close();
    }
  }

  empty(): void {
    for (const { disk } of this.nodes) rmSync(join(disk, 'ballast'), { force: true });
  }

  /**
   * Resolves when commits wait for a standby that is in step.
   * @throws Error if that takes too long: the run could not end.
   */
  async inStep(): Promise<void> {
    await until('the standby was not in step', IN_STEP_WITHIN_MS, async () => {
      const replies = await this.#asAdmin(this.primary, (client) =>
        client.query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'`),
      ).catch(() => null);
      return replies?.rowCount === 1;
    });
  }

  async stop(): Promise<void> {
    for (const { machine, disk } of [...this.nodes].reverse()) {
      await machine.stop();
      if (this.hasSmallDisks) spawnSync('umount', ['-l', disk], { stdio: 'ignore' });
    }
  }

  async #newNode(name: string): Promise<Node> {
    const disk = join(this.processes.dir, name.replace(' ', '-'));
    mkdirSync(disk);
    if (this.hasSmallDisks) {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK},mode=755`, 'tmpfs', disk]);
      // Also if the run is interrupted. A disk that is gone already is an error.
      this.processes.onDestroy(() => spawnSync('umount', ['-l', disk], { stdio: 'ignore' }));
    }
    const port = await freePort();
    const node: Node = {
      port,
      disk,
      dataDir: join(disk, 'data'),
      isStandby: false,
      machine: new Machine(
        name,
        (onSpawn) =>
          startPostgres({
            dataDir: node.dataDir,
            logFile: join(this.processes.dir, `${name.replace(' ', '-')}.log`),
            port,
            password: this.password,
            durable: true,
            settings: SETTINGS,
            onSpawn,
            ...(node.isStandby ? { standbyOf: { port: this.primary.port, name: STANDBY } } : {}),
          }),
        this.processes,
      ),
    };
    return node;
  }

  async #makeStandby(): Promise<void> {
    const { primary, standby } = this;
    while (existsSync(standby.dataDir)) {
      // The children of a killed server may still write.
      rmSync(standby.dataDir, { recursive: true, force: true, maxRetries: 10 });
    }
    await copyPostgres(this.#adminOf(primary), primary.dataDir, standby.dataDir, () => Promise.resolve());
    standby.isStandby = true;
    await standby.machine.start();
    await this.#alter(`SET synchronous_standby_names = '${STANDBY}'`);
    await this.inStep();
  }

  async #alter(setting: string): Promise<void> {
    await this.#asAdmin(this.primary, async (client) => {
      await client.query(`ALTER SYSTEM ${setting}`);
      await client.query('SELECT pg_reload_conf()');
    });
  }

  #adminOf({ port }: Node): pg.ClientConfig {
    return {
      connectionString: `postgresql://postgres:${this.password}@127.0.0.1:${port}/postgres`,
      connectionTimeoutMillis: CONNECT_WITHIN_MS,
      query_timeout: STATEMENT_WITHIN_MS,
    };
  }

  async #asAdmin<T>(node: Node, work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client(this.#adminOf(node));
    client.on('error', () => undefined);
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }
}

function canMount(probe: string): boolean {
  mkdirSync(probe);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', probe], { stdio: 'ignore' });
    execFileSync('umount', [probe], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
