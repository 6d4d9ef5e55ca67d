import {
  type Backlog,
  countLive,
  isSynchronous,
  listMediaNodes,
  readBacklogs,
  readOldestSnapshots,
  readReplication,
  readRetentionLags,
  readTableHealth,
  type TypedSql,
} from '@callplane/db';
import { observeRedis, type RedisClient, type RedisFacts } from '@callplane/queue';
import type { Metrics } from '@callplane/runtime';
import type { Deps } from '../deps.js';

const DATABASE_INTERVAL_MS = 30_000;
type Observed = Pick<Deps, 'database' | 'media' | 'relays'>;

/** A gauge whose values are computed from the last observation. */
interface ObservedGauge {
  name: string;
  help: string;
  label: string;
  read: (values: Values) => Readonly<Record<string, number>>;
}

type Values = Awaited<ReturnType<typeof readState>> & Awaited<ReturnType<typeof readTables>>;

// One statement after another, because the pool has one connection.
async function readState(sql: TypedSql) {
  return {
    replication: await readReplication(sql),
    backlogs: await readBacklogs(sql),
    live: await countLive(sql, null, null),
    mediaNodes: await listMediaNodes(sql),
  };
}

async function readTables(sql: TypedSql, roomRetentionDays: number) {
  return {
    tables: await readTableHealth(sql),
    snapshots: await readOldestSnapshots(sql),
    retention: await readRetentionLags(sql, roomRetentionDays),
  };
}

const GAUGES: readonly ObservedGauge[] = [
  {
    name: 'callplane_postgres_standbys',
    help: 'Standbys that stream from PostgreSQL. `wanted` is 1 if commits need a synchronous one.',
    label: 'kind',
    read: ({ replication: { standbys, synchronousNames } }) => {
      const streaming = standbys.filter(({ state }) => state === 'streaming');
      const synchronous = streaming.filter(isSynchronous).length;
      return { synchronous, other: streaming.length - synchronous, wanted: synchronousNames === '' ? 0 : 1 };
    },
  },
  {
    name: 'callplane_postgres_replication_lag_bytes',
    help: 'Log that a standby of PostgreSQL has not replayed yet.',
    label: 'standby',
    read: ({ replication: { standbys } }) =>
      Object.fromEntries(
        standbys.flatMap(({ name, lagBytes }) => (name === null || lagBytes === null ? [] : [[name, lagBytes]])),
      ),
  },
  {
    name: 'callplane_postgres_commits_waiting',
    help: 'Commits of Callplane that wait for a synchronous standby.',
    label: 'for',
    read: ({ replication }) => ({ standby: replication.waitingCommits }),
  },
  {
    name: 'callplane_oldest_due_seconds',
    help: 'Age of the oldest due row, in seconds.',
    label: 'queue',
    read: ({ backlogs }) => valuesOf(backlogs, ({ oldestDueMs }) => (oldestDueMs ?? 0) / 1000),
  },
  {
    name: 'callplane_due',
    help: 'Due rows that no worker has taken, counted up to 10,000.',
    label: 'queue',
    read: ({ backlogs }) => valuesOf(backlogs, ({ due }) => due),
  },
  {
    name: 'callplane_live',
    help: 'Rooms with live participants, and live participants.',
    label: 'what',
    read: ({ live }) => live,
  },
  {
    name: 'callplane_live_rows',
    help: 'Live rows of a table, as PostgreSQL estimates them.',
    label: 'table',
    read: ({ tables }) => Object.fromEntries(tables.map(({ table, liveRows }) => [table, liveRows])),
  },
  {
    name: 'callplane_dead_rows',
    help: 'Rows of a table that vacuum has not removed, as PostgreSQL estimates them.',
    label: 'table',
    read: ({ tables }) => Object.fromEntries(tables.map(({ table, deadRows }) => [table, deadRows])),
  },
  {
    name: 'callplane_oldest_transaction_seconds',
    help: 'Age of the oldest open transaction of a session, and of the oldest prepared transaction, in seconds.',
    label: 'holder',
    read: ({ snapshots }) =>
      Object.fromEntries(snapshots.flatMap(({ holder, seconds }) => (seconds === null ? [] : [[holder, seconds]]))),
  },
  {
    name: 'callplane_oldest_snapshot_transactions',
    help: 'Transactions since the oldest snapshot: while it is held, vacuum removes no row that was deleted later.',
    label: 'holder',
    read: ({ snapshots }) => Object.fromEntries(snapshots.map(({ holder, transactions }) => [holder, transactions])),
  },
  {
    name: 'callplane_retention_lag_seconds',
    help: 'How long the oldest row is past its retention, in seconds.',
    label: 'what',
    read: ({ retention }) => retention,
  },
  {
    name: 'callplane_media_nodes',
    help: 'Media servers by the state that the workers recorded; draining ones are up.',
    label: 'state',
    read: ({ mediaNodes }) => {
      const counts = { up: 0, draining: 0, down: 0, unknown: 0 };
      for (const { state, draining } of mediaNodes) {
        counts[state === 'up' && draining ? 'draining' : (state ?? 'unknown')] += 1;
      }
      return counts;
    },
  },
];

