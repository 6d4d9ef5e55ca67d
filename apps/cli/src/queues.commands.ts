import { readBacklogs } from '@callplane/db';
import type { Command } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { addCommand, printList, type OutputOptions } from './output.js';

/** Adds `rtc queues`. PostgreSQL's rows are authoritative; Redis adds the numbers of wake-ups and workers. */
export function addQueuesCommand(rtc: Command, cli: Cli): void {
  const description = 'Show due rows and their age, and the wake-ups and workers in Redis';
  addCommand(rtc, 'queues', description, 'rtc queues').action((options: OutputOptions) =>
    withDatabase(cli, async ({ sql }, { REDIS_URL }) => {
      const backlogs = await readBacklogs(sql);
      const depths = REDIS_URL === undefined ? null : await depthsOf(REDIS_URL);
      const rows = backlogs.map((backlog) => ({
        ...backlog,
        redis: depths?.find(({ queue }) => queue === backlog.queue) ?? null,
      }));
      printList(cli, options, rows, ({ queue, due, scheduled, held, oldestDueMs, redis }) => [
        queue,
        `${due} due`,
        oldestDueMs === null ? 'nothing is due' : `oldest due for ${seconds(oldestDueMs)}`,
        `${held} held`,
        `${scheduled} scheduled`,
        redis === null
          ? 'Redis: unknown'
          : `Redis: ${redis.waiting} waiting, ${redis.active} active, ${redis.delayed} delayed, ${redis.workers} workers`,
      ]);
    }),
  );
}

async function depthsOf(redisUrl: string) {
  const { readQueueDepths } = await import('@callplane/queue');
  return readQueueDepths(redisUrl).catch(() => null);
}

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
}
