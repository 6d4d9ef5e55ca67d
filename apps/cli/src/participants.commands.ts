import { countEventsToErase, eraseEvents, requestErasure } from '@callplane/db';
import { Command } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { addCommand, print, quoted, type OutputOptions } from './output.js';

export function participantsCommands(cli: Cli): Command {
  const participants = new Command('participants').description('Participants of every environment');
  const description = 'Erase the name, external id and metadata of a participant, from its row and from stored events';
  addCommand(participants, 'erase <participant>', description, 'rtc participants erase part_01…').action(
    (participantId: string, options: OutputOptions) => erase(cli, options, participantId),
  );
  return participants;
}

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
