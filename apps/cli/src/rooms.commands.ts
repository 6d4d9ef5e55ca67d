import {
  optionEntries,
  optionText,
  PARTICIPANT_STATUSES,
  ROOM_OPTIONS,
  ROOM_STATUSES,
  type ParticipantStatus,
  type RoomStatus,
} from '@callplane/core';
import {
  acceptRoomEnd,
  countEventsToErase,
  countExpiredRooms,
  eraseEvents,
  findRoomById,
  findRoomMedia,
  listAllParticipants,
  listAllRooms,
  PURGED_AFTER_SECONDS_MIN,
  purgeExpiredRooms,
  requestErasure,
  tenantOfRoom,
  type ParticipantListing,
  type RoomMedia,
  type PurgeStep,
} from '@callplane/db';
import { Command } from 'commander';
import { foundLater, wakeWorkers, withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import {
  ENV_FILTER,
  filterOf,
  NEWEST,
  notFound,
  oneOf,
  parseDuration,
  ROOM_FILTER,
  type NewestOptions,
} from './options.js';
import { addCommand, addList, print, tableOf, type Columns, type OutputOptions } from './output.js';
import { align, quoted } from './terminal.js';

interface PurgeOptions extends OutputOptions {
  /** In seconds. */
  olderThan: number;
  env?: string;
  dryRun?: true;
  yes?: true;
}

/** The default of ROOM_RETENTION_DAYS. */
const PURGED_AFTER = '90d';

export function roomsCommands(cli: Cli): Command {
  const rooms = new Command('rooms').description('Rooms of every environment');
  addList(rooms, cli, {
    description: 'List rooms, newest first',
    example: 'rtc rooms list --status active --since 1d',
    filters: [...NEWEST, oneOf('--status <status>', ROOM_STATUSES)],
    rows: ({ prisma }, options: NewestOptions & { status?: RoomStatus }) =>
      listAllRooms(prisma, { ...filterOf(cli, options), status: options.status ?? null }),
    columns: {
      ROOM: (row) => row.id,
      STATUS: (row) => row.status,
      'IN CALL': (row) => `${row.participants}/${row.maxParticipants}`,
      ENVIRONMENT: (row) => row.environmentId,
      CREATED: (row) => row.createdAt,
      NAME: (row) => quoted(row.name),
    },
  });
  addCommand(rooms, 'show <room>', 'Show a room and who is in it', 'rtc rooms show room_01…').action(
    (roomId: string, options: OutputOptions) => show(cli, options, roomId),
  );
  addCommand(rooms, 'end <room>', 'End a room for everyone', 'rtc rooms end room_01…').action(
    (roomId: string, options: OutputOptions) => end(cli, options, roomId),
  );
  const purgeDescription = 'Delete rooms that ended long ago, with their participants, sessions, tokens and operations';
  addCommand(rooms, 'purge', purgeDescription, 'rtc rooms purge --older-than 30d --yes')
    .option(
      '--older-than <duration>',
      'minimum time since the end of the room',
      parseDuration,
      parseDuration(PURGED_AFTER),
    )
    .addOption(ENV_FILTER)
    .option('--dry-run', 'only count the rooms')
    .option('--yes', 'delete the rooms permanently')
    .action((options: PurgeOptions) => purge(cli, options));
  return rooms;
}

const IN_CALL_SHOWN = 20;

function show(cli: Cli, options: OutputOptions, roomId: string): Promise<void> {
  return withDatabase(cli, async ({ prisma, sql }) => {
    const [room, tenant] = await Promise.all([findRoomById(prisma, roomId), tenantOfRoom(prisma, roomId)]);
    const media = tenant && (await findRoomMedia(sql, tenant, roomId));
    if (room === null || media === null) throw notFound('Room', roomId, 'rooms list');
    const filter = { environmentId: null, since: null, roomId, status: 'active' as const, limit: IN_CALL_SHOWN };
    const inCall = await listAllParticipants(prisma, filter);
    const times = [
      ['created', room.createdAt],
      ['started', room.startedAt],
      ['ended', room.endedAt],
    ] as const;
    const facts = [
      ['room', `${room.id} ${quoted(room.name)}`],
      ['environment', room.environmentId],
      ['status', room.status],
      ['participants', `${room.participants} in the call`],
      ...optionEntries(ROOM_OPTIONS, room).map(([, option, value]) => [
        option.label.toLowerCase(),
        optionText(option, value),
      ]),
      ...times.flatMap(([name, time]) => (time === null ? [] : [[name, time.toISOString()]])),
      ['media server', media.nodes.map(nodeText).join('; ') || 'none'],
      ...(media.forwardCount === 0 ? [] : [['forwards', String(media.forwardCount)]]),
      ['events', String(room.lastSequence)],
      ...(room.operationId === null ? [] : [['clean-up', `${room.operationId} ${room.operationStatus ?? ''}`]]),
    ];
    const tables = [
      ...(inCall.length === 0 ? [] : [tableOf(inCall, IN_CALL_COLUMNS)]),
      ...(media.forwards.length === 0 ? [] : [tableOf(media.forwards, FORWARD_COLUMNS)]),
    ];
    print(cli, options, { ...room, media, inCall }, [align(facts), ...tables].join('\n\n'));
  });
}

function nodeText({ id, region, state, sessions }: RoomMedia['nodes'][number]): string {
  const about = [...(region === null ? [] : [region]), ...(state === 'down' ? ['down'] : []), `${sessions} sessions`];
  return `${id} (${about.join(', ')})`;
}

const FORWARD_COLUMNS: Columns<RoomMedia['forwards'][number]> = {
  FORWARDED: (row) => row.participantId,
  FROM: (row) => row.fromNodeId,
  TO: (row) => row.toNodeId,
  STATE: (row) => row.state,
  STREAMS: (row) => row.streams,
  SINCE: (row) => row.createdAt,
};

function end(cli: Cli, options: OutputOptions, roomId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const tenant = await tenantOfRoom(database.prisma, roomId);
    const accepted = tenant === null ? null : await acceptRoomEnd(database, tenant, roomId, cli.clock.now());
    if (accepted === null) throw notFound('Room', roomId, 'rooms list');
    const { operation, wake } = accepted;
    const notified = wake === null || (await wakeWorkers(config, [wake]));
    const text =
      operation.status === 'completed'
        ? `${roomId} has ended already.`
        : `${roomId} is ending: operation ${operation.id}${foundLater(notified)}.`;
    print(cli, options, { roomId, operationId: operation.id, status: operation.status }, text);
  });
}

