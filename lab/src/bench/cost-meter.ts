import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf } from '@callplane/local-servers';
import { Redis } from 'ioredis';
import pg from 'pg';
import { cpuMs, type Stage } from '../fleet/stage.js';

/** Loads the extension that counts statements. Pass them to `openStage`. */
export const METER_SETTINGS = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track_planning=off'];
/** A backend of PostgreSQL adds its transactions to the statistics at most once a second. */
const TRANSACTIONS_SHOWN_MS = 1_200;

/** What one operation costs. */
export interface Cost {
  operations: number;
  /** Load of the machine (1 minute) at the end of the measurement. */
  load: number;
  /** Per operation. */
  statements: number;
  transactions: number;
  postgresUs: number;
  nodeUs: number;
  /** Commands that Redis ran. Those of scripts count as well. */
  redisCommands: number;
  redisUs: number;
}

/**
 * Measures CPU time, statements and commands of everything that the servers do during some work, background work
 * included. CPU time counts in steps of 10 ms, so the work has to take seconds.
 */
export async function openMeter({ postgres, redis }: Stage) {
  // In another database than the app's, so that the meter's own transactions do not count.
  const pool = new pg.Pool({ connectionString: postgres.adminUrl, max: 1 });
  await pool.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
  const client = new Redis(redis.url);

  const cpu = (nodes: readonly number[]) => ({
    postgres: postgresCpuMs(postgres.pid),
    redis: cpuMs(redis.pid),
    node: nodes.reduce((sum, pid) => sum + cpuMs(pid), 0),
  });
  const counts = async () => {
    const { rows } = await pool.query<{ statements: string; transactions: string }>(
      `SELECT (SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s WHERE s.dbid = d.datid) AS statements,
         xact_commit + xact_rollback AS transactions
       FROM pg_stat_database d WHERE datname = 'callplane'`,
    );
    return {
      statements: Number(rows[0]?.statements),
      transactions: Number(rows[0]?.transactions),
      commands: sumOf(await commandsOf(client)),
    };
  };

  return {
    /**
     * @param nodes the processes whose CPU time counts as Node's.
     * @param work resolves to the number of operations.
     */
    async measure(nodes: readonly number[], work: () => Promise<number>): Promise<Cost> {
      await delay(TRANSACTIONS_SHOWN_MS);
      const [countsBefore, cpuBefore] = [await counts(), cpu(nodes)];
      const operations = await work();
      const cpuAfter = cpu(nodes);
      const load = loadavg()[0] ?? NaN;
      await delay(TRANSACTIONS_SHOWN_MS);
      const countsAfter = await counts();
      const each = (before: number, after: number) => (after - before) / operations;
      return {
        operations,
        load,
        statements: each(countsBefore.statements, countsAfter.statements),
        transactions: each(countsBefore.transactions, countsAfter.transactions),
        postgresUs: each(cpuBefore.postgres, cpuAfter.postgres) * 1000,
        nodeUs: each(cpuBefore.node, cpuAfter.node) * 1000,
        redisCommands: each(countsBefore.commands, countsAfter.commands),
        redisUs: each(cpuBefore.redis, cpuAfter.redis) * 1000,
      };
    },
    /** Prints the statements and the commands of Redis that ran most often, for analysis. */
    async printStatements() {
      const { rows } = await pool.query<{ calls: string; ms: number; query: string }>(
        `SELECT calls, total_exec_time AS ms, regexp_replace(left(query, 160), '\\s+', ' ', 'g') AS query
         FROM pg_stat_statements s JOIN pg_stat_database d ON d.datid = s.dbid AND d.datname = 'callplane'
         ORDER BY calls DESC LIMIT 25`,
      );
      for (const { calls, ms, query } of rows) console.log(`${calls}\t${ms.toFixed(0)} ms\t${query}`);
      await pool.query('SELECT pg_stat_statements_reset()');
      const commands = [...(await commandsOf(client))].sort(([, a], [, b]) => b - a);
      console.log(commands.map(([name, calls]) => `${name} ${calls}`).join(', '));
      await client.config('RESETSTAT');
    },
    async close() {
      client.disconnect();
      await pool.end();
    },
  };
}

/** The postmaster with its present and former children, in milliseconds. */
function postgresCpuMs(postmaster: number): number {
  let sum = cpuMs(postmaster, { withEnded: true });
  for (const pid of childrenOf(postmaster)) {
    try {
      sum += cpuMs(pid);
    } catch {
      // The process ended meanwhile.
    }
  }
  return sum;
}

/** Calls of each command since the statistics were reset, without those of the meter itself. */
async function commandsOf(client: Redis): Promise<Map<string, number>> {
  const calls = new Map<string, number>();
  for (const line of (await client.info('commandstats')).split('\r\n')) {
    const [, name, count] = /^cmdstat_([^:]+):calls=(\d+)/.exec(line) ?? [];
    if (name !== undefined && name !== 'info') calls.set(name, Number(count));
  }
  return calls;
}

function sumOf(calls: Map<string, number>): number {
  return [...calls.values()].reduce((sum, count) => sum + count, 0);
}
