import { formatTimestamp, PARTICIPANT_STATUSES, type ParticipantStatus } from '@callplane/core';
import {
  countEventsToErase,
  eraseEvents,
  listAllParticipants,
  requestErasure,
  type ParticipantListing,
} from '@callplane/db';
import { Command, Option } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { addListOptions, filterOf, type ListOptions } from './list-options.js';
import { addCommand, column, print, printList, quoted, type OutputOptions } from './output.js';

export function participantsCommands(cli: Cli): Command {
  const participants = new Command('participants').description('Participants of every environment');
  addListOptions(
    addCommand(
      participants,
      'list',
      'List participants, newest first',
      'rtc participants list --room room_01… --status active',
    ),
  )
    .option('--room <id>', 'filter by room (room_…)')
    .addOption(new Option('--status <status>', 'in the call, or left').choices(PARTICIPANT_STATUSES))
    .action((options: ListOptions & { room?: string; status?: ParticipantStatus }) =>
      withDatabase(cli, async ({ sql }) => {
        const filter = { ...filterOf(cli, options), roomId: options.room ?? null, status: options.status ?? null };
        printList(cli, options, await listAllParticipants(sql, filter), COLUMNS);
      }),
    );
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
export const IN_CALL_COLUMNS = [
  column<ParticipantListing>('PARTICIPANT', (row) => row.id),
  column<ParticipantListing>('STATE', stateOf),
  column<ParticipantListing>('SESSION', (row) => row.sessionId ?? ''),
  column<ParticipantListing>('EXTERNAL ID', (row) => (row.externalId === null ? '' : quoted(row.externalId))),
  column<ParticipantListing>('NAME', (row) => quoted(row.name)),
];

const COLUMNS = [column<ParticipantListing>('ROOM', (row) => row.roomId), ...IN_CALL_COLUMNS];

function erase(cli: Cli, options: OutputOptions, participantId: string): Promise<void> {
  return withDatabase(cli, async (database) => {
    const now = cli.clock.now();
    const outcome = await requestErasure(database, participantId, now);
    if (outcome === 'unknown') throw new UsageError(`Participant ${quoted(participantId)} not found.`);
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
