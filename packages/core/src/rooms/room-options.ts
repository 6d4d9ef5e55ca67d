import type { OptionTable, OptionValues } from '../options/option-table.js';

/** The options of a room, beside its name and its metadata. */
export const ROOM_OPTIONS = {
  maxParticipants: {
    column: 'max_participants',
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 100,
    description: {
      read: null,
      create: 'Maximum number of participants that are connected at the same time.',
      update:
        'Maximum number of participants that are connected at the same time. A number below the present one removes ' +
        'no participant: joins are refused until enough have left.',
    },
    input: ['Participants at most', '1 to 100,000 at the same time. A lower number removes nobody.'],
    label: 'Capacity',
    unit: 'participants',
  },
  emptyTimeoutSeconds: {
    column: 'empty_timeout_seconds',
    type: 'integer',
    min: 60,
    max: 604_800,
    default: null,
    description: {
      read:
        'Seconds until the room ends while it has no participants, from its creation or from the time at which the ' +
        'last one left. Null: the setting of the deployment.',
      create:
        'Seconds until the room ends while it has no participants. Also ends a room that nobody joins. Null: the ' +
        'setting of the deployment.',
      update:
        'Seconds until the room ends while it has no participants. Null: the setting of the deployment. Counts from ' +
        'the time since which the room is empty.',
    },
    input: [
      'Minutes until it ends while it is empty',
      '1 minute to 7 days, also if nobody joins. Without a number, the setting of the deployment.',
    ],
    label: 'Ends while empty',
    none: 'as the deployment is set',
    unit: 'seconds',
  },
  record: {
    column: 'record',
    type: 'recording',
    default: null,
    description: {
      read: 'The recording that starts with the first participant. Null: none.',
      create: 'Starts a recording with the first participant. Null: only requests start recordings.',
      update: 'As at the creation. A change after the first participant has joined starts and stops nothing.',
    },
    input: ['Record', 'From the first participant on. Stop it as any other recording.'],
    label: 'Recorded',
    none: 'On request',
    texts: { composite: 'One file of everything', tracks: 'A file for each track' },
  },
  encryption: {
    column: 'encryption',
    isFixed: true,
    type: 'choice',
    default: 'none',
    description:
      'Whether clients must encrypt their media end to end. Such a room cannot be recorded. Fixed at the creation.',
    input: ['End-to-end encryption', 'Clients share a key that no server has. The room cannot be recorded.'],
    label: 'Encryption',
    texts: { none: 'Between client and server', required: 'End to end' },
  },
  waitingRoom: {
    column: 'waiting_room',
    type: 'boolean',
    default: false,
    description:
      'Whether participants wait in the lobby until they are admitted, unless the request for their token says ' +
      'otherwise. A change holds for tokens that are issued later.',
    input: ['Lobby', 'Participants wait until they are let in. A token request may say otherwise.'],
    label: 'Lobby',
    texts: { true: 'Participants wait', false: 'No' },
  },
} as const satisfies OptionTable;

export type RoomOptions = OptionValues<typeof ROOM_OPTIONS>;
