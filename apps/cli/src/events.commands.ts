import { EVENT_TYPES, formatTimestamp, type EventType } from '@callplane/core';
import { findEventById, listAllEvents, type EventListing } from '@callplane/db';
import { Command, Option } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { UsageError } from './failure.js';
import { addListOptions, filterOf, type ListOptions } from './list-options.js';
import { addCommand, column, print, printList, quoted, type OutputOptions } from './output.js';

export function eventsCommands(cli: Cli): Command {
  const events = new Command('events').description('Events of every environment, as webhooks send them');
  addListOptions(addCommand(events, 'list', 'List events, newest first', 'rtc events list --room room_01… --since 1h'))
    .option('--room <id>', 'filter by room (room_…)')
    .addOption(new Option('--type <type>', 'filter by this value').choices(EVENT_TYPES))
    .action((options: ListOptions & { room?: string; type?: EventType }) =>
      withDatabase(cli, async ({ sql }) => {
        const filter = { ...filterOf(cli, options), roomId: options.room ?? null, type: options.type ?? null };
        printList(cli, options, await listAllEvents(sql, filter), COLUMNS);
      }),
    );
  addCommand(events, 'show <event>', 'Show the body of an event', 'rtc events show evt_01…').action(
    (eventId: string, options: OutputOptions) =>
      withDatabase(cli, async ({ sql }) => {
        const event = await findEventById(sql, eventId);
        if (event === null) throw new UsageError(`Event ${quoted(eventId)} not found. "rtc events list" lists events.`);
        const body = JSON.parse(event.body) as object;
        print(cli, options, body, JSON.stringify(body, null, 2));
      }),
  );
  return events;
}

const COLUMNS = [
  column<EventListing>('EVENT', (row) => row.id),
  column<EventListing>('TYPE', (row) => row.type),
  column<EventListing>('CREATED', (row) => formatTimestamp(row.createdAt)),
  column<EventListing>(
    'ROOM',
    (row) => row.roomId ?? '',
    (row) => row.roomId ?? row.environmentId,
  ),
  column<EventListing>(
    'SEQUENCE',
    (row) => (row.sequence === null ? '' : String(row.sequence)),
    (row) => (row.sequence === null ? '' : `sequence ${row.sequence}`),
  ),
  column<EventListing>('ERASED', (row) => (row.erasedAt === null ? '' : `erased ${formatTimestamp(row.erasedAt)}`)),
];
