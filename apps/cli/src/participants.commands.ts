import { formatTimestamp, PARTICIPANT_STATUSES, type ParticipantStatus } from '@callplane/core';
import {
  countEventsToErase,
  eraseEvents,
  listAllParticipants,
  requestErasure,
  type ParticipantListing,
} from '@callplane/db';
import { Command } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { CommandError } from './failure.js';
import { filterOf, NEWEST, notFound, oneOf, ROOM_FILTER, type NewestOptions } from './options.js';
import { addCommand, addList, print, type Columns, type OutputOptions } from './output.js';
import { quoted } from './terminal.js';

export function participantsCommands(cli: Cli): Command {
  const participants = new Command('participants').description('Participants of every environment');
  addList(participants, cli, {
    description: 'List participants, newest first',
    example: 'rtc participants list --room room_01… --status active',
    filters: [...NEWEST, ROOM_FILTER, oneOf('--status <status>', PARTICIPANT_STATUSES, 'in the call, or left')],
    rows: ({ sql }, options: NewestOptions & { room?: string; status?: ParticipantStatus }) => {
      const { room = null, status = null } = options;
      return listAllParticipants(sql, { ...filterOf(cli, options), roomId: room, status });
    },
    columns: { ROOM: (row) => row.roomId, ...IN_CALL_COLUMNS },
  });
  const description = 'Erase the name, external id and metadata of a participant, from its row and from stored events';
  addCommand(participants, 'erase <participant>', description, 'rtc participants erase part_01…').action(
    (participantId: string, options: OutputOptions) => erase(cli, options, participantId),
  );
  return participants;
}

function stateOf(row: ParticipantListing): string {
  if (row.removedAt !== null) return `removed ${formatTimestamp(row.removedAt)}`;
  if (row.connectedAt === null) return 'never connected';
  return row.leftAt === null
    ? `active since ${formatTimestamp(row.connectedAt)}`
    : `left ${formatTimestamp(row.leftAt)}`;
}

/** The columns of participants of one room. */
export const IN_CALL_COLUMNS: Columns<ParticipantListing> = {
  PARTICIPANT: (row) => row.id,
  STATE: stateOf,
  SESSION: (row) => row.sessionId ?? '',
  'EXTERNAL ID': (row) => (row.externalId === null ? '' : quoted(row.externalId)),
  NAME: (row) => quoted(row.name),
};

function erase(cli: Cli, options: OutputOptions, participantId: string): Promise<void> {
  return withDatabase(cli, async (database) => {
    const now = cli.clock.now();
    const outcome = await requestErasure(database, participantId, now);
    if (outcome === 'unknown') throw notFound('Participant', participantId, 'participants list');
    if (outcome === 'in a call') {
      throw new CommandError(
        `${participantId} is in a call, where others see the name: remove the participant or end the room first.`,
      );
    }
    let eventsErased = 0;
    for (;;) {
      const erased = await eraseEvents(database, participantId, now);
      if (erased === 0) break;
      eventsErased += erased;
    }
    const eventsPending = await countEventsToErase(database, participantId);
    const rest =
      eventsPending === 0
        ? ''
        : `; ${eventsPending} more have open deliveries and are erased within a minute after these end`;
    const text = `${participantId} is erased, also from ${eventsErased} events${rest}.`;
    print(cli, options, { participantId, eventsErased, eventsPending }, text);
  });
}
