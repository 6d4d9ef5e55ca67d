import {
  formatTimestamp,
  OPERATION_KINDS,
  OPERATION_STATUSES,
  type OperationKind,
  type OperationStatus,
} from '@callplane/core';
import {
  acceptParticipantRemoval,
  acceptRoomEnd,
  findOperationById,
  hastenOperation,
  listAllOperations,
  type Database,
  type OperationListing,
  type WakeableOperation,
} from '@callplane/db';
import { Command, Option } from 'commander';
import { LIST_LIMIT_DEFAULT, parseLimit } from './arguments.js';
import { wakeWorkers, withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { addCommand, print, printList, quoted, type OutputOptions } from './output.js';

interface ListOptions extends OutputOptions {
  status?: OperationStatus;
  kind?: OperationKind;
  env?: string;
  limit: number;
}

export function operationsCommands(cli: Cli): Command {
  const operations = new Command('operations').description('Clean-ups of rooms and participants');
  addCommand(operations, 'list', 'List operations, newest first', 'rtc operations list --status failed')
    .addOption(new Option('--status <status>', 'filter by this value').choices(OPERATION_STATUSES))
    .addOption(new Option('--kind <kind>', 'filter by this value').choices(OPERATION_KINDS))
    .option('--env <id>', 'filter by environment (env_…)')
    .option('--limit <count>', 'maximum number of rows, 1 to 1000', parseLimit, LIST_LIMIT_DEFAULT)
    .action((options: ListOptions) =>
      withDatabase(cli, async ({ sql }) => {
        const filter = {
          status: options.status ?? null,
          kind: options.kind ?? null,
          environmentId: options.env ?? null,
        };
        printList(cli, options, await listAllOperations(sql, { ...filter, limit: options.limit }), columnsOf);
      }),
    );
  const retryDescription = 'Attempt an operation now: a failed one in a new run, a pending one before it is due';
  addCommand(operations, 'retry <operation>', retryDescription, 'rtc operations retry op_01…').action(
    (operationId: string, options: OutputOptions) => retry(cli, options, operationId),
  );
  return operations;
}

function retry(cli: Cli, options: OutputOptions, operationId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const operation = await findOperationById(database.sql, operationId);
    if (operation === null) {
      throw new UsageError(`Operation ${quoted(operationId)} not found. "rtc operations list" lists operations.`);
    }
    if (operation.status === 'completed') throw new CommandError(`${operationId} is already completed.`);
    const row =
      operation.status === 'failed'
        ? await newRun(database, operation, cli.clock.now())
        : await hastenOperation(database.sql, operationId);
    if (row === null) throw new CommandError(`${operationId} is held by a worker at the moment. Try again later.`);
    const notified = await wakeWorkers(config, [row]);
    const text = `${operationId} is due now (run ${row.run})${notified ? '' : '; a sweep finds it within 15 seconds'}.`;
    print(cli, options, { id: operationId, run: row.run, workersNotified: notified }, text);
  });
}

/** Starts a new run, exactly as a repeated DELETE request over HTTP does. */
async function newRun(
  database: Database,
  operation: NonNullable<Awaited<ReturnType<typeof findOperationById>>>,
  now: Date,
): Promise<WakeableOperation | null> {
  const { roomId, participantId } = operation;
  const accepted =
    participantId === null
      ? await acceptRoomEnd(database, operation, roomId, now)
      : await acceptParticipantRemoval(database, operation, roomId, participantId, now);
  return accepted?.wake ?? null;
}

function columnsOf(row: OperationListing): string[] {
  return [
    row.id,
    row.kind,
    row.status === 'pending' && row.held ? 'pending (held)' : row.status,
    `${row.attempts} attempts`,
    row.status === 'pending'
      ? `due ${formatTimestamp(row.dueAt)}`
      : `since ${formatTimestamp(row.completedAt ?? row.dueAt)}`,
    row.participantId ?? row.roomId,
    row.lastError === null ? '' : row.lastError.message,
  ];
}
