import { formatTimestamp, type EventType } from '@callplane/core';
import { findEventById, listAllEvents } from '@callplane/db';
import { Command } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { filterOf, NEWEST, notFound, ROOM_FILTER, TYPE_FILTER, type NewestOptions } from './options.js';
import { addCommand, addList, named, print, type OutputOptions } from './output.js';

export function eventsCommands(cli: Cli): Command {
  const events = new Command('events').description('Events of every environment, as webhooks send them');
  addList(events, cli, {
    description: 'List events, newest first',
    example: 'rtc events list --room room_01… --since 1h',
    filters: [...NEWEST, ROOM_FILTER, TYPE_FILTER],
    rows: ({ sql }, options: NewestOptions & { room?: string; type?: EventType }) => {
      const { room = null, type = null } = options;
      return listAllEvents(sql, { ...filterOf(cli, options), roomId: room, type });
    },
    columns: {
      EVENT: (row) => row.id,
      TYPE: (row) => row.type,
      CREATED: (row) => formatTimestamp(row.createdAt),
      ROOM: (row) => ({ cell: row.roomId ?? '', plain: row.roomId ?? row.environmentId }),
      SEQUENCE: (row) => named('sequence', row.sequence),
      ERASED: (row) => named('erased', row.erasedAt),
    },
  });
  addCommand(events, 'show <event>', 'Show the body of an event', 'rtc events show evt_01…').action(
    (eventId: string, options: OutputOptions) =>
      withDatabase(cli, async ({ sql }) => {
        const event = await findEventById(sql, eventId);
        if (event === null) throw notFound('Event', eventId, 'events list');
        const body = JSON.parse(event.body) as object;
        print(cli, options, body, JSON.stringify(body, null, 2));
      }),
  );
  return events;
}
