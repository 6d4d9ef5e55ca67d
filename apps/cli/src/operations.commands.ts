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
import { wakeWorkers, withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { addListOptions, filterOf, type ListOptions } from './list-options.js';
import { addCommand, column, print, printList, quoted, type OutputOptions } from './output.js';

interface OperationListOptions extends ListOptions {
  status?: OperationStatus;
  kind?: OperationKind;
}

export function operationsCommands(cli: Cli): Command {
  const operations = new Command('operations').description('Clean-ups of rooms and participants');
  addListOptions(
    addCommand(operations, 'list', 'List operations, newest first', 'rtc operations list --status failed --since 1d'),
  )
    .addOption(new Option('--status <status>', 'filter by this value').choices(OPERATION_STATUSES))
    .addOption(new Option('--kind <kind>', 'filter by this value').choices(OPERATION_KINDS))
    .action((options: OperationListOptions) =>
      withDatabase(cli, async ({ sql }) => {
        const filter = { ...filterOf(cli, options), status: options.status ?? null, kind: options.kind ?? null };
        printList(cli, options, await listAllOperations(sql, filter), COLUMNS);
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

const dueOf = (row: OperationListing): string =>
  row.status === 'pending'
    ? `due ${formatTimestamp(row.dueAt)}`
    : `since ${formatTimestamp(row.completedAt ?? row.dueAt)}`;

const COLUMNS = [
  column<OperationListing>('OPERATION', (row) => row.id),
  column<OperationListing>('KIND', (row) => row.kind),
  column<OperationListing>('STATUS', (row) => (row.status === 'pending' && row.held ? 'pending (held)' : row.status)),
  column<OperationListing>(
    'ATTEMPTS',
    (row) => String(row.attempts),
    (row) => `${row.attempts} attempts`,
  ),
  column<OperationListing>('WHEN', dueOf),
  column<OperationListing>('OF', (row) => row.participantId ?? row.roomId),
  column<OperationListing>('LAST ERROR', (row) => (row.lastError === null ? '' : row.lastError.message)),
];
