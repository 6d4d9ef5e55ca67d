import { formatTimestamp, ROOM_STATUSES, type RoomStatus } from '@callplane/core';
import { acceptRoomEnd, listAllRooms, tenantOfRoom, type RoomListing } from '@callplane/db';
import { Command, Option } from 'commander';
import { LIST_LIMIT_DEFAULT, parseLimit } from './arguments.js';
import { wakeWorkers, withDatabase, type Cli } from './cli.js';
import { UsageError } from './failure.js';
import { addCommand, print, printList, quoted, type OutputOptions } from './output.js';

interface ListOptions extends OutputOptions {
  status?: RoomStatus;
  env?: string;
  limit: number;
}

export function roomsCommands(cli: Cli): Command {
  const rooms = new Command('rooms').description('Rooms of every environment');
  addCommand(rooms, 'list', 'List rooms, newest first', 'rtc rooms list --status active')
    .addOption(new Option('--status <status>', 'only those').choices(ROOM_STATUSES))
    .option('--env <id>', 'only of this environment (env_…)')
    .option('--limit <count>', 'how many at most, 1 to 1000', parseLimit, LIST_LIMIT_DEFAULT)
    .action((options: ListOptions) =>
      withDatabase(cli, async ({ prisma }) => {
        const filter = { status: options.status ?? null, environmentId: options.env ?? null, limit: options.limit };
        printList(cli, options, await listAllRooms(prisma, filter), columnsOf);
      }),
    );
  addCommand(rooms, 'end <room>', 'End a room for everyone', 'rtc rooms end room_01…').action(
    (roomId: string, options: OutputOptions) => end(cli, options, roomId),
  );
  return rooms;
}

function end(cli: Cli, options: OutputOptions, roomId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const tenant = await tenantOfRoom(database.prisma, roomId);
    const accepted = tenant === null ? null : await acceptRoomEnd(database, tenant, roomId, cli.clock.now());
    if (accepted === null) {
      throw new UsageError(`There is no room ${quoted(roomId)}: "rtc rooms list" shows those there are.`);
    }
    const { operation, wake } = accepted;
    const told = wake === null || (await wakeWorkers(config, [{ kind: wake.kind, row: wake }]));
    const text =
      operation.status === 'completed'
        ? `${roomId} has ended already.`
        : `${roomId} is ending: operation ${operation.id}${told ? '' : ', which a sweep finds within 15 seconds'}.`;
    print(cli, options, { roomId, operationId: operation.id, status: operation.status }, text);
  });
}

function columnsOf(row: RoomListing): string[] {
  return [
    row.id,
    row.status,
    `${row.participants}/${row.maxParticipants}`,
    row.environmentId,
    formatTimestamp(row.createdAt),
    quoted(row.name),
  ];
}
