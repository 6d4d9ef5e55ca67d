import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import {
  newId,
  newRecording,
  RECORDING_MODES,
  RECORDING_STATUSES,
  recordingFileKey,
  type RecordingState,
  type RecordingStatus,
} from '@callplane/core';
import {
  acceptRecordingDeletion,
  findRecording,
  listAllRecordings,
  startRecording,
  stopRecordings,
  tenantOfRecording,
  tenantOfRoom,
  type Database,
  type RecordingRefusal,
} from '@callplane/db';
import { openStore } from '@callplane/store';
import { Command, Option } from 'commander';
import { foundLater, notifyRooms, wakeDeliveries, wakeWorkers, withDatabase, type Cli } from './cli.js';
import { CommandError } from './failure.js';
import { filterOf, NEWEST, notFound, oneOf, ROOM_FILTER, type NewestOptions } from './options.js';
import { addCommand, addList, print, tableOf, type OutputOptions } from './output.js';
import { align } from './terminal.js';

const REFUSALS: Readonly<Record<RecordingRefusal, string>> = {
  room_not_found: 'The room does not exist.',
  room_ended: 'The room has ended.',
  room_encrypted: 'The room is encrypted end to end.',
  participant_not_found: 'The participant is not of this room.',
  active: 'The room has a running composite recording.',
  no_recorder: 'No recorder with a store and ffmpeg runs. See "rtc doctor".',
  no_agent: 'The media server has no agent that records. See "rtc doctor".',
};

export function recordingsCommands(cli: Cli): Command {
  const recordings = new Command('recordings').description('Recordings of every environment');
  addList(recordings, cli, {
    description: 'List recordings, newest first',
    example: 'rtc recordings list --status failed --since 1d',
    filters: [...NEWEST, ROOM_FILTER, oneOf('--status <status>', RECORDING_STATUSES)],
    rows: ({ prisma }, options: NewestOptions & { room?: string; status?: RecordingStatus }) =>
      listAllRecordings(prisma, {
        ...filterOf(cli, options),
        roomId: options.room ?? null,
        status: options.status ?? null,
      }),
    columns: {
      RECORDING: (row) => row.id,
      STATUS: (row) => row.status,
      MODE: (row) => row.mode,
      PROGRESS: (row) => `${row.progress} %`,
      ROOM: (row) => row.roomId,
      ENVIRONMENT: (row) => row.environmentId,
      STARTED: (row) => row.startedAt,
      ENDED: (row) => row.endedAt,
    },
  });
  const add = (nameAndArguments: string, description: string, example: string) =>
    addCommand(recordings, nameAndArguments, description, `rtc recordings ${example}`);
  add('show <recording>', 'Show a recording, its files and its gaps', 'show rec_01…').action(
    (id: string, options: OutputOptions) => show(cli, options, id),
  );
  add('start <room>', 'Record everyone in a room', 'start room_01… --mode tracks')
    .addOption(
      new Option('--mode <mode>', 'one file, or a file for each track').choices(RECORDING_MODES).default('composite'),
    )
    .option('--audio-only', 'without pictures')
    .action((roomId: string, options: StartOptions) => start(cli, options, roomId));
  add('stop <recording>', 'End a recording, and make its files', 'stop rec_01…').action(
    (id: string, options: OutputOptions) => stop(cli, options, id),
  );
  add('delete <recording>', 'Delete a recording and its files', 'delete rec_01…').action(
    (id: string, options: OutputOptions) => remove(cli, options, id),
  );
  add(
    'download <recording> <file>',
    'Write a file of a recording to this machine',
    'download rec_01… recf_01… --to call.mp4',
  )
    .requiredOption('--to <path>', 'the file to write')
    .action((id: string, fileId: string, options: OutputOptions & { to: string }) =>
      download(cli, options, id, fileId),
    );
  return recordings;
}

interface StartOptions extends OutputOptions {
  mode: RecordingState['mode'];
  audioOnly?: true;
}

async function requireRecording({ prisma, sql }: Database, id: string) {
  const tenant = await tenantOfRecording(prisma, id);
  const recording = tenant === null ? null : await findRecording(sql, tenant, id);
  if (tenant === null || recording === null) throw notFound('Recording', id, 'recordings list');
  return { tenant, recording };
}

