import { OPERATION_KINDS, OPERATION_STATUSES, type OperationKind, type OperationStatus } from '@callplane/core';
import { findOperationStatus, listAllOperations, makeDue, readBacklogs, type OperationListing } from '@callplane/db';
import type { QueueDepth } from '@callplane/queue';
import { Command } from 'commander';
import { configOf, foundLater, queueDepths, wakeWorkers, withDatabase, type Cli } from './cli.js';
import { CommandError } from './failure.js';
import { seconds } from './doctor/finding.js';
import { filterOf, NEWEST, notFound, oneOf, type NewestOptions } from './options.js';
import { addCommand, addList, print, type OutputOptions } from './output.js';

interface ListOptions extends NewestOptions {
  status?: OperationStatus;
  kind?: OperationKind;
}

export function operationsCommands(cli: Cli): Command {
  const operations = new Command('operations').description('Clean-ups of rooms and participants');
  addList(operations, cli, {
    description: 'List operations, newest first',
    example: 'rtc operations list --status failed --since 1d',
    filters: [...NEWEST, oneOf('--status <status>', OPERATION_STATUSES), oneOf('--kind <kind>', OPERATION_KINDS)],
    rows: ({ prisma }, options: ListOptions) => {
      const { status = null, kind = null } = options;
      return listAllOperations(prisma, { ...filterOf(cli, options), status, kind }, cli.clock.now());
    },
    columns: {
      OPERATION: (row) => row.id,
      KIND: (row) => row.kind,
      STATUS: (row) => (row.status === 'pending' && row.held ? 'pending (held)' : row.status),
      ATTEMPTS: (row) => row.attempts,
      WHEN: dueOf,
      OF: (row) => row.participantId ?? row.roomId,
      'LAST ERROR': (row) => (row.lastError === null ? '' : row.lastError.message),
    },
  });
  const retryDescription = 'Attempt an operation now: a failed one in a new run, a pending one before it is due';
  addCommand(operations, 'retry <operation>', retryDescription, 'rtc operations retry op_01…').action(
    (operationId: string, options: OutputOptions) => retry(cli, options, operationId),
  );
  return operations;
}

function retry(cli: Cli, options: OutputOptions, operationId: string): Promise<void> {
  return withDatabase(cli, async ({ prisma, sql }, config) => {
    const status = await findOperationStatus(prisma, operationId);
    if (status === null) throw notFound('Operation', operationId, 'operations list');
    if (status === 'completed') throw new CommandError(`${operationId} is already completed.`);
    const row = await makeDue(sql, operationId, status);
    if (row === null) throw new CommandError(`${operationId} is held by a worker at the moment. Try again later.`);
    const notified = await wakeWorkers(config, [row]);
    const text = `${operationId} is due now (run ${row.run})${foundLater(notified)}.`;
    print(cli, options, { id: operationId, run: row.run, workersNotified: notified }, text);
  });
}

const dueOf = (row: OperationListing): string =>
  row.status === 'pending' ? `due ${row.dueAt.toISOString()}` : `since ${(row.completedAt ?? row.dueAt).toISOString()}`;

/** Adds `rtc queues`. PostgreSQL's rows are authoritative; Redis adds the numbers of jobs and workers. */
export function addQueuesCommand(rtc: Command, cli: Cli): void {
  addList(rtc, cli, {
    name: 'queues',
    description: 'Show due rows and their age, and the jobs and workers in Redis',
    example: 'rtc queues',
    rows: async ({ sql }) => {
      const backlogs = await readBacklogs(sql);
      const depths = await queueDepths(configOf(cli));
      return backlogs.map((row) => ({ ...row, redis: depths?.find(({ queue }) => queue === row.queue) ?? null }));
    },
    columns: {
      QUEUE: ({ queue }) => queue,
      DUE: ({ due }) => due,
      'OLDEST DUE FOR': ({ oldestDueMs }) => (oldestDueMs === null ? null : seconds(oldestDueMs)),
      HELD: ({ held }) => held,
      SCHEDULED: ({ scheduled }) => scheduled,
      REDIS: ({ redis }) => (redis === null ? 'unknown' : inRedis(redis)),
    },
  });
}

function inRedis({ waiting, active, delayed, workers }: QueueDepth): string {
  return `${waiting} waiting, ${active} active, ${delayed} delayed, ${workers} workers`;
}
