import { readBacklogs } from '@callplane/db';
import type { RedisTarget } from '@callplane/queue/redis-target';
import type { Command } from 'commander';
import { redisOf, withDatabase, type Cli } from './cli.js';
import { addCommand, column, printList, type OutputOptions } from './output.js';

/** Adds `rtc queues`. PostgreSQL's rows are authoritative; Redis adds the numbers of jobs and workers. */
export function addQueuesCommand(rtc: Command, cli: Cli): void {
  const description = 'Show due rows and their age, and the jobs and workers in Redis';
  addCommand(rtc, 'queues', description, 'rtc queues').action((options: OutputOptions) =>
    withDatabase(cli, async ({ sql }, config) => {
      const backlogs = await readBacklogs(sql);
      const where = redisOf(config);
      const depths = where === undefined ? null : await depthsOf(where);
      const rows = backlogs.map((backlog) => ({
        ...backlog,
        redis: depths?.find(({ queue }) => queue === backlog.queue) ?? null,
      }));
      const inRedis = ({ redis }: (typeof rows)[number]) =>
        redis === null
          ? 'unknown'
          : `${redis.waiting} waiting, ${redis.active} active, ${redis.delayed} delayed, ${redis.workers} workers`;
      printList(cli, options, rows, [
        column('QUEUE', ({ queue }) => queue),
        column(
          'DUE',
          ({ due }) => String(due),
          ({ due }) => `${due} due`,
        ),
        column(
          'OLDEST DUE FOR',
          ({ oldestDueMs }) => (oldestDueMs === null ? '-' : seconds(oldestDueMs)),
          ({ oldestDueMs }) => (oldestDueMs === null ? 'nothing is due' : `oldest due for ${seconds(oldestDueMs)}`),
        ),
        column(
          'HELD',
          ({ held }) => String(held),
          ({ held }) => `${held} held`,
        ),
        column(
          'SCHEDULED',
          ({ scheduled }) => String(scheduled),
          ({ scheduled }) => `${scheduled} scheduled`,
        ),
        column('REDIS', inRedis, (row) => `Redis: ${inRedis(row)}`),
      ]);
    }),
  );
}

async function depthsOf(where: RedisTarget) {
  const { readQueueDepths } = await import('@callplane/queue');
  return readQueueDepths(where).catch(() => null);
}

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
}