function show(cli: Cli, options: OutputOptions, id: string): Promise<void> {
  return withDatabase(cli, async (database) => {
    const { recording } = await requireRecording(database, id);
    const { roomId, environmentId, mode, status, progress, queuePosition, lastError, gaps, files } = recording;
    const facts = [
      ['recording', recording.id],
      ['room', roomId],
      ['environment', environmentId],
      ['mode', mode],
      ['status', `${status}, ${progress} %${queuePosition === null ? '' : `, number ${queuePosition} in the queue`}`],
      ['started', recording.startedAt.toISOString()],
      ...(recording.endedAt === null ? [] : [['ended', recording.endedAt.toISOString()]]),
      ...(lastError === null ? [] : [['last error', lastError.message]]),
      ...gaps.map(({ startMs, durationMs, reason }) => ['gap', `${durationMs} ms from ${startMs} ms: ${reason}`]),
    ];
    const table = tableOf(files, {
      FILE: (file) => file.id,
      TYPE: (file) => file.contentType,
      OF: (file) => file.participantId,
      SOURCE: (file) => file.source,
      BYTES: (file) => file.bytes,
      'START MS': (file) => file.startMs,
      'DURATION MS': (file) => file.durationMs,
    });
    print(cli, options, recording, [align(facts), ...(files.length === 0 ? [] : ['', table])].join('\n'));
  });
}

function start(cli: Cli, options: StartOptions, roomId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const tenant = await tenantOfRoom(database.prisma, roomId);
    if (tenant === null) throw notFound('Room', roomId, 'rooms list');
    const recording = newRecording(options, newId('recording'));
    const outcome = await database.transaction((tx) => startRecording(tx, tenant, roomId, recording));
    if (typeof outcome === 'string') throw new CommandError(REFUSALS[outcome]);
    await notifyRooms(config, [{ roomId, version: null }]);
    await wakeDeliveries(config, outcome.deliveries);
    print(cli, options, { id: recording.id, roomId }, `${recording.id} records ${roomId}.`);
  });
}

function stop(cli: Cli, options: OutputOptions, id: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const { tenant, recording } = await requireRecording(database, id);
    if (recording.status !== 'recording') throw new CommandError(`${id} has ended already: ${recording.status}.`);
    const { operations, deliveries } = await database.transaction((tx) =>
      stopRecordings(tx, tenant, recording.roomId, id, cli.clock.now()),
    );
    const notified = await wakeWorkers(config, operations);
    await notifyRooms(config, [{ roomId: recording.roomId, version: null }]);
    await wakeDeliveries(config, deliveries);
    const operationId = operations[0]?.id ?? null;
    print(cli, options, { id, operationId }, `${id} has ended: operation ${operationId}${foundLater(notified)}.`);
  });
}

function remove(cli: Cli, options: OutputOptions, id: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const { tenant } = await requireRecording(database, id);
    const accepted = await acceptRecordingDeletion(database, tenant, id, cli.clock.now());
    if (accepted === null) throw notFound('Recording', id, 'recordings list');
    if (accepted === 'running') throw new CommandError(`${id} runs: end it with "rtc recordings stop ${id}" first.`);
    const { operation, wake } = accepted;
    const notified = wake === null || (await wakeWorkers(config, [wake]));
    const text = `${id} is deleted: operation ${operation.id}${foundLater(notified)}.`;
    print(cli, options, { id, operationId: operation.id }, text);
  });
}

function download(cli: Cli, options: OutputOptions & { to: string }, id: string, fileId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const { recording } = await requireRecording(database, id);
    const file = recording.files.find((one) => one.id === fileId);
    if (file === undefined) throw notFound('File', fileId, `recordings show ${id}`);
    const store = await openStore(config);
    if (store === null) throw new CommandError('Set RECORDINGS_S3_BUCKET or RECORDINGS_FOLDER, as for the recorder.');
    await pipeline(await store.read(recordingFileKey(id, file)), createWriteStream(options.to));
    print(cli, options, { id, fileId, path: options.to }, `${options.to} has ${file.bytes} bytes.`);
  });
}