function valuesOf(backlogs: readonly Backlog[], value: (backlog: Backlog) => number): Record<string, number> {
  return Object.fromEntries(backlogs.map((backlog) => [backlog.queue, value(backlog)]));
}

/**
 * Gauges of the whole deployment that only the database knows. A pass reads them periodically, and every scrape shows
 * the last values. All workers report the same values, so a dashboard has to take the maximum instead of the sum.
 */
export class Observer {
  #values: Values | null = null;
  #databaseAtMs = -Infinity;

  constructor(
    private readonly deps: Observed,
    metrics: Metrics,
    private readonly roomRetentionDays: number,
  ) {
    for (const { read, ...gauge } of GAUGES) {
      metrics.gauges(gauge, () => (this.#values === null ? {} : read(this.#values)));
    }
    metrics.gauges(
      {
        name: 'callplane_media_node_up',
        help: '1 if the media server and its VideoRoom answer this process, else 0.',
        label: 'node',
      },
      () => Object.fromEntries(this.deps.media.all().map(({ id, state }) => [id, state === 'up' ? 1 : 0])),
    );
    metrics.gauges(
      {
        name: 'callplane_turn_server_up',
        help: '1 if this process can close relays of the TURN server, else 0.',
        label: 'server',
      },
      () =>
        Object.fromEntries([...this.deps.relays.states()].map(([server, state]) => [server, state === 'up' ? 1 : 0])),
    );
  }

  /**
   * Reads the gauges. If the database fails, they show nothing instead of stale values. While a query is running, they
   * keep the last values: a scrape without a value would restart the waiting time of an alert, and a slow database
   * makes such scrapes likely.
   */
  async pass(): Promise<void> {
    try {
      const { sql } = this.deps.database;
      const state = await readState(sql);
      const nowMs = performance.now();
      if (this.#values !== null && nowMs - this.#databaseAtMs < DATABASE_INTERVAL_MS) {
        this.#values = { ...this.#values, ...state };
      } else {
        this.#values = { ...state, ...(await readTables(sql, this.roomRetentionDays)) };
        this.#databaseAtMs = nowMs;
      }
    } catch (error) {
      this.#values = null;
      throw error;
    }
  }
}

/** Gauges of the Redis that holds the keys. They are absent while it does not answer. */
export class RedisObserver {
  #facts: RedisFacts | null = null;
  /** Passes in a row that got no answer. A single one means a busy machine, and would restart the wait of an alert. */
  #failures = 0;

  /** @param redis a `command` connection. */
  constructor(
    private readonly redis: RedisClient,
    metrics: Metrics,
  ) {
    const add = (name: string, help: string, read: (facts: RedisFacts) => number): void =>
      metrics.gauge({ name: `callplane_redis_${name}`, help }, () => (this.#facts === null ? null : read(this.#facts)));
    add('master', '1 if the Redis that REDIS_URL leads to is a master, else 0.', ({ role }) =>
      role === 'master' ? 1 : 0,
    );
    add('replicas', 'Replicas of Redis that are connected and in step.', ({ replicas }) => replicas);
    add('memory_used_bytes', 'Memory that Redis uses, in bytes.', ({ usedBytes }) => usedBytes);
    add('memory_used_ratio', 'Part of maxmemory that Redis uses; 0 without maxmemory.', ({ usedBytes, maxBytes }) =>
      maxBytes === 0 ? 0 : usedBytes / maxBytes,
    );
    add('persistence_ok', '1 if Redis has an append-only file and writes it without errors, else 0.', (facts) =>
      facts.appendOnly && facts.isPersisting ? 1 : 0,
    );
  }

  /** Reads the facts. Never throws: `callplane_redis_unusable` says why Redis does not answer. */
  async pass(): Promise<void> {
    try {
      this.#facts = await observeRedis(this.redis);
      this.#failures = 0;
    } catch {
      this.#failures += 1;
      if (this.#failures > 1) this.#facts = null;
    }
  }
}