function purge(cli: Cli, options: PurgeOptions): Promise<void> {
  if (options.olderThan < PURGED_AFTER_SECONDS_MIN) {
    throw new UsageError('Give at least 1d: until then a TURN credential of the room may be valid.');
  }
  return withDatabase(cli, async (database) => {
    const which = { olderThanSeconds: options.olderThan, environmentId: options.env ?? null };
    if (options.dryRun === true || options.yes !== true) {
      const rooms = await countExpiredRooms(database.sql, which);
      if (options.dryRun !== true) {
        throw new UsageError(`This deletes ${rooms} rooms permanently. Repeat the command with --yes, or --dry-run.`);
      }
      print(cli, options, { dryRun: true, rooms }, `${rooms} rooms would be deleted.`);
      return;
    }
    const deleted: PurgeStep = { rooms: 0, participants: 0, sessions: 0, tokens: 0, operations: 0 };
    for (;;) {
      const step = await purgeExpiredRooms(database, which);
      for (const what of Object.keys(deleted) as (keyof PurgeStep)[]) deleted[what] += step[what];
      if (Object.values(step).every((count: number) => count === 0)) break;
    }
    const { rooms, ...rest } = deleted;
    const parts = Object.entries(rest).map(([what, count]) => `${count} ${what}`);
    print(cli, options, { dryRun: false, ...deleted }, `Deleted ${rooms} rooms, ${parts.join(', ')}.`);
  });
}

export function participantsCommands(cli: Cli): Command {
  const participants = new Command('participants').description('Participants of every environment');
  addList(participants, cli, {
    description: 'List participants, newest first',
    example: 'rtc participants list --room room_01… --status active',
    filters: [...NEWEST, ROOM_FILTER, oneOf('--status <status>', PARTICIPANT_STATUSES, 'in the call, or left')],
    rows: ({ prisma }, options: NewestOptions & { room?: string; status?: ParticipantStatus }) => {
      const { room = null, status = null } = options;
      return listAllParticipants(prisma, { ...filterOf(cli, options), roomId: room, status });
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
  if (row.removedAt !== null) return `removed ${row.removedAt.toISOString()}`;
  if (row.connectedAt === null) return 'never connected';
  return row.leftAt === null ? `active since ${row.connectedAt.toISOString()}` : `left ${row.leftAt.toISOString()}`;
}

const IN_CALL_COLUMNS: Columns<ParticipantListing> = {
  PARTICIPANT: (row) => row.id,
  STATE: stateOf,
  SESSION: (row) => row.sessionId,
  'EXTERNAL ID': (row) => (row.externalId === null ? '' : quoted(row.externalId)),
  NAME: (row) => quoted(row.name),
};

function erase(cli: Cli, options: OutputOptions, participantId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
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
    const { recordings, later } = outcome;
    const files = outcome.files.map(({ file }) => file.id);
    const workersNotified = await wakeWorkers(config, outcome.operations);
    const lines = [
      `${participantId} is erased, also from ${eventsErased} events${rest}.`,
      ...(recordings.length === 0 ? [] : [`Deleted with the participant: ${recordings.join(', ')}.`]),
      ...(files.length === 0 ? [] : [`Recorded tracks that are deleted: ${files.join(', ')}.`]),
      ...(later.length === 0 ? [] : [`Erased once they have ended: ${later.join(', ')}.`]),
    ];
    const erased = { participantId, eventsErased, eventsPending, recordings, files, later, workersNotified };
    print(cli, options, erased, lines.join('\n'));
  });
}
